"""T12: a shard that is missing, truncated, changed or empty stops a run before its first step, and one that is damaged under a run stops
it when it is read; one line names the file."""

import dataclasses
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from jaxenc.errors import UserError
from jaxenc.training.pretrain import pretrain
from jaxenc.training.run import Run
from tests.faults.alone import EVERY, Nano, newest
from tests.faults.conftest import Table
from tests.training import test_loop
from tests.training.stepping import stepping

SHARD = "train-00000.tokens"
# Seconds.
LIMIT = 30


def change(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[100] ^= 1
    path.write_bytes(content)


# What happens to the shard: (the accident, what the line says behind its name).
DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "missing": (Path.unlink, "missing"),
    "truncated": (lambda path: path.write_bytes(path.read_bytes()[:-2]), "bytes, not the"),
    "changed": (change, "its content changed since the manifest was written"),
    "empty": (lambda path: path.write_bytes(b""), "has 0 bytes, not the"),
}


def copied(run: Run, folder: Path) -> Run:
    """The run on its own copy of the data."""
    shutil.copytree(run.data.path, folder)
    return dataclasses.replace(run, data=dataclasses.replace(run.data, path=str(folder)))


def stopped(run: Run, workdir: Path, words: str) -> float:
    """The time at which one line that names the shard had ended the run."""
    with pytest.raises(UserError) as raised:
        pretrain(run, workdir)
    assert f"{run.data.path}/{SHARD}" in str(raised.value) and words in str(raised.value)
    return time.monotonic()


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_shard_starts_no_run(damage: str, nanos: Callable[[str], Nano], tmp_path: Path, row: Table) -> None:
    accident, words = DAMAGES[damage]
    run = copied(nanos("mlm").run, tmp_path / "data")
    accident(tmp_path / "data" / SHARD)
    started = time.monotonic()
    assert stopped(run, tmp_path / "run", words) - started < LIMIT
    assert not (tmp_path / "run").exists()
    row(f"T12 {damage} shard", 1, "one line that names the file, before the first step")


@pytest.mark.slow
def test_a_shard_that_goes_missing_before_a_restart(
    nanos: Callable[[str], Nano], undisturbed_alone: Callable[[str], Path], tmp_path: Path, row: Table
) -> None:
    run = copied(nanos("mlm").run, tmp_path / "data")
    (tmp_path / "data" / SHARD).unlink()
    workdir = shutil.copytree(undisturbed_alone("mlm"), tmp_path / "run")
    before, started = newest(workdir), time.monotonic()
    assert stopped(run, workdir, "missing") - started < LIMIT
    assert newest(workdir) == before
    row("T12 shard missing at a restart", 1, "one line that names the file, before the first step")


@pytest.mark.slow
def test_a_record_that_is_damaged_under_a_run(nanos: Callable[[str], Nano], tmp_path: Path, row: Table) -> None:
    """The disk gives ids that no vocabulary has, from some step on: only what was read ahead is still taken, and all of it is saved."""
    run = copied(nanos("mlm").run, tmp_path / "data")
    shard = np.memmap(tmp_path / "data" / SHARD, np.uint16, "r+")
    damaged: list[float] = []

    class Damaging(test_loop.Log):
        def push(self, now: int, *rest: object) -> None:
            super().push(now, *rest)
            if now == EVERY + 2:
                shard[:] = 65_000
                damaged.append(time.monotonic())

    with pytest.MonkeyPatch.context() as patch, stepping():
        patch.setattr(test_loop.loop, "Log", Damaging)
        assert stopped(run, tmp_path / "run", "its content changed since the manifest was written") - damaged[0] < LIMIT
    assert newest(tmp_path / "run") >= EVERY + 2
    row("T12 record damaged under a run", 1, "one line that names the file, within the steps read ahead, which are saved")
