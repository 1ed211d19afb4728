"""A fine-tuning run that is killed at any moment and started again is the run that nobody killed, bit for bit."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.gang import ROOT
from tests.faults.same import assert_same_run
from tests.tasks.tiny_task import make_model, make_task

# (stage, the n-th time that it ends, by process): in the first epoch, while a checkpoint is written, in an evaluation, in the second seed.
KILLS = [("step", 3), ("state", 1), ("evaluation", 2), ("renamed", 2), ("step", 9)]
STEPS = 12
CHILD = ROOT / "tests" / "faults" / "child.py"


def start(workdir: Path, model: Path, data: Path, accident: str, stage: str, count: int) -> int:
    """The exit code of one process of the run."""
    fields = {
        "data.path": data, "data.train": "train.tsv", "data.dev": "dev.tsv", "published": "", "train.batch": 16, "train.epochs": 3,
        "train.length": 16, "train.lengths": 16, "train.select": "best", "optim.lr": 3e-3, "log.every": 1, "log.examples": "true",
        "log.tensorboard": "false",
    }  # fmt: skip
    command = ["finetune", "--config", "tasks/text", "--init-from", model, "--workdir", workdir, "--seeds", 2]
    command += [f"--config.{name}={value}" for name, value in fields.items()]
    notes = workdir.with_name(f"{workdir.name}.notes")
    given = [sys.executable, CHILD, notes, accident, stage, count, *command]
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
    for seed in ("seed_0", "seed_1"):
        assert_same_run(whole / seed, killed / seed, 0.0, STEPS)
        assert (whole / seed / "dev.jsonl").read_bytes() == (killed / seed / "dev.jsonl").read_bytes()
    steps = lambda workdir: sorted(path.name for path in workdir.glob("seed_*/checkpoints/*"))
    assert steps(whole) == steps(killed)
