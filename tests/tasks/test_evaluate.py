"""The scores of a fine-tuned checkpoint: every example once on any devices; other files; classes go by their names."""

import dataclasses
import json
from pathlib import Path

import jax
import numpy as np
import pytest

import jaxenc
from jaxenc.cli.main import main
from jaxenc.errors import UserError
from jaxenc.inference.model import Model
from jaxenc.tasks import recipe
from jaxenc.tasks.finetune import finetune
from jaxenc.training.held_out import Evaluation
from tests import tiny
from tests.selection import thinned
from tests.tuned import CLASSES, DEV, STEPS, again, examples, settings, write

PERMUTED = [2, 0, 1]


@pytest.fixture(scope="module")
def seed(tuned: Path) -> Path:
    return tuned / "runs" / "seed_0"


def result(run: Path) -> dict[str, float]:
    return json.loads((run / "result.json").read_text())["scores"]


def answers(run: Path) -> list[str]:
    return [json.loads(line)["answer"] for line in (run / "dev.jsonl").read_text().splitlines()]


def accuracy(given: list[str], rows: list[tuple[str, str]]) -> float:
    assert len(given) == len(rows)
    return sum(answer == label for answer, (_, label) in zip(given, rows, strict=True)) / len(rows)


def check(found: Evaluation, seed: Path) -> None:
    """Every example once: counts and scores exactly those of the answers that fine-tuning wrote, the loss by rounding (<= 1e-6)."""
    numbers, wanted = dict(found.numbers), result(seed)
    assert numbers.pop("classifier_predictions") == DEV
    assert numbers.pop("classifier_loss") == pytest.approx(wanted.pop("classifier_loss"), rel=1e-6)
    assert numbers == wanted
    assert numbers["accuracy"] == numbers["classifier_accuracy"] == accuracy(answers(seed), examples(DEV, 2))


@pytest.mark.parametrize("batch", thinned([1, 7, 16, 64, 103], 64))
def test_b92_the_batch_changes_no_score(batch: int, seed: Path) -> None:
    with tiny.on_one_device():
        check(jaxenc.evaluate(seed, batch=batch), seed)


@pytest.mark.parametrize("batch, mesh", thinned([(32, "dp"), (7, "fsdp")], (7, "fsdp")))
def test_eight_devices_change_no_score(batch: int, mesh: str, seed: Path) -> None:
    found = jaxenc.evaluate(seed, batch=batch, mesh=mesh, predictions=True)
    check(found, seed)
    assert found.index.tolist() == list(range(DEV))
    assert [CLASSES[i] for i in found.predictions["classifier"].argmax(axis=1)] == answers(seed)


def test_the_command_takes_a_work_directory_and_prints_the_scores(tuned: Path, capsys: pytest.CaptureFixture) -> None:
    """Of the best seed; and of another labelled file."""
    with tiny.on_one_device():
        assert main(["evaluate", "--workdir", str(tuned / "runs")]) == 0
        best = max((0, 1), key=lambda seed: result(tuned / "runs" / f"seed_{seed}")["accuracy"])
        numbers = json.loads(capsys.readouterr().out)
        assert numbers["accuracy"] == result(tuned / "runs" / f"seed_{best}")["accuracy"] and numbers["step"] == STEPS
        rows = examples(40, 9)
        other = write(tuned / "other.tsv", rows)
        assert main(["evaluate", "--workdir", str(tuned / "runs" / "seed_1"), "--data", str(other), "--step", str(STEPS)]) == 0
    model = jaxenc.load(tuned / "runs" / "seed_1")
    assert json.loads(capsys.readouterr().out)["accuracy"] == accuracy(model.predict([text for text, _ in rows]), rows)


