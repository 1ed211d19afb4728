"""What a command does, Python does in one call: the same run, the same numbers."""

import dataclasses
import json
from pathlib import Path
from typing import Any
from unittest import mock

import jax
import numpy as np
import pytest
from jaxenc.configs.bert import base

import jaxenc
from jaxenc import config
from jaxenc.checkpoint.restore import restore_params
from jaxenc.checkpoint.retention import CheckpointConfig
from jaxenc.cli.main import main
from jaxenc.data.sources import DataConfig, open_source
from jaxenc.errors import UserError
from jaxenc.objectives.heads import HeadsConfig
from jaxenc.objectives.pair import PairConfig
from jaxenc.optim.optimizer import OptimConfig
from jaxenc.sharding import partition
from jaxenc.sharding.mesh import MeshConfig
from jaxenc.training import held_out
from jaxenc.training.job import Job
from jaxenc.training.phases import Phase, Phases
from jaxenc.training.settings import TrainConfig
from jaxenc.training.step import compile_step
from jaxenc.tree import Tree
from tests import tiny
from tests.training.stepping import stepping
from tests.training.test_loop import assert_same_run, recipe, rows, write_recipe
from tests.training.test_step import BATCH, eight_rows


def test_pretrain_is_the_command(data: Path, tmp_path: Path) -> None:
    """Bit for bit: the state and its configuration, every logged number and every row."""
    run = recipe(data, mesh=MeshConfig("fsdp"))
    written = write_recipe(run, tmp_path / "recipe.json")
    with stepping():
        outcome = jaxenc.pretrain(run, tmp_path / "python")
        assert main(["pretrain", "--config", str(written), "--workdir", str(tmp_path / "command")]) == 0
        assert outcome.step == 20 and not outcome.preempted and outcome.held_out == {"loss": 1.0}
        assert_same_run(run, tmp_path / "python", tmp_path / "command", 20)
    names = ("config.json", "checkpoints/20/config.json", "checkpoints/20/manifest.json")
    assert all((tmp_path / "python" / name).read_bytes() == (tmp_path / "command" / name).read_bytes() for name in names)


