"""A fine-tuning run that is killed at any moment and started again is the run that nobody killed, bit for bit."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.conftest import Table
from tests.faults.gang import ROOT, Gang
from tests.faults.same import assert_same_tuning
from tests.tasks.tiny_task import make_model, make_task

# (stage, the n-th time that it ends, by process): in the first epoch, while a checkpoint is written, in an evaluation, in the second seed.
KILLS = [("step", 3), ("state", 1), ("evaluation", 2), ("renamed", 2), ("step", 9)]
STEPS = 12
CHILD = ROOT / "tests" / "faults" / "child.py"


def command(workdir: Path | str, model: Path | str, data: Path) -> list[object]:
    """`jaxenc finetune` with two seeds. workdir, model: a path or a URL."""
    fields = {
        "data.path": data, "data.train": "train.tsv", "data.dev": "dev.tsv", "published": "", "train.batch": 16, "train.epochs": 3,
        "train.length": 16, "train.lengths": 16, "train.select": "best", "optim.lr": 3e-3, "log.every": 1, "log.examples": "true",
        "log.tensorboard": "false",
    }  # fmt: skip
    given = ["finetune", "--config", "tasks/text", "--init-from", model, "--workdir", workdir, "--seeds", 2]
    return [*given, *(f"--config.{name}={value}" for name, value in fields.items())]


def start(workdir: Path, model: Path, data: Path, accident: str, stage: str, count: int) -> int:
    """The exit code of one process of the run."""
    notes = workdir.with_name(f"{workdir.name}.notes")
    given = [sys.executable, CHILD, notes, accident, stage, count, *command(workdir, model, data)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(list(map(str, given)), env=environment, stderr=subprocess.DEVNULL, timeout=300, check=False).returncode


@pytest.mark.full
def test_a_killed_run_is_the_run_that_nobody_killed(tmp_path: Path) -> None:
    make_task(tmp_path, train=64, dev=23)
    make_model(model := tmp_path / "model")
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert start(whole, model, tmp_path, "nothing", "-", 1) == 0
    for stage, count in KILLS:
        assert start(killed, model, tmp_path, "kill", stage, count) == -9, (stage, count)
    assert start(killed, model, tmp_path, "nothing", "-", 1) == 0
    assert_same_tuning(whole, killed, STEPS)


@pytest.mark.full
def test_one_of_two_processes_is_killed_in_each_seed(tmp_path: Path, row: Table) -> None:
    """The worker in the first seed and the coordinator in the second; the launcher starts both again."""
    make_task(tmp_path, train=64, dev=23)
    make_model(model := tmp_path / "model")
    run = lambda workdir: (sys.executable, "-m", "tests.faults.caching", *command(workdir, model, tmp_path))
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    with Gang(2, 1, run(whole)) as gang:
        assert gang.end() == 0, gang.said
    with Gang(2, 1, run(killed)) as gang:
        for life, (rank, line) in enumerate(((1, f"step 6/{STEPS}"), (0, f"step 10/{STEPS}"))):
            done = (killed / "seed_0" / "result.json").exists
            gang.until(lambda life=life, line=line, done=done: line in gang.said.split("seed_1")[-1] and done() == bool(life), line, 120)
            gang.send(rank, signal.SIGKILL)
            gang.until(lambda life=life: gang.said.count("starting all 2 again") > life, "restart", 15)
        assert gang.end() == 0, gang.said
    assert_same_tuning(whole, killed, STEPS)
    row("T3 kill -9 of a worker and of the coordinator, fine-tuning in 2 processes", 2, "bit for bit, both seeds")
