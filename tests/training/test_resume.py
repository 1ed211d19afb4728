"""R25: every refusal of a changed field on a resume says how to keep as much of the run as can be kept, and that works.

The runs have a real nano model and a real optimizer state; their steps compute nothing.
"""

import contextlib
import re
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from jaxenc.cli.main import main
from jaxenc.data.build import build
from jaxenc.data.tokenizers import wordpiece
from jaxenc.errors import UserError
from jaxenc.objectives import encoder
from jaxenc.training.override import override
from jaxenc.training.pretrain import pretrain
from jaxenc.training.run import Run
from tests import tiny
from tests.training import test_loop
from tests.training.stepping import stepping


def recipe(data: Path) -> Run:
    """Four steps, checkpoints at step 2 and 4."""
    return override(test_loop.recipe(data), {"train.steps": 4, "checkpoint.every": 2, "eval.every": 4, "optim.warmup": 1})


@contextlib.contextmanager
def idle() -> Iterator[None]:
    """Steps that compute nothing, of the model that the run has."""
    init = encoder.init
    with tiny.on_one_device(), stepping(), mock.patch.object(encoder, "init", init):
        yield


@pytest.fixture(scope="module")
def finished(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    with idle():
        assert pretrain(recipe(data), tmp_path_factory.mktemp("finished") / "run").step == 4
    return tmp_path_factory.getbasetemp() / "finished0" / "run"


@pytest.fixture(scope="module")
def stopped(finished: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same run, stopped at step 2."""
    workdir = shutil.copytree(finished, tmp_path_factory.mktemp("stopped") / "run")
    shutil.rmtree(workdir / "checkpoints" / "4")
    return workdir


def refusal(run: Run, workdir: Path) -> str:
    """What `pretrain` says of `run` in the directory of another."""
    with idle(), pytest.raises(UserError) as error:
        pretrain(run, workdir)
    return str(error.value)


def follow(said: str, run: Run, workdir: Path) -> int:
    """The step that `run` ends at where it starts as the refusal says, overrides included."""
    ((flag, place),) = re.findall(r"--(continue-from|init-from) ([^\s;]+)", said)
    given = [item.partition("=") for item in re.findall(r"--config\.(\S+=\S+)", said)]
    values = {path: value == "true" if "one_schedule" in path else tuple(map(int, value.split(","))) for path, _, value in given}
    with idle():
        return pretrain(override(run, values), workdir, **{flag.replace("-", "_"): place}).step


@pytest.mark.parametrize(
    "values, steps",
    [({"train.steps": 6}, 6), pytest.param({"phases.steps": (4, 3), "phases.one_schedule": True}, 7, marks=pytest.mark.full)],
)
def test_r25_a_finished_run_takes_more_steps(values: dict[str, Any], steps: int, data: Path, finished: Path, tmp_path: Path) -> None:
    """The named case. Nothing is lost: it goes on at step 4, in a new work directory."""
    said = refusal(override(recipe(data), values), finished)
    assert said.endswith(f"; set them back, or keep its state in a new --workdir with --continue-from {finished}")
    assert follow(said, override(recipe(data), values), tmp_path / "more") == steps
    assert [int(line.split()[0]) for line in (tmp_path / "more" / "examples.log").read_text().splitlines()] == list(range(5, steps + 1))


def test_r25_the_command_says_it_too(data: Path, finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    file = str(test_loop.write_recipe(recipe(data), tmp_path / "recipe.json"))
    command = ["pretrain", "--config", file, "--config.train.steps=5", "--workdir"]
    with idle():
        assert main([*command, str(finished)]) == 2
        said = capsys.readouterr().err
        assert f"{finished}: checkpoint train.steps 4, this run's 5; " in said and said.count("\n") == 1
        advice = re.search("--continue-from [^\\s]+", said)[0].split()
        assert main([*command, str(tmp_path / "more"), *advice]) == 0


STATE = {
    "optim.lr": 1e-3,
    "train.steps": 9,
    "train.precision": "bfloat16",
    "train.remat": "block",
    "train.dupe_factor": 3,
    "optim.warmup": 2,
    "optim.schedule": "constant",
    "optim.weight_decay": 0.1,
    "optim.clip": 0.5,
    "optim.layer_decay": 0.8,
    "objective.rate": 0.4,
    "model.dropout": 0.0,
}
PHASE = {"train.batch": 16, "train.seed": 5, "data.length": 16, "data.rows": "doc_sentences"}
PARAMETERS = {
    "optim.name": "adagrad",
    "optim.freeze": ("embeddings/.*",),
    "optim.unfreeze": ("embeddings/.*=2",),
    "optim.decay_corrected": True,
    "objective.kind": "mlm_nsp",
}
NOTHING = {"model.layers": 2, "model.width": 32, "model.kind": "albert", "model.positions": 32}
SIZES = {"model.width": 16, "model.layers": 1, "model.heads": 2, "model.feed_forward": 32, "model.positions": 24}
ALLOWED = {"mesh.preset": "fsdp", "train.microbatches": 2, "checkpoint.keep": 3, "eval.rows": 5, "log.every": 2}


def first_of(fields: Iterable[str]) -> list[Any]:
    """The first field, and in the long suite the others."""
    short, *others = fields
    return [short, *(pytest.param(field, marks=pytest.mark.full) for field in others)]


@pytest.mark.parametrize("field", first_of(STATE))
def test_r25_the_state_is_kept_where_it_can_be(field: str, data: Path, stopped: Path, tmp_path: Path) -> None:
    run = override(recipe(data), {field: STATE[field]})
    said = refusal(run, stopped)
    assert f"checkpoint {field} " in said and said.endswith(f"keep its state in a new --workdir with --continue-from {stopped}")
    assert follow(said, run, tmp_path / "next") == run.train.steps


@pytest.mark.parametrize("field", first_of(PHASE))
def test_r25_other_rows_begin_a_phase(field: str, data: Path, stopped: Path, tmp_path: Path) -> None:
    run = override(recipe(data), {field: PHASE[field]})
    said = refusal(run, stopped)
    assert f"checkpoint {field} " in said and f"--continue-from {stopped}; begin a new phase" in said
    assert follow(said, run, tmp_path / "next") == 4


def test_r25_other_data_is_named_by_its_folder(data: Path, other_data: Path, stopped: Path, tmp_path: Path) -> None:
    """The same tokenizer and another text; a folder that is built again is named by its fingerprint, for no field differs."""
    run = recipe(other_data)
    said = refusal(run, stopped)
    assert f"checkpoint data.path {data}, this run's {other_data}; set them back" in said
    assert follow(said, run, tmp_path / "next") == 4
    moved = shutil.copytree(data, tmp_path / "moved")
    with idle():
        assert pretrain(recipe(moved), shutil.copytree(stopped, tmp_path / "resumed")).step == 4
    shutil.rmtree(moved)
    shutil.copytree(other_data, moved)
    assert "checkpoint data.path " in refusal(recipe(moved), stopped)
    again = shutil.copytree(stopped, tmp_path / "again")
    for file in (again / "config.json", again / "checkpoints" / "2" / "config.json"):
        file.write_text(file.read_text().replace(str(data), str(moved)))
    assert "checkpoint data.fingerprint " in refusal(recipe(moved), again)


@pytest.mark.parametrize("field", first_of(PARAMETERS))
def test_r25_the_parameters_are_kept_where_the_state_cannot_be(field: str, data: Path, stopped: Path, tmp_path: Path) -> None:
    values = {field: PARAMETERS[field], **({"data.rows": "pairs"} if field == "objective.kind" else {})}
    run = override(recipe(data), values)
    said = refusal(run, stopped)
    assert f"checkpoint {field} " in said and said.endswith(f"from step 0 in a new --workdir, with --init-from {stopped}")
    assert follow(said, run, tmp_path / "next") == 4


@pytest.mark.parametrize("field", first_of(NOTHING))
def test_r25_a_model_of_another_shape_starts_from_scratch(field: str, data: Path, stopped: Path, tmp_path: Path) -> None:
    values = {field: NOTHING[field], **({"model.kind": "albert", "model.embedding": 16, **SIZES} if field == "model.kind" else {})}
    run = override(recipe(data), values)
    assert refusal(run, stopped).endswith("or start from scratch in a new --workdir: its parameters do not fit this run")
    for flag in ("continue_from", "init_from"):
        with idle(), pytest.raises(UserError):
            pretrain(run, tmp_path / "next", **{flag: str(stopped)})


def test_r25_another_tokenizer_is_not_worked_around(data: Path, stopped: Path, tmp_path: Path) -> None:
    """The data is built with the run's own, which the message names; the numbers that follow from the tokenizer are not named."""
    text = data.parent / "text.txt"
    wordpiece.train([text.read_text()], 90).save(tmp_path / "tokenizer")
    build([str(text)], tmp_path / "tokenizer", tmp_path / "data", held_out=0.2)
    said = refusal(recipe(tmp_path / "data"), stopped)
    assert "checkpoint data.path " in said and "checkpoint tokenizer " in said and "vocab_size" not in said
    own = re.search(r"build the data with (\S+),", said)[1]
    build([str(text)], Path(own), tmp_path / "again", held_out=0.2)
    with idle():
        assert pretrain(recipe(tmp_path / "again"), shutil.copytree(stopped, tmp_path / "run")).step == 4


def test_r25_how_a_run_is_computed_may_change(data: Path, stopped: Path, tmp_path: Path) -> None:
    with idle():
        assert pretrain(override(recipe(data), ALLOWED), shutil.copytree(stopped, tmp_path / "run")).step == 4


def test_r25_a_run_without_a_checkpoint_has_nothing_to_keep(data: Path, stopped: Path, tmp_path: Path) -> None:
    shutil.copytree(stopped, tmp_path / "run", ignore=shutil.ignore_patterns("checkpoints"))
    said = refusal(override(recipe(data), {"train.steps": 9}), tmp_path / "run")
    assert said.endswith("checkpoint train.steps 4, this run's 9; set them back, or choose another --workdir")
