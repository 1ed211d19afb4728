"""Whole runs: one that is stopped and resumed is the one that never stopped, bit for bit."""

import dataclasses
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest import mock

import jax
import numpy as np
import pytest

from jaxenc import config
from jaxenc.checkpoint.retention import CheckpointConfig
from jaxenc.cli.main import main
from jaxenc.data.sources import DataConfig
from jaxenc.errors import UserError
from jaxenc.families.bert.model import BertConfig
from jaxenc.objectives.mlm import MlmConfig
from jaxenc.optim.optimizer import OptimConfig
from jaxenc.sharding.mesh import MeshConfig
from jaxenc.training import begin, evaluate, loop, prepare
from jaxenc.training.log import Log
from jaxenc.training.phases import Phases
from jaxenc.training.pretrain import pretrain
from jaxenc.training.run import Run
from jaxenc.training.settings import EvalConfig, LogConfig, TrainConfig
from jaxenc.training.state import zero_carry
from tests import tiny
from tests.group import Process

CLOCKS = ("seconds", "tokens_per_second", "mfu")


def recipe(data: Path, **parts: Any) -> Run:
    """A nano BERT, float32 and dropout 0.1, every step logged."""
    run = Run(
        model=BertConfig(width=16, layers=1, heads=2, feed_forward=32, positions=24),
        data=DataConfig(path=str(data), length=24),
        train=TrainConfig(steps=20, batch=8, precision="float32"),
        optim=OptimConfig(lr=1e-2, warmup=4),
        checkpoint=CheckpointConfig(every=10, keep=100),
        eval=EvalConfig(every=10, batch=16),
        log=LogConfig(every=1, examples=True, tensorboard=False),
    )
    return dataclasses.replace(run, **parts)


def run_until(step: int, run: Run, workdir: Path) -> int:
    """Trains until a SIGTERM that comes once batch `step` has been dispatched; the step it stopped at."""

    class Interrupted(Log):
        def push(self, now: int, *rest: Any) -> None:
            super().push(now, *rest)
            if now == step:
                signal.raise_signal(signal.SIGTERM)

    with mock.patch.object(loop, "Log", Interrupted):
        outcome = pretrain(run, workdir)
    assert outcome.preempted
    return outcome.step


def command(workdir: Path, recipe_file: Path) -> Process:
    """`jaxenc pretrain` in a process of its own, on one device."""
    flags = os.environ["XLA_FLAGS"].replace("device_count=8", "device_count=1")
    return Process(
        [sys.executable, "-m", "jaxenc.cli.main", "pretrain", "--config", str(recipe_file), "--workdir", str(workdir)],
        stderr=subprocess.PIPE, text=True, env={**os.environ, "XLA_FLAGS": flags}, cwd=workdir.parent,
    )  # fmt: skip


def write_recipe(run: Run, path: Path) -> Path:
    path.write_text(json.dumps(config.to_dict(run)))
    return path


def saved(run: Run, workdir: Path, step: int) -> Any:
    """The state of a checkpoint, on the host."""
    job = prepare.prepare(run, workdir)
    with jax.set_mesh(job.mesh):
        start = begin.Start("resume", workdir / "checkpoints" / str(step), step)
        return jax.device_get(begin.begin(start, job.run.plan, job.run.train.seed, job.layout, job.objective(job.run.plan[0])))


def rows(workdir: Path) -> list[dict[str, Any]]:
    """metrics.jsonl without clocks."""
    lines = [json.loads(line) for line in (workdir / "metrics.jsonl").read_text().splitlines()]
    return [{name: value for name, value in line.items() if name not in CLOCKS} for line in lines]


def assert_same_run(run: Run, stopped: Path, whole: Path, step: int) -> None:
    """Parameters, moments, carry and counts bitwise; every logged number; every row id of every step."""
    tiny.assert_bitwise(saved(run, stopped, step), saved(run, whole, step))
    assert rows(stopped) == rows(whole)
    assert (stopped / "examples.log").read_text() == (whole / "examples.log").read_text()


