"""A run with a teacher: the copy in the run directory, a resume without the teacher's folder, and which teachers are refused."""

import dataclasses
import functools
import json
import shutil
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from jaxenc.checkpoint import restore
from jaxenc.checkpoint.restore import Start
from jaxenc.checkpoint.verify import verify
from jaxenc.cli.main import main
from jaxenc.convert import hf
from jaxenc.data import tokenizers
from jaxenc.data.manifest import read as read_manifest
from jaxenc.errors import UserError
from jaxenc.families.bert.model import BertConfig
from jaxenc.families.distilbert.model import DistilbertConfig
from jaxenc.inference import load
from jaxenc.inference.model import Model
from jaxenc.objectives.base import ObjectiveConfig
from jaxenc.objectives.distillation import DistillationConfig
from jaxenc.objectives.heads import HeadsConfig
from jaxenc.objectives.mlm import MlmConfig
from jaxenc.training import begin, prepare, refusals
from jaxenc.training import teacher as teachers
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
    Model(run, tiny.drawn(run, seed), tokenizers.load(data / "tokenizer")).save(folder)
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
    """An uninterrupted run of 20 steps on one device."""
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
def test_a_stopped_run_resumes_without_the_folder_of_its_teacher(data: Path, whole: Path, tmp_path: Path) -> None:
    """Stopped by a signal after step 7 and resumed: state, metrics and rows are bitwise those of the uninterrupted run. `jaxenc
    evaluate` gives the metrics that the run logged."""
    own = make_teacher(tmp_path / "teacher", data)
    run = recipe(data, own)
    assert test_loop.run_until(7, run, tmp_path / "run") == 7
    shutil.rmtree(own)
    assert pretrain(run, tmp_path / "run").step == 20
    same.assert_same_run(whole, tmp_path / "run", 0, 20)
    logged = test_loop.rows(whole)[-1]
    found = evaluate(tmp_path / "run").numbers
    assert found == {name: logged[name] for name in found} and {"soft_loss", "cosine_loss", "mlm_loss"} < found.keys()


@pytest.mark.usefixtures("one_device")
def test_a_student_starts_as_its_teacher_or_as_another_run(data: Path, teacher: Path, whole: Path, tmp_path: Path) -> None:
    """A fresh run from the teacher's first layer; with --init-from, from that run."""
    job = prepare.prepare(recipe(data, teacher), tmp_path)
    objective, read = job.objective(job.run.plan[0]), functools.partial(teachers.load_params, job.teacher, job.run, tmp_path, job.models)

    def first(start: Start) -> dict[str, Any]:
        with jax.set_mesh(job.mesh):
            return jax.device_get(begin.begin(start, job.run.plan, 0, job.layout, objective, (), read)).params

    fresh = Start("fresh", tmp_path, 0)
    student, given = first(fresh), load.load(teacher).params
    assert "from its teacher's layers" in prepare.describe(job, fresh)
    tiny.assert_bitwise(student["encoder"]["layer_00"], given["encoder"]["layer_00"])
    assert set(student["embeddings"]) == {"token", "position", "norm"} and set(given["embeddings"]) > set(student["embeddings"])
    tiny.assert_bitwise((student["mlm"], student["embeddings"]["token"]), (given["mlm"], given["embeddings"]["token"]))
    tiny.assert_bitwise(first(Start("init", whole / "checkpoints" / "20", 0)), load.load(whole).params)


