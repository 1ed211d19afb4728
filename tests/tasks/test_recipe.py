"""From a recipe to the settings for one model: rows that fit it, and what a user is told of them."""

import dataclasses
import json
import math
from pathlib import Path
from unittest import mock

import pytest

from jaxenc.cli import recipe as cli_config
from jaxenc.cli.main import main
from jaxenc.errors import UserError
from jaxenc.families.bert.model import BertConfig
from jaxenc.families.xlnet.model import XlnetConfig
from jaxenc.optim.optimizer import OptimConfig
from jaxenc.tasks import recipe
from jaxenc.tasks.prepare import open_task
from jaxenc.tasks.squad_windows import WindowShape
from jaxenc.tasks.tuning import TuneConfig
from tests.tuned import settings

SMALL = BertConfig(width=128, heads=2, positions=64)


@pytest.mark.parametrize("name", ["tasks/text", "tasks/tag", "tasks/choice:swag", "tasks/squad", "tasks/squad:2", "tasks/glue:sst2"])
def test_rows_are_shortened_to_the_model(name: str) -> None:
    """Of every recipe, also where published numbers say how long they are; a question and a part of its context still fit."""
    written = cli_config.read(name)
    tune = recipe.resolve(written, SMALL, {})
    assert tune.train.length == 64 and recipe.resolve(written, dataclasses.replace(SMALL, positions=512), {}).train.length > 64
    if "squad" in name:
        shape = WindowShape(64, tune.task.stride, tune.task.max_query, 3)
        assert shape.room(tune.task.max_query) >= 2 * tune.task.stride > 0
        assert recipe.resolve(written, SMALL, {"task.max_query": 9}).task.max_query == 9


@pytest.mark.parametrize(("field", "value"), [("batch", 0), ("batch", -1), ("epochs", math.inf), ("epochs", math.nan)])
def test_numbers_that_give_no_steps_are_refused(field: str, value: float) -> None:
    """When they are set, before they divide or count anything."""
    with pytest.raises(UserError, match=f"^train.{field} is {value}; it "):
        TuneConfig(**{field: value})


def test_a_length_that_the_user_sets_is_kept(tuned: Path) -> None:
    """One that is too long is refused, in a recipe of one's own in Python as well as in a command; a model without a limit keeps all."""
    written = cli_config.read("tasks/text")
    assert recipe.resolve(written, SMALL, {"train.length": 100}).train.length == 100
    assert recipe.resolve(written, SMALL, {"train.length": 20}).train.length == 20
    assert recipe.resolve(written, XlnetConfig(), {}).train.length == 128
    tune = settings(tuned)
    with pytest.raises(UserError, match="rows have 33 tokens and the model takes 32; set train.length to 32 or less"):
        open_task(dataclasses.replace(tune, train=dataclasses.replace(tune.train, length=33)), str(tuned / "pretrained"))


def test_a_run_says_its_hyper_parameters(tuned: Path) -> None:
    tune = settings(tuned)

    def numbers(**train: object) -> str:
        one = dataclasses.replace(tune, train=dataclasses.replace(tune.train, **train))
        return open_task(one, str(tuned / "pretrained")).numbers

    assert numbers() == "lr 0.003, 6 epochs, batches of 16, rows of up to 20 tokens: 60 steps"
    rows = "rows of up to 32 tokens, all that the model takes"
    assert numbers(steps=15, length=32) == f"lr 0.003, 1.5 epochs, batches of 16, {rows}: 15 steps"
    tune = dataclasses.replace(tune, optim=OptimConfig(lr=1e-4, warmup=0))
    source = "published: google-research/bert README.md, the 24 smaller models"
    assert numbers(epochs=4.0, batch=32) == f"lr 0.0001, 4 epochs, batches of 32 ({source}), rows of up to 20 tokens: 20 steps"
    assert "published" not in numbers(epochs=5.0, batch=32)
    assert ", 1 epoch, " in numbers(epochs=1.0)


@pytest.mark.parametrize(
    "config, column, message",
    [
        ("bert/tiny", (), "--config bert/tiny: not a recipe of fine-tuning; name a task such as tasks/text; --init-from names the model"),
        ("tasks/tag", ("--text", "x"), "--text: tasks of the kind tag have no such column; leave it out; "),
        ("tasks/text", ("--text", "x", "--config.task.kind=choice"), "--text: tasks of the kind choice have no such column"),
    ],
)
def test_a_recipe_or_a_column_of_another_kind(
    config: str, column: tuple[str, ...], message: str, tuned: Path, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    command = ["finetune", "--config", config, "--init-from", str(tuned / "pretrained"), "--workdir", str(tmp_path / "runs"), *column]
    assert main(command) == 2 and capsys.readouterr().err.startswith(f"jaxenc: {message}")


def test_inspect_lists_the_fields_of_a_task(capsys: pytest.CaptureFixture) -> None:
    """With their values, those of overrides too; without --fields a task is refused, and told so."""
    assert main(["inspect", "--config", "tasks/text", "--fields", "--config.train.epochs=7"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines if line.startswith(("task.metric", "train.epochs", "data.dev="))] == [
        "task.metric=accuracy",
        "data.dev=",
        "train.epochs=7.0",
    ]
    assert all(len(line.split(maxsplit=1)) == 2 for line in lines)
    assert main(["inspect", "--config", "tasks/text"]) == 2
    assert "use it with `jaxenc finetune`; `jaxenc inspect --fields` prints its fields" in capsys.readouterr().err


def test_commands_say_which_seed_they_take(tuned: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """`evaluate` and `export` of a work directory: the best seed with its score, or the one that is named."""
    scores = [one["scores"]["accuracy"] for one in json.loads((tuned / "runs" / "results.json").read_text())["seeds"]]
    best = scores.index(max(scores))
    chosen = ([], best, f", the best of 2 on the dev set, accuracy {max(scores):.4f}")
    for more, seed, why in (chosen, (["--seed", str(1 - best)], 1 - best, "")):
        with mock.patch("jaxenc.tasks.evaluate.held_out.of_job") as job:
            job.return_value.step, job.return_value.numbers = 60, {}
            assert main(["evaluate", "--workdir", str(tuned / "runs"), *more]) == 0
        assert (
            capsys.readouterr().err == f"evaluate: {tuned}/runs/seed_{seed}/checkpoints/60{why}\ndev: 103 examples\npreparing the model\n"
        )
        assert main(["export", "--model", str(tuned / "runs"), "--out", str(tmp_path / str(seed)), *more]) == 0
        assert f"export: {tuned}/runs/seed_{seed}/checkpoints/60{why}\n" in capsys.readouterr().err


def test_the_report_of_a_fine_tuning(tuned: Path, capsys: pytest.CaptureFixture) -> None:
    """Of all seeds their table; of one its curves, without a word on count baselines, which are of pretraining data."""
    assert main(["report", "--workdir", str(tuned / "runs")]) == 0
    said = capsys.readouterr()
    assert said.out.splitlines()[0].split()[:3] == ["seed", "step", "accuracy"] and not said.err
    assert said.out.splitlines()[-1] == f"curves:  jaxenc report --workdir {tuned}/runs/seed_0"
    assert main(["report", "--workdir", str(tuned / "runs" / "seed_0")]) == 0
    said = capsys.readouterr()
    assert "curves   " in said.out and not said.err
    (tuned / "runs" / "seed_0" / "report.png").unlink()