@pytest.fixture(scope="module")
def whole(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of 20 steps on one device that nothing stopped."""
    workdir = tmp_path_factory.mktemp("whole") / "run"
    with tiny.on_one_device():
        assert pretrain(recipe(data), workdir).step == 20
    return workdir


@pytest.mark.usefixtures("one_device")
@pytest.mark.full
def test_ten_steps_a_new_process_and_ten_more_are_twenty(data: Path, whole: Path, tmp_path: Path) -> None:
    """An evaluation is due at step 10: the run that stops there leaves it out, so as to be gone in time, and the next one makes it up. In
    the short suite the two tests below do one half each."""
    assert run_until(10, recipe(data), tmp_path / "run") == 10
    with command(tmp_path / "run", tmp_path / "run" / "config.json") as process:
        _, text = process.communicate(timeout=120)
    assert process.returncode == 0, text
    assert_same_run(recipe(data), tmp_path / "run", whole, 20)
    assert [line.split("\t")[0] for line in (whole / "examples.log").read_text().splitlines()] == [str(n) for n in range(1, 21)]


@pytest.mark.usefixtures("one_device")
@pytest.mark.slow
@pytest.mark.parametrize("every", [pytest.param(10, marks=pytest.mark.full), 20])
def test_an_evaluation_that_is_interrupted_is_made_up(every: int, data: Path, whole: Path, tmp_path: Path) -> None:
    """A stop in the evaluation of step 10, between its batches: whether or not a checkpoint was due, step 10 is saved, and no number of
    half the rows is logged. A second stop, in the evaluation that is made up, changes nothing."""
    run = recipe(data, checkpoint=CheckpointConfig(every=every, keep=100))
    job = prepare.prepare(run, whole)
    assert len(job.batches("held_out", run.plan[0], run.eval.batch)) > 1

    def terminated(*args: Any) -> Any:
        signal.raise_signal(signal.SIGTERM)
        return zero_carry(*args)

    for _ in range(2):
        with mock.patch.object(evaluate, "zero_carry", terminated):
            outcome = pretrain(run, tmp_path / "run")
        assert outcome.preempted and outcome.step == 10 and {row["split"] for row in rows(tmp_path / "run")} == {"train"}
        assert (tmp_path / "run" / "checkpoints" / "10").is_dir()
    assert not pretrain(run, tmp_path / "run").preempted
    assert_same_run(run, tmp_path / "run", whole, 20)


@pytest.mark.usefixtures("one_device")
@pytest.mark.full
def test_a_terminated_process_exits_with_75_and_goes_on(data: Path, whole: Path, tmp_path: Path) -> None:
    """SIGTERM arrives before the first step or in one of the next; the process takes that step, saves, and says to be run again. In the
    short suite tests/faults/test_gang.py asks two processes to stop, and tests/cli/test_main.py has the exit code of one."""
    with command(tmp_path / "run", write_recipe(recipe(data), tmp_path / "recipe.json")) as process:
        text = ""
        while "from scratch" not in text:
            line = process.stderr.readline()
            assert line, text
            text += line
        process.send_signal(signal.SIGTERM)
        text += process.communicate(timeout=120)[1]
    assert process.returncode == 75, text
    assert f"stopped at step {max(int(path.name) for path in (tmp_path / 'run' / 'checkpoints').iterdir())}," in text
    assert pretrain(recipe(data), tmp_path / "run").step == 20
    assert_same_run(recipe(data), tmp_path / "run", whole, 20)


PHASES = Phases(steps=(4, 4), length=(16, 24), batch=(8, 16), lr=(1e-2, 5e-3), warmup=(1, 2))


def in_phases(data: Path) -> Run:
    """The rate of masks moves too, across the border."""
    objective = MlmConfig(rate=0.5, final_rate=0.15, rate_steps=6)
    return recipe(data, objective=objective, phases=PHASES, eval=EvalConfig(every=0, batch=16), checkpoint=CheckpointConfig(every=100))


@pytest.fixture(scope="module")
def whole_in_phases(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    workdir = tmp_path_factory.mktemp("phases") / "run"
    with tiny.on_one_device():
        assert pretrain(in_phases(data), workdir).step == 8
    return workdir


@pytest.mark.usefixtures("one_device")
@pytest.mark.slow
@pytest.mark.parametrize("stop", [pytest.param(3, marks=pytest.mark.full), 4, pytest.param(5, marks=pytest.mark.full)])
def test_a_stop_before_on_and_behind_a_phase_border(stop: int, data: Path, whole_in_phases: Path, tmp_path: Path) -> None:
    """Another length, batch, rate and warm-up behind the border."""
    assert run_until(stop, in_phases(data), tmp_path) == stop
    assert pretrain(in_phases(data), tmp_path).step == 8
    assert_same_run(in_phases(data), tmp_path, whole_in_phases, 8)


def test_every_so_many_steps() -> None:
    assert [step for step in range(14) if loop.is_due(4, step)] == [0, 4, 8, 12] and not any(loop.is_due(0, step) for step in range(14))


def test_the_log_of_rows_follows_the_batch_of_each_phase(whole_in_phases: Path) -> None:
    """Each phase counts its own rows from epoch 0, and no row comes twice within an epoch."""
    lines = [line.split("\t")[1].split() for line in (whole_in_phases / "examples.log").read_text().splitlines()]
    assert [len(line) for line in lines] == [8] * 4 + [16] * 4
    for phase in (lines[:4], lines[4:]):
        rows = [row for line in phase for row in line]
        assert rows[0].startswith("0:") and len(set(rows)) == len(rows)


def test_the_rate_of_masks_goes_down_over_a_border_and_then_stays(whole_in_phases: Path) -> None:
    """0.5 to 0.15 in six steps, within 0.05 for what short rows round; the evaluation has the last rate."""
    rates = {split: [row["mask_rate"] for row in rows(whole_in_phases) if row["split"] == split] for split in ("train", "held_out")}
    line = np.interp(np.arange(8), [0, 6], [0.5, 0.15])
    np.testing.assert_allclose(rates["train"], line, atol=0.05)
    np.testing.assert_allclose(rates["held_out"], [0.15], atol=0.05)


@pytest.mark.usefixtures("one_device")
def test_an_evaluation_of_the_checkpoint_is_the_one_of_the_run(whole: Path, capsys: pytest.CaptureFixture) -> None:
    """After a restore, with batches of another size: <= 1e-6 relative; with the run's own, bitwise."""
    for step in (10, 20):
        logged = next(line for line in rows(whole) if (line["step"], line["split"]) == (step, "held_out"))
        for batch in (16, 5):
            assert main(["evaluate", "--workdir", str(whole), "--step", str(step), "--batch", str(batch)]) == 0
            got = json.loads(capsys.readouterr().out)
            for name in got:
                assert abs(got[name] - logged[name]) <= (0 if batch == 16 else 1e-6 * abs(logged[name])), name


@pytest.mark.parametrize("field", ["model.layers", "train.batch", "train.seed", "data.path"])
def test_the_directory_of_another_run_is_refused(field: str, data: Path, other_data: Path, whole: Path) -> None:
    """One line that names the field; nothing in the directory changes."""
    run = recipe(data)
    changed = {
        "model.layers": dataclasses.replace(run, model=dataclasses.replace(run.model, layers=2)),
        "train.batch": dataclasses.replace(run, train=dataclasses.replace(run.train, batch=16)),
        "train.seed": dataclasses.replace(run, train=dataclasses.replace(run.train, seed=1)),
        "data.path": dataclasses.replace(run, data=dataclasses.replace(run.data, path=str(other_data))),
    }[field]
    before = {path: path.stat().st_mtime_ns for path in whole.rglob("*")}
    with pytest.raises(UserError, match=re.escape(field)) as error:
        pretrain(changed, whole)
    assert "\n" not in str(error.value)
    assert {path: path.stat().st_mtime_ns for path in whole.rglob("*")} == before


def without_the_end(whole: Path, workdir: Path) -> Path:
    """A copy of the finished run as it was when it died between its last checkpoint and its last evaluation."""
    shutil.copytree(whole, workdir)
    lines = (workdir / "metrics.jsonl").read_text().splitlines(keepends=True)
    (workdir / "metrics.jsonl").write_text("".join(lines[:-1]))
    return workdir


def test_a_finished_run_is_left_as_it_is(data: Path, whole: Path, capsys: pytest.CaptureFixture) -> None:
    before = {path: path.stat().st_mtime_ns for path in whole.rglob("*")}
    assert pretrain(recipe(data, eval=EvalConfig(every=7)), whole).step == 20
    assert "finished at step 20; nothing to do" in capsys.readouterr().err
    assert {path: path.stat().st_mtime_ns for path in whole.rglob("*")} == before


@pytest.mark.usefixtures("one_device")
def test_a_run_that_died_before_its_last_evaluation_makes_it_up(data: Path, whole: Path, tmp_path: Path) -> None:
    workdir = without_the_end(whole, tmp_path / "run")
    outcome = pretrain(recipe(data), workdir)
    assert rows(workdir) == rows(whole) and outcome.held_out


def test_a_run_may_go_on_on_another_mesh_and_in_other_parts(data: Path, whole: Path, tmp_path: Path) -> None:
    """`mesh.*`, `train.microbatches`, `eval.*`, `log.*` and `checkpoint.*` say nothing about what is computed: losses agree to 1e-5. The
    checkpoint is of one device; eight go on from it."""
    shutil.copytree(whole, tmp_path / "run")
    shutil.rmtree(tmp_path / "run" / "checkpoints" / "20")
    run = recipe(data, mesh=MeshConfig("fsdp_tp"), eval=EvalConfig(every=15, batch=4), checkpoint=CheckpointConfig(every=7))
    run = dataclasses.replace(run, train=dataclasses.replace(run.train, microbatches=2))
    outcome = pretrain(run, tmp_path / "run")
    assert outcome.step == 20 and not outcome.preempted
    losses = [[row["loss"] for row in rows(workdir) if row["split"] == "train"] for workdir in (tmp_path / "run", whole)]
    np.testing.assert_allclose(*losses, rtol=1e-5)