@pytest.mark.usefixtures("one_device")
def test_what_was_distilled_is_the_student_alone(whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """Loaded, described and exported. tests/parity/test_live_distillation.py opens the export in transformers."""
    model = load.load(whole)
    assert set(model.params) == {"embeddings", "encoder", "mlm"} and "distilbert, 1 layers of 16" in repr(model)
    assert main(["export", "--model", str(whole), "--to", "hf", "--out", str(tmp_path / "out")]) == 0
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    assert config["architectures"] == ["DistilBertForMaskedLM"]
    tiny.assert_bitwise(hf.load(tmp_path / "out").params, jax.device_get(model.params))


def test_another_teacher_is_refused(data: Path, begun: Path, tmp_path: Path) -> None:
    """One of the same shape, and none where the copy is damaged and the folder is gone. Nothing is changed."""
    before = sorted(path.name for path in begun.rglob("*"))
    with pytest.raises(UserError, match="^objective.teacher: .*other.* is .*, and .*begun was distilled from .*[^\n]$"):
        pretrain(recipe(data, make_teacher(tmp_path / "other", data, seed=1)), begun)
    (copy_of(begun) / "CHECKSUMS.json").write_text("{}")
    with pytest.raises(UserError, match="no complete copy of the teacher and objective.teacher '.*nothing' does not exist; [^\n]*$"):
        pretrain(recipe(data, tmp_path / "nothing"), begun)
    assert sorted(path.name for path in begun.rglob("*")) == before


@pytest.mark.full
@pytest.mark.usefixtures("one_device")
def test_a_damaged_copy_is_replaced_from_a_teacher_that_has_moved(data: Path, teacher: Path, begun: Path, tmp_path: Path) -> None:
    (copy_of(begun) / "CHECKSUMS.json").write_text("{}")
    assert pretrain(recipe(data, shutil.copytree(teacher, tmp_path / "moved")), begun).step == 20


def test_a_run_with_another_teacher_does_not_continue_it(data: Path, whole: Path, tmp_path: Path) -> None:
    more = dataclasses.replace(test_loop.recipe(data).train, steps=22)
    other = make_teacher(tmp_path / "other", data, seed=1)
    with pytest.raises(UserError, match="was distilled from .*, and objective.teacher is .*; name the same teacher, or use --init-from"):
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
        (lambda data, folder: "", "^objective.teacher is not set; name a run .* with --config.objective.teacher=DIR$"),
        (lambda data, folder: folder / "none", "^objective.teacher .*none: not a folder; name a run directory or one of its checkpoints"),
        (
            lambda data, folder: hf.save(folder / "hf", load.load(make_teacher(folder / "t", data))) and folder / "hf",
            "hf: not a run directory; make one of it with `jaxenc convert --from hf:.*hf --to DIR`$",
        ),
        (
            lambda data, folder: make_teacher(folder / "t", data, HeadsConfig(("pooler",))),
            "objective.teacher .* it has no mlm; name a model",
        ),
        (lambda data, folder: make_teacher(folder / "t", data, width=24), "are 24 wide and the student's 16; set model.width to 24"),
    ],
    ids=["unset", "nothing", "transformers", "headless", "wide"],
)
def test_an_unusable_teacher_is_one_line(make: Any, words: str, data: Path, tmp_path: Path) -> None:
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
    dataclasses.replace(model, tokenizer=shuffled).save(tmp_path / "other")
    with pytest.raises(UserError, match="objective.teacher .*other.*: the teacher has another tokenizer .*; build the data with"):
        pretrain(recipe(data, tmp_path / "other"), tmp_path / "run")


def test_a_teacher_with_more_rows_than_pieces(data: Path, tmp_path: Path) -> None:
    """R13: a random student needs no such rows (`test_spare_rows.py` has its loss); one that starts as its teacher does, and is told."""
    own = make_teacher(tmp_path / "teacher", data, spare_rows=3)
    config, model = DistillationConfig(teacher=str(own)), DistilbertConfig(**SIZES, layers=1)
    for objective, student in ((dataclasses.replace(config, start="random"), model), (config, dataclasses.replace(model, spare_rows=3))):
        job = prepare.prepare(recipe(data, own, objective=objective, model=student), tmp_path)
        refusals.refuse_other_teacher(job, tmp_path)
        prepare.check(job)
    with pytest.raises(UserError, match="set model.spare_rows to 3, or objective.start to random"):
        pretrain(recipe(data, own), tmp_path / "run")


@pytest.mark.usefixtures("one_device")
def test_a_damaged_copy_is_written_again_while_the_teacher_is_there(data: Path, teacher: Path, begun: Path) -> None:
    """It is set aside. Without the teacher the run is refused, and nothing is moved."""
    (copy_of(begun) / "config.json").write_bytes(b"{}")
    with pytest.raises(UserError, match="does not exist; put it back there, or name its new place"):
        pretrain(recipe(data, begun / "gone"), begun)
    assert [path.name for path in copy_of(begun).parent.iterdir()] == ["0"]
    assert pretrain(recipe(data, teacher), begun).step == 20
    assert verify(copy_of(begun)) == [] and (copy_of(begun).parent / "0.bad-1").exists()


def test_a_damaged_record_is_one_line(data: Path, teacher: Path, begun: Path) -> None:
    record = begun / "teacher.json"
    for text, words in (
        ("{", "teacher.json: not JSON"),
        ("{}", "it has no fingerprint"),
        ('{"fingerprint": "../x"}', "it has no fingerprint"),
    ):
        record.write_text(text)
        with pytest.raises(UserError, match=words):
            pretrain(recipe(data, teacher), begun)
    assert restore.find(begun, True, "x").name == "10"