def test_evaluate_is_the_command(pairs: Path, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every held-out number bitwise, which is that of the run. R29: an evaluation splits the parameters as the run's mesh preset says, or
    as the one that it is given."""
    split: list[bool] = []
    monkeypatch.setattr(held_out.restore, "restore_params", lambda *given: kept(split, restore_params(*given)))
    assert main(["evaluate", "--workdir", str(pairs)]) == 0
    said = json.loads(capsys.readouterr().out)
    found = jaxenc.evaluate(pairs)
    logged = rows(pairs)[-1]
    assert {"step": found.step, **found.numbers} == said == {name: logged[name] for name in said}
    assert main(["evaluate", "--workdir", str(pairs), "--mesh", "dp"]) == 0
    copies = json.loads(capsys.readouterr().out)
    np.testing.assert_allclose(copies["mlm_loss"], said["mlm_loss"], rtol=1e-6)
    assert split == [True, True, False]
    with pytest.raises(UserError, match="--step 4: no such checkpoint in .*; use one of 3"):
        jaxenc.evaluate(pairs, step=4)


def test_r29_an_evaluation_takes_what_may_change_on_a_resume(
    pairs: Path, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another mesh of the 8 devices, given field by field, and fewer rows: the command is the call, bit for bit, with a warning of the
    field that an evaluation does not read; the numbers are those of the run's own mesh and batch (<= 1e-6)."""
    meshes: list[dict[str, int]] = []
    monkeypatch.setattr(held_out.restore, "restore_params", lambda *given: placed(meshes, restore_params(*given)))
    values = {"mesh.preset": "fsdp_tp", "mesh.tensor": 4, "mesh.fsdp": 2, "eval.batch": 5, "eval.rows": 21, "train.microbatches": 2}
    given = [f"--config.{path}={value}" for path, value in values.items()]
    assert main(["evaluate", "--workdir", str(pairs), *given]) == 0
    said = capsys.readouterr()
    assert said.err == "warning: --config.train.microbatches has no effect: an evaluation does not read it\n"
    found = jaxenc.evaluate(pairs, values=values)
    assert json.loads(said.out) == {"step": found.step, **found.numbers}
    assert meshes == [{"data": 1, "fsdp": 2, "tensor": 4}] * 2 and found.numbers["next_sentence_predictions"] == 21
    own = jaxenc.evaluate(pairs, values={"eval.rows": 21})
    assert meshes[2] == {"data": 1, "fsdp": 8, "tensor": 1} and found.numbers.keys() == own.numbers.keys()
    for name, number in own.numbers.items():
        assert found.numbers[name] == pytest.approx(number, rel=1e-6), name


@pytest.mark.parametrize(
    "given, words",
    [
        (["--config.mesh.preset=dpp"], "mesh.preset is 'dpp'; use dp, fsdp, fsdp_tp"),
        (["--config.mesh.tensor=2"], "mesh.tensor is 2, and mesh.preset=fsdp does not split over it"),
        (["--config.mesh.preset=fsdp_tp", "--config.mesh.tensor=3"], "mesh.tensor is 3, which does not divide the 8 devices"),
        (["--config.eval.batch=1e3"], "--config.eval.batch=1e3 is not a whole number"),
        (["--config.eval.batch=0"], "eval.batch is 0; it is at least 1"),
        (["--config.optim.lr=1"], "config.optim.lr: the checkpoint decides it in an evaluation; an evaluation takes train.microbatches, "),
        (["--config.objective.rate=1"], "config.objective.rate: the checkpoint decides it in an evaluation; "),
        (["--config.mesh.preste=dp"], "config.mesh.preste: no such field; did you mean mesh.preset"),
        (["--config.preset=dp"], "config.preset: no such field; did you mean mesh.preset?"),
        (["--config.foo=1"], "config.foo: no such field; an evaluation takes train.microbatches, "),
        (["--config.mesh.preset=dp", "--mesh", "dp"], "config.mesh.preset: --mesh sets it too; leave one of the two out"),
        (["--config.eval.batch=8", "--batch", "8"], "config.eval.batch: --batch sets it too; leave one of the two out"),
    ],
)
def test_r29_what_an_evaluation_does_not_take_is_one_line(given: list[str], words: str, pairs: Path, capsys: pytest.CaptureFixture) -> None:
    with mock.patch.object(held_out, "assessment", side_effect=AssertionError):
        assert main(["evaluate", "--workdir", str(pairs), *given]) == 2
    said = capsys.readouterr()
    assert not said.out and words in said.err and said.err.count("\n") == 1


@pytest.mark.parametrize("step, length", [(2, 16), (4, 24)])
def test_a_checkpoint_is_evaluated_as_the_phase_that_wrote_it(step: int, length: int, data: Path, tmp_path: Path) -> None:
    """Also the one on the border of two phases, where the next step belongs to the second."""
    run = recipe(data, phases=Phases(steps=(2, 2), length=(16, 24)), checkpoint=CheckpointConfig(every=2))
    lengths = []

    def evaluation(job: Job, phase: Phase, *ignored: Any) -> Any:
        lengths.append(phase.length)
        return lambda *given: {}

    with stepping(), mock.patch.object(held_out, "assessment", evaluation):
        jaxenc.pretrain(run, tmp_path / "run")
        assert jaxenc.evaluate(tmp_path / "run", step=step).step == step
    assert lengths == [length]


def test_a_run_that_predicts_nothing_for_a_row_is_one_line(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    with stepping():
        jaxenc.pretrain(recipe(data), tmp_path / "run")
    capsys.readouterr()
    with mock.patch.object(held_out, "assessment", side_effect=AssertionError):
        assert main(["evaluate", "--workdir", str(tmp_path / "run"), "--predictions", str(tmp_path / "p.npz")]) == 2
    told = "jaxenc: objective.kind=mlm has no head that predicts for a row; leave out --predictions (in Python, predictions=True)\n"
    assert capsys.readouterr().err == told and not (tmp_path / "p.npz").exists()


def kept(split: list[bool], params: Tree) -> Tree:
    """`params`; notes whether devices hold parts of any of them, and not all a copy."""
    split.append(not all(leaf.is_fully_replicated for leaf in jax.tree.leaves(params)))
    return params


def placed(meshes: list[dict[str, int]], params: Tree) -> Tree:
    """`params`; notes the mesh that they are on."""
    meshes.append(dict(jax.tree.leaves(params)[0].sharding.mesh.shape))
    return params


@pytest.fixture(scope="module")
def pairs(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of three steps that says whether the second part of a row follows the first."""
    run = recipe(data, objective=PairConfig(), mesh=MeshConfig("fsdp"))
    shorter = {"checkpoint": {"every": 3}, "train": {"steps": 3}, "optim": {"warmup": 1}, "data": {"rows": "pairs"}}
    workdir = tmp_path_factory.mktemp("pairs") / "run"
    parts = {name: dataclasses.replace(getattr(run, name), **fields) for name, fields in shorter.items()}
    jaxenc.pretrain(dataclasses.replace(run, **parts), workdir)
    return workdir


def test_predictions_are_of_the_rows_that_the_numbers_are_of(data: Path, pairs: Path) -> None:
    """The numbers are bitwise those without predictions; the accuracy is, exactly, that of the predictions against the source's labels; and
    another batch and mesh predict the same (<= 1e-5)."""
    plain, found = jaxenc.evaluate(pairs), jaxenc.evaluate(pairs, predictions=True)
    assert (found.step, found.numbers) == (plain.step, plain.numbers) == (3, plain.numbers)
    assert not len(plain.index) and not plain.predictions

    source = open_source(DataConfig(path=str(data), rows="pairs", length=24), "held_out", 0, evaluation=True)
    labels = source.rows(0, np.arange(len(source)))["is_random"]
    assert found.index.tolist() == list(range(len(source))) and len(source) % 16
    right = found.predictions["next_sentence"].argmax(axis=1) == labels
    assert 0 < right.mean() < 1 and found.numbers["next_sentence_accuracy"] == right.mean()

    other = jaxenc.evaluate(pairs, batch=5, mesh="fsdp_tp", predictions=True)
    np.testing.assert_array_equal(other.index, found.index)
    np.testing.assert_allclose(other.predictions["next_sentence"], found.predictions["next_sentence"], rtol=0, atol=1e-5)


def test_predictions_of_the_command_are_a_file(pairs: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """It prints what it prints without; the file is that of `jaxenc.evaluate`, bitwise, and is never written over."""
    command = ["evaluate", "--workdir", str(pairs)]
    assert main(command) == main([*command, "--predictions", str(tmp_path / "p.npz")]) == 0
    without, said = capsys.readouterr().out.splitlines()
    assert said == without
    found = jaxenc.evaluate(pairs, predictions=True)
    with np.load(tmp_path / "p.npz") as file:
        tiny.assert_bitwise(dict(file), {"index": found.index, **found.predictions})
    assert [path.name for path in tmp_path.iterdir()] == ["p.npz"]


@pytest.mark.parametrize(
    "name, told",
    [
        ("p.jsonl", "p.jsonl: does not end in .npz; choose another --predictions"),
        ("gone/p.npz", "gone: no such folder; make it, or choose another --predictions"),
        ("taken.npz", "taken.npz: exists already, a file; choose another --predictions"),
        ("run/checkpoints/p.npz", "the checkpoints of a run; choose another --predictions"),
    ],
)
def test_a_bad_place_for_predictions_is_one_line_before_any_work(
    name: str, told: str, pairs: Path, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    (tmp_path / "taken.npz").write_text("mine")
    place = pairs.parent / name if name.startswith("run") else tmp_path / name
    with mock.patch.object(held_out, "assessment", side_effect=AssertionError):
        assert main(["evaluate", "--workdir", str(pairs), "--predictions", str(place)]) == 2
    said = capsys.readouterr()
    assert not said.out and told in said.err and said.err.count("\n") == 1
    assert (tmp_path / "taken.npz").read_text() == "mine" and not place.with_name("p.npz").exists()


def test_seeds_share_one_compilation() -> None:
    """Three seeds through one jitted step, from the same parameters: compiled once, and each has masks and dropout of its own."""
    ready = eight_rows(OptimConfig(), 1e-3)
    config = TrainConfig(batch=8, precision="float32")
    rows = tiny.reads({name: array[:8] for name, array in BATCH.items()}, ready.objective)
    step = compile_step(ready.objective, config, OptimConfig(), tiny.phase(8), ready.layout)
    losses = []
    with jax.set_mesh(ready.mesh):
        placed = partition.place(rows, ready.mesh)
        for seed in (0, 1, 2):
            _, report = step(ready.start(), placed, np.int32(seed))
            losses.append(float(report["loss"]))
    assert step._cache_size() == 1
    assert len(set(losses)) == 3


def test_a_run_that_is_none_is_one_line(data: Path, tmp_path: Path) -> None:
    """A recipe as a dict or a ConfigDict, and a value of another type, which its config.json could not hold."""
    run = recipe(data)
    wrong = dataclasses.replace(run, train=dataclasses.replace(run.train, steps=2.5))
    cases = [(config.to_dict(run), "is a dict; make it one"), (base.get_config(), "is a ConfigDict; make it one"), (wrong, "steps is 2.5")]
    for given, words in cases:
        with pytest.raises(UserError, match=words):
            jaxenc.pretrain(given, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_evaluate_takes_data_as_a_path_and_refuses_half_a_row(data: Path, other_data: Path, pairs: Path) -> None:
    own, other = jaxenc.evaluate(pairs).numbers, jaxenc.evaluate(pairs, data=Path(other_data)).numbers
    assert jaxenc.evaluate(pairs, data=Path(data)).numbers == own != other
    with pytest.raises(UserError, match="config.eval.batch is 2.5; it takes a value of type int"):
        jaxenc.evaluate(pairs, batch=2.5)


def test_a_head_that_is_not_passed_is_one_line(data: Path, tmp_path: Path) -> None:
    run = dataclasses.replace(recipe(data), objective=HeadsConfig(("score",)))
    with pytest.raises(UserError, match="score"):
        jaxenc.pretrain(run, tmp_path / "run")
    assert not (tmp_path / "run").exists()
