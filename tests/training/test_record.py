"""metrics.jsonl and examples.log are cut back on a resume, and nothing that stops the cut takes a row that is to stay."""

import builtins
import errno
import io
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jaxenc import storage
from jaxenc.errors import UserError
from jaxenc.training import record

METRICS = [f'{{"step": {step}, "split": "train", "loss": {step / 7}}}\n'.encode() for step in range(1, 2001)]
EXAMPLES = [f"{step}\t0:{step} 0:{step + 1}\n".encode() for step in range(1, 2001)]


@pytest.fixture
def workdir(tmp_path: Path) -> Path:
    """Logs of 2,000 steps, each with a line that a killed process has not finished."""
    (tmp_path / record.METRICS).write_bytes(b"".join(METRICS) + b'{"step": 20')
    (tmp_path / record.EXAMPLES).write_bytes(b"".join(EXAMPLES) + b"2001\t0:")
    return tmp_path


def logs(workdir: Path) -> tuple[bytes, bytes]:
    return (workdir / record.METRICS).read_bytes(), (workdir / record.EXAMPLES).read_bytes()


def test_rows_up_to_the_step_stay_byte_for_byte(workdir: Path) -> None:
    assert record.cut(workdir, 1500) == 2000
    assert logs(workdir) == (b"".join(METRICS[:1500]), b"".join(EXAMPLES[:1500]))
    assert sorted(path.name for path in workdir.iterdir()) == [record.EXAMPLES, record.METRICS]


def test_the_last_step_is_that_of_the_file_that_went_further(workdir: Path) -> None:
    """examples.log has a line for every step, metrics.jsonl one every `log.every`."""
    for metrics, examples in ((METRICS[999], EXAMPLES[1999]), (METRICS[1999], EXAMPLES[999])):
        (workdir / record.METRICS).write_bytes(metrics)
        (workdir / record.EXAMPLES).write_bytes(examples)
        assert record.cut(workdir, 500) == 2000 and record.cut(workdir, 500) == 500


def test_the_rows_of_a_run_are_read_from_its_folder_and_from_its_url(
    workdir: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A copy of an older state of the file does not stand in the way, and a run without the file is named."""
    monkeypatch.setenv("JAXENC_CACHE", str(tmp_path / "cache"))
    url = "memory://test_record/run"
    storage.folder(url).write(record.METRICS, METRICS[0])
    assert record.rows(url) == record.read(workdir / record.METRICS)[:1]
    storage.folder(url).write(record.METRICS, b"".join(METRICS))
    assert record.rows(url) == record.rows(workdir) == record.rows(str(workdir)) and len(record.rows(url)) == len(METRICS)
    for none in (workdir / "none", "memory://test_record/none"):
        with pytest.raises(UserError, match=r"none/metrics.jsonl: no such file; name the directory of a run"):
            record.rows(none)


def full(room: int) -> Callable[..., int]:
    """A write that takes `room` bytes and then finds the disk full, as a system call does."""

    def write(file: Any, content: Any) -> int:
        taken = io.FileIO.write(file, bytes(content)[:room])
        if taken < len(content):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return taken

    return write


@pytest.mark.parametrize("room", [0, 1000])
def test_a_disk_that_is_full_in_the_middle_of_the_cut_loses_nothing(room: int, workdir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line for the user; both files as they were, and nothing beside them."""
    before, real, kind = logs(workdir), builtins.open, type("Full", (io.FileIO,), {"write": full(room)})

    def opened(path: Any, mode: str = "r", *rest: Any, **named: Any) -> Any:
        return kind(path, mode.replace("b", "")) if "w" in mode else real(path, mode, *rest, **named)

    monkeypatch.setattr(io, "open", opened)
    monkeypatch.setattr(builtins, "open", opened)
    with pytest.raises(UserError, match=r"metrics.jsonl: No space left on device; free some space and run the same command again"):
        record.cut(workdir, 1500)
    monkeypatch.undo()
    assert logs(workdir) == before
    assert sorted(path.name for path in workdir.iterdir()) == [record.EXAMPLES, record.METRICS]


KILLED = """
import os, pathlib, signal, sys
from jaxenc.training import record

left = int(sys.argv[2])
def hook(event, arguments):
    # Whatever changes the folder: the process ends before the call, the file of an open one being empty by then.
    global left
    changes = event in ("os.rename", "os.remove", "os.truncate") or event == "open" and arguments[1] and set(arguments[1]) & set("wa+x")
    if changes:
        left -= 1
        if not left:
            if event == "open":
                os.open(arguments[0], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(hook)
record.cut(pathlib.Path(sys.argv[1]), 1500)
"""


def test_a_process_killed_at_any_point_of_the_cut_loses_nothing(workdir: Path) -> None:
    """Killed at each call that changes the folder in turn: either file is the old one or the new one, and the next cut ends the work."""
    old, new = logs(workdir), (b"".join(METRICS[:1500]), b"".join(EXAMPLES[:1500]))
    codes = []
    while 0 not in codes:
        for name, content in zip((record.METRICS, record.EXAMPLES), old, strict=True):
            (workdir / name).write_bytes(content)
        command = [sys.executable, "-c", KILLED, str(workdir), str(len(codes) + 1)]
        codes.append(subprocess.run(command, check=False, timeout=60).returncode)
        assert all(now in both for now, *both in zip(logs(workdir), old, new, strict=True)), f"killed at change {len(codes)}"
        record.cut(workdir, 1500)
        assert logs(workdir) == new and sorted(path.name for path in workdir.iterdir()) == [record.EXAMPLES, record.METRICS]
    assert len(codes) > 4 and set(codes) == {0, -9}


def test_tensorboard_starts_without_torch(tmp_path: Path) -> None:
    """Importing torch takes as long as the rest of a start; tensorboardX would, where it is installed. Later it can be imported."""
    (tmp_path / "torch.py").write_text("print('torch is imported')\n")
    script = """
import pathlib, sys
from jaxenc.training.events import Events
from jaxenc.training.record import Recorder
from jaxenc.training.settings import LogConfig

folder = pathlib.Path(sys.argv[1])
recorder = Recorder(folder, 0, LogConfig(), Events(folder), {"seed": 1})
recorder.close()
print(len(list((folder / "tensorboard").iterdir())), flush=True)
import torch
"""
    (tmp_path / "run").mkdir()
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", script, tmp_path / "run"], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == "1\ntorch is imported\n", done.stderr
