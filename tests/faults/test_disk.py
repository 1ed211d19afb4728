"""T6: a disk that takes no checkpoint stops the run within one interval, harms no older step, and leaves nothing half-written."""

import errno
import io
import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable
from concurrent import futures
from pathlib import Path

import jax.numpy as jnp
import pytest

from jaxenc.checkpoint.manager import Manager
from jaxenc.checkpoint.retention import CheckpointConfig
from jaxenc.checkpoint.upload import NoUpload
from jaxenc.checkpoint.verify import verify
from jaxenc.errors import UserError
from jaxenc.processes import barriers
from jaxenc.training import pretrain as command
from tests.faults.alone import EVERY, STEPS, Nano, logged, newest
from tests.faults.conftest import Table
from tests.faults.disk import disk, needs_root
from tests.faults.same import assert_same_run
from tests.training import test_loop
from tests.training.stepping import stepping

# What a save says, and the stage, of which save, with whose end saves begin to go wrong.
FAULTS = {
    "size_limit": ("File too large", "renamed", 3),
    "read_only": ("Permission denied", "renamed", 3),
    "no_quota": ("Disk quota exceeded", "files", 4),
}


def assert_stopped(workdir: Path, code: int, said: str, words: str, saved: int) -> None:
    """One line, exit code 2, at most one interval after the save began; the step before it is whole."""
    failed = saved + EVERY
    assert code == 2 and f"jaxenc: checkpoint failed at step {failed}: {words}; free space or fix the permissions of" in said, said
    assert "Traceback" not in said
    assert newest(workdir) == saved and verify(workdir / "checkpoints" / str(saved)) == []
    assert max(row["step"] for row in logged(workdir)) <= failed + EVERY


def assert_goes_on(nano: Nano, workdir: Path, whole: Path) -> None:
    code, said = nano.finish(workdir)
    assert code == 0, said
    assert_same_run(whole, workdir, 0, STEPS)
    assert not any(workdir.glob("checkpoints/.*"))


@pytest.mark.full
@pytest.mark.parametrize("accident", FAULTS)
def test_a_save_that_fails_in_the_background(
    accident: str, nanos: Callable[[str], Nano], undisturbed_alone: Callable[[str], Path], row: Table
) -> None:
    """test_alone meets the limit of a file's size in the short suite."""
    words, stage, count = FAULTS[accident]
    # pytest's own folders are root's alone, and here root loses its rights.
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        workdir = Path(folder) / "run"
        code, said = nanos("mlm").finish(workdir, accident, stage, count)
        assert_stopped(workdir, code, said, words, 3 * EVERY)
        (workdir / "checkpoints").chmod(0o755)
        assert_goes_on(nanos("mlm"), workdir, undisturbed_alone("mlm"))
    row(f"T6 {accident}", 1, "one line within an interval; the step before is whole; bit for bit after it")


@pytest.mark.full
@needs_root
def test_a_full_disk(nanos: Callable[[str], Nano], undisturbed_alone: Callable[[str], Path], tmp_path: Path, row: Table) -> None:
    """A disk of its own for the checkpoints, of two and a half of them."""
    nano, whole, workdir = nanos("mlm"), undisturbed_alone("mlm"), tmp_path / "run"
    size = 5 * sum(path.stat().st_blocks * 512 for path in (whole / "checkpoints" / str(STEPS)).rglob("*")) // 2
    with disk(workdir / "checkpoints", size):
        code, said = nano.finish(workdir)
        saved = newest(workdir)
        assert saved and saved < STEPS
        assert_stopped(workdir, code, said, "No space left on device", saved)
        shutil.copytree(workdir / "checkpoints", tmp_path / "kept")
    shutil.copytree(tmp_path / "kept", workdir / "checkpoints", dirs_exist_ok=True)
    assert_goes_on(nano, workdir, whole)
    row("T6 full disk", 1, "one line within an interval; the step before is whole; bit for bit after it")


def test_a_failed_save_ends_the_run_at_the_next_step(nanos: Callable[[str], Nano], tmp_path: Path, row: Table) -> None:
    made: list[Manager] = []
    taken: list[int] = []

    def full(stage: str) -> None:
        if stage == "files":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    class Late(test_loop.Log):
        def push(self, now: int, *rest: object) -> None:
            super().push(now, *rest)
            taken.append(now)
            if now > EVERY:
                futures.wait([made[0]._saving])

    def manager(*parts: object, upload: NoUpload, saved: Callable[[int, float, int], None]) -> Manager:
        made.append(Manager(*parts, full, upload, saved))
        return made[0]

    words = f"checkpoint failed at step {EVERY}: No space left on device"
    with pytest.MonkeyPatch.context() as patch, stepping(), pytest.raises(UserError, match=words):
        patch.setattr(test_loop.loop, "Log", Late)
        patch.setattr(command, "Manager", manager)
        command.pretrain(nanos("mlm").run, tmp_path / "run")
    assert taken[-1] == EVERY + 1 and newest(tmp_path / "run") == 0
    row("T6 save that failed after a step", 1, "one line at the next step")


def test_a_disk_that_is_slow_is_named_and_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk goes on once the line has been written."""
    free = threading.Event()

    class Terminal(io.StringIO):
        def flush(self) -> None:
            free.set()

    terminal = Terminal()
    monkeypatch.setattr(barriers, "TELL", 0.05)
    monkeypatch.setattr(sys, "stderr", terminal)
    with Manager(tmp_path, CheckpointConfig(), lambda stage: free.wait(60 * (stage == "files"))) as manager:
        manager.save(1, {"params": {"w": jnp.ones(3)}}, {})
    said = terminal.getvalue().splitlines()
    assert said and all(line.startswith(f"{tmp_path}: a checkpoint is still being written after ") for line in said)
    assert verify(tmp_path / "1") == []