def test_what_cannot_be_evaluated(seed: Path, tmp_path: Path) -> None:
    write(tmp_path / "wrong.tsv", [("red", "no"), ("blue", "perhaps")])
    (tmp_path / "unlabelled.tsv").write_text("sentence\tlabel\nred\t\n")
    (tmp_path / "other.tsv").write_text("sentence\tclass\nred\tno\n")
    for data, message in (
        (tmp_path / "wrong.tsv", r"wrong.tsv:3: the label is 'perhaps'"),
        (tmp_path / "unlabelled.tsv", r"unlabelled.tsv:2: the column label holds no label"),
        (tmp_path / "none.tsv", "none.tsv: no such file"),
        (tmp_path / "other.tsv", "other.tsv:1: has no column label; rename the right one of its columns: 'sentence', 'class'$"),
    ):
        with pytest.raises(UserError, match=message):
            jaxenc.evaluate(seed, data=data)
    with pytest.raises(UserError, match="config.eval.rows: a task is evaluated on all of its examples; leave it out"):
        jaxenc.evaluate(seed, values={"eval.rows": 10})
    with pytest.raises(UserError, match="--step 7: no such checkpoint in .*; use one of 60"):
        jaxenc.evaluate(seed, step=7)
    model = jaxenc.load(seed)
    without = dataclasses.replace(model, tune=dataclasses.replace(model.tune, data=dataclasses.replace(model.tune.data, dev="")))
    without.save(tmp_path / "model")
    with pytest.raises(UserError, match="was fine-tuned without a dev set; name a labelled file with --data FILE"):
        jaxenc.evaluate(tmp_path / "model")


def renamed(model: Model, names: tuple[str, ...], order: list[int]) -> Model:
    """The same model with its classes in another order, and with other names."""
    dense = model.params["classifier"]["dense"]
    params = {
        **model.params,
        "classifier": {"dense": {"kernel": dense["kernel"][:, np.array(order)], "bias": dense["bias"][np.array(order)]}},
    }
    labels = tuple(names[i] for i in order)
    config = dataclasses.replace(model.config, objective=dataclasses.replace(model.config.objective, labels=labels))
    tune = dataclasses.replace(model.tune, task=dataclasses.replace(model.task, labels=labels))
    return dataclasses.replace(model, config=config, params=params, tune=tune)


def test_b87_the_order_of_classes_changes_no_answer(seed: Path, tuned: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """A model whose classes have another order than the sorted ones that fine-tuning finds: evaluated, and as the start of another run, it
    has the scores and the answers that it had; the case of the names does not matter."""
    renamed(jaxenc.load(seed), CLASSES, PERMUTED).save(tmp_path / "permuted")
    renamed(jaxenc.load(seed), ("Maybe", "No", "YES"), PERMUTED).save(tmp_path / "upper")
    run = tmp_path / "runs" / "seed_0"
    with tiny.on_one_device():
        check(jaxenc.evaluate(tmp_path / "permuted"), seed)
        finetune(again(settings(tuned)), str(tmp_path / "upper"), run.parent)
    assert answers(run) == answers(seed) and result(run)["accuracy"] == result(seed)["accuracy"]
    assert recipe.of_checkpoint(run / "checkpoints" / "1").task.labels == ("yes", "maybe", "no")
    assert "starts fresh" not in capsys.readouterr().err


def test_a_head_for_other_classes_starts_fresh_and_the_run_says_so(seed: Path, tuned: Path, tmp_path: Path, capsys) -> None:
    """As many classes, of which one has another name. Everything but the head is the model's, up to the step of 1e-9."""
    renamed(jaxenc.load(seed), ("maybe", "no", "perhaps"), [0, 1, 2]).save(tmp_path / "other")
    with tiny.on_one_device():
        finetune(again(settings(tuned)), str(tmp_path / "other"), tmp_path / "runs")
    said = capsys.readouterr().err
    assert "classifier starts fresh: it has the classes maybe, no, perhaps in " in said and ", and maybe, no, yes in this run" in said
    before, after = (jax.device_get(jaxenc.load(path).params) for path in (seed, tmp_path / "runs" / "seed_0"))
    head = [params.pop("classifier")["dense"]["kernel"] for params in (before, after)]
    assert np.abs(head[0] - head[1]).max() > 1e-2
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=0, atol=1e-7), before, after)
