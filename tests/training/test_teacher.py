"""A run with a teacher: what it keeps of it, how it goes on without the teacher's folder, and which teachers it refuses."""

import dataclasses
import json
import shutil
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from jaxenc.checkpoint import restore
from jaxenc.checkpoint.verify import verify
from jaxenc.cli.main import main
from jaxenc.convert import hf
from jaxenc.data import tokenizers
from jaxenc.data.manifest import read as read_manifest
from jaxenc.errors import UserError
from jaxenc.families.bert.model import BertConfig
from jaxenc.families.distilbert.model import DistilbertConfig
from jaxenc.inference import load
from jaxenc.inference.load import Model
from jaxenc.objectives.base import ObjectiveConfig
from jaxenc.objectives.distillation import DistillationConfig
from jaxenc.objectives.heads import HeadsConfig
from jaxenc.objectives.mlm import MlmConfig
from jaxenc.optim.optimizer import OptimConfig
from jaxenc.training.held_out import evaluate
from jaxenc.training.pretrain import pretrain
from jaxenc.training.run import Run
from tests import tiny
from tests.faults import same
from tests.training import test_loop

SIZES = {"width": 16, "heads": 2, "feed_forward": 32, "positions": 24}


def make_teacher(folder: Path, data: Path, objective: ObjectiveConfig = MlmConfig(), seed: int = 0, **fields: Any) -> Path:
    """A run directory with the random parameters of a BERT of two layers, for the tokenizer of the data."""
    model = BertConfig(**{**SIZES, "layers": 2, **fields}).with_vocabulary(read_manifest(data).tokenizer)
    run = Run(objective, model)
    load.save(folder, Model(run, tiny.drawn(run, seed), tokenizers.load(data / "tokenizer")))
    return folder


def recipe(data: Path, teacher: Path | str, **parts: Any) -> Run:
    """A nano student of one layer, float32 and dropout 0.1; checkpoints and evaluations at step 10 and 20 of 20."""
    return test_loop.recipe(
        data, **{"objective": DistillationConfig(teacher=str(teacher)), "model": DistilbertConfig(**SIZES, layers=1), **parts}
    )


@pytest.fixture(scope="module")
def teacher(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_teacher(tmp_path_factory.mktemp("teacher") / "run", data)


@pytest.fixture(scope="module")
def whole(data: Path, teacher: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of 20 steps on one device that nothing stopped."""
    workdir = tmp_path_factory.mktemp("whole") / "run"
    with tiny.on_one_device():
        assert pretrain(recipe(data, teacher), workdir).step == 20
    return workdir


@pytest.fixture
def begun(whole: Path, tmp_path: Path) -> Path:
    """`whole` as it was at step 10."""
    workdir = shutil.copytree(whole, tmp_path / "begun")
    shutil.rmtree(workdir / "checkpoints" / "20")
    return workdir


def copy_of(workdir: Path) -> Path:
    """The one checkpoint below frozen/."""
    (folder,) = workdir.glob("frozen/*/0")
    return folder


def frozen_numbers(step_dir: Path) -> dict[str, np.ndarray]:
    return {path: leaf for path, leaf in same.state(step_dir).items() if path.startswith("params/")}


@pytest.mark.usefixtures("one_device")
def test_the_teacher_is_copied_once_and_is_in_no_step(whole: Path, teacher: Path) -> None:
    """The copy is the teacher's parameters, bit for bit, and verifies and loads alone; a step holds the student and the teacher's
    fingerprint, and no moment of the teacher."""
    tiny.assert_bitwise(frozen_numbers(copy_of(whole)), frozen_numbers(teacher / "checkpoints" / "0"))
    assert verify(copy_of(whole)) == [] and load.load(copy_of(whole)).params.keys() == {"embeddings", "encoder", "mlm"}
    for step in (10, 20):
        step_dir = whole / "checkpoints" / str(step)
        assert not [path for path in same.state(step_dir) if "teacher" in path or path.startswith("frozen/")]
        assert json.loads((step_dir / "teacher.json").read_text())["fingerprint"] == copy_of(whole).parent.name
    assert (whole / "teacher.json").read_bytes() == (whole / "checkpoints" / "20" / "teacher.json").read_bytes()


@pytest.mark.slow
@pytest.mark.usefixtures("one_device")
def test_a_run_that_was_stopped_goes_on_without_the_folder_of_its_teacher(data: Path, whole: Path, tmp_path: Path) -> None:
    """Stopped by a signal after step 7 and started again: state, numbers and rows are those of the run that nothing stopped, bit for bit.
    The numbers of `jaxenc evaluate` are the run's own."""
    own = make_teacher(tmp_path / "teacher", data)
    run = recipe(data, own)
    assert test_loop.run_until(7, run, tmp_path / "run") == 7
    shutil.rmtree(own)
    assert pretrain(run, tmp_path / "run").step == 20
    same.assert_same_run(whole, tmp_path / "run", 0, 20)
    logged = test_loop.rows(whole)[-1]
    found = evaluate(tmp_path / "run").numbers
    assert found == {name: logged[name] for name in found} and {"soft_loss", "cosine_loss", "mlm_loss"} < found.keys()


@pytest.mark.slow
def test_a_student_starts_as_its_teacher_or_as_another_run(
    data: Path, teacher: Path, whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    """Without a step of training, from the teacher's first layer; with --init-from, from that run."""
    still = {"optim": OptimConfig(lr=0.0, warmup=0), "train": dataclasses.replace(test_loop.recipe(data).train, steps=1)}
    run = recipe(data, teacher, **still)
    with tiny.on_one_device():
        pretrain(run, tmp_path / "fresh")
        assert "from its teacher's layers" in capsys.readouterr().err
        pretrain(run, tmp_path / "init", init_from=str(whole))
    student, given = load.load(tmp_path / "fresh").params, load.load(teacher).params
    tiny.assert_bitwise(student["encoder"]["layer_00"], given["encoder"]["layer_00"])
    assert set(student["embeddings"]) == {"token", "position", "norm"} and set(given["embeddings"]) > set(student["embeddings"])
    tiny.assert_bitwise((student["mlm"], student["embeddings"]["token"]), (given["mlm"], given["embeddings"]["token"]))
    tiny.assert_bitwise(load.load(tmp_path / "init").params, load.load(whole).params)


@pytest.mark.usefixtures("one_device")
def test_what_was_distilled_is_the_student_alone(whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """Loaded, described and exported. tests/parity/test_live_distillation.py opens the export in transformers."""
    model = load.load(whole)
    assert set(model.params) == {"embeddings", "encoder", "mlm"} and "distilbert, 1 layers of 16" in repr(model)
    assert main(["export", "--model", str(whole), "--to", "hf", "--out", str(tmp_path / "out")]) == 0
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    assert config["architectures"] == ["DistilBertForMaskedLM"]
    tiny.assert_bitwise(hf.load(tmp_path / "out").params, jax.device_get(model.params))


@pytest.mark.parametrize("other", ["seed", "gone", "copy"])
def test_another_teacher_does_not_go_on(other: str, data: Path, teacher: Path, begun: Path, tmp_path: Path) -> None:
    """Nothing is changed: a model of the same shape, a copy that is damaged with nothing to copy it from again, and a folder elsewhere
    with the same teacher, which goes on."""
    before = sorted(path.name for path in begun.rglob("*"))
    if other == "seed":
        run, words = recipe(data, make_teacher(tmp_path / "other", data, seed=1)), "objective.teacher: .* learns from the teacher .* is "
    elif other == "gone":
        run, words = recipe(data, tmp_path / "nothing"), "holds no whole copy of the teacher and objective.teacher '.*nothing' is not there"
        (copy_of(begun) / "CHECKSUMS.json").write_text("{}")
    else:
        moved = shutil.copytree(teacher, tmp_path / "moved")
        (copy_of(begun) / "CHECKSUMS.json").write_text("{}")
        with tiny.on_one_device():
            assert pretrain(recipe(data, moved), begun).step == 20
        return
    with pytest.raises(UserError, match=words) as error:
        pretrain(run, begun)
    assert "\n" not in str(error.value) and sorted(path.name for path in begun.rglob("*")) == before


def test_a_run_with_another_teacher_does_not_continue_it(data: Path, whole: Path, tmp_path: Path) -> None:
    more = dataclasses.replace(test_loop.recipe(data).train, steps=22)
    other = make_teacher(tmp_path / "other", data, seed=1)
    with pytest.raises(UserError, match="learns from the teacher"):
        pretrain(recipe(data, other, train=more), tmp_path / "no", continue_from=str(whole))
    assert not (tmp_path / "no" / "config.json").exists()


@pytest.mark.full
def test_a_run_that_continues_another_keeps_its_teacher(data: Path, teacher: Path, whole: Path, tmp_path: Path) -> None:
    more = dataclasses.replace(test_loop.recipe(data).train, steps=22)
    with tiny.on_one_device():
        assert pretrain(recipe(data, teacher, train=more), tmp_path / "next", continue_from=str(whole)).step == 22
    tiny.assert_bitwise(frozen_numbers(copy_of(tmp_path / "next")), frozen_numbers(copy_of(whole)))


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda data, folder: "", "^objective.teacher is not set: name a run .* with --config.objective.teacher=DIR$"),
        (lambda data, folder: folder / "none", "^objective.teacher .*none is not a folder: name a run directory or one of its checkpoints"),
        (
            lambda data, folder: hf.save(folder / "hf", load.load(make_teacher(folder / "t", data))) and folder / "hf",
            "hf is no run directory: make one of it with `jaxenc convert --from hf:.*hf --to DIR`$",
        ),
        (
            lambda data, folder: make_teacher(folder / "t", data, HeadsConfig(("pooler",))),
            "objective.teacher .* it has no mlm: name a model",
        ),
        (lambda data, folder: make_teacher(folder / "t", data, width=24), "are 24 wide and the student's 16: set model.width to 24"),
    ],
    ids=["unset", "nothing", "transformers", "headless", "wide"],
)
def test_what_cannot_teach_is_one_line(make: Any, words: str, data: Path, tmp_path: Path) -> None:
    run = recipe(data, make(data, tmp_path))
    with pytest.raises(UserError, match=words) as error:
        pretrain(run, tmp_path / "run")
    assert "\n" not in str(error.value) and not (tmp_path / "run" / "config.json").exists()


def test_a_teacher_with_another_vocabulary_is_refused(data: Path, tmp_path: Path) -> None:
    """The number of pieces is the same: only the fingerprint differs."""
    own = make_teacher(tmp_path / "teacher", data)
    pieces = (own / "checkpoints" / "0" / "tokenizer" / "vocab.txt").read_text().splitlines()
    (tmp_path / "words").mkdir()
    (tmp_path / "words" / "vocab.txt").write_text("\n".join([*pieces[:-2], pieces[-1], pieces[-2]]) + "\n")
    shuffled = tokenizers.load(tmp_path / "words")
    model = load.load(own)
    load.save(tmp_path / "other", dataclasses.replace(model, tokenizer=shuffled))
    with pytest.raises(UserError, match="made with another tokenizer .* than checkpoint .*other"):
        pretrain(recipe(data, tmp_path / "other"), tmp_path / "run")


@pytest.mark.usefixtures("one_device")
def test_a_damaged_copy_is_written_again_while_the_teacher_is_there(data: Path, teacher: Path, begun: Path) -> None:
    """It is set aside. Without the teacher the run is refused, and nothing is moved."""
    (copy_of(begun) / "config.json").write_bytes(b"{}")
    with pytest.raises(UserError, match="is not there: put it back there, or name its new place"):
        pretrain(recipe(data, begun / "gone"), begun)
    assert [path.name for path in copy_of(begun).parent.iterdir()] == ["0"]
    assert pretrain(recipe(data, teacher), begun).step == 20
    assert verify(copy_of(begun)) == [] and (copy_of(begun).parent / "0.bad-1").exists()


def test_a_damaged_record_is_one_line(data: Path, teacher: Path, begun: Path) -> None:
    record = begun / "teacher.json"
    for text, words in (
        ("{", "teacher.json: not JSON"),
        ("{}", "names no fingerprint"),
        ('{"fingerprint": "../x"}', "names no fingerprint"),
    ):
        record.write_text(text)
        with pytest.raises(UserError, match=words):
            pretrain(recipe(data, teacher), begun)
    assert restore.find(begun, True, "x").name == "10"
