"""T14: a directory that takes nothing is found before the first step, and nothing is left in it."""

import contextlib
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jaxenc.cli import main
from tests.faults.alone import Nano
from tests.faults.conftest import Table
from tests.faults.disk import IS_ROOT, disk, needs_root

WORDS = "Read-only file system" if IS_ROOT else "Permission denied"


@contextlib.contextmanager
def closed(folder: Path) -> Iterator[None]:
    """`folder` may be read and not written to; root may write anywhere but to a disk that is mounted so."""
    if IS_ROOT:
        with disk(folder, 1 << 20):
            subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
            yield
    else:
        folder.mkdir(parents=True)
        folder.chmod(0o555)
        yield
        folder.chmod(0o755)


def refused(nano: Nano, workdir: Path, capsys: pytest.CaptureFixture) -> str:
    """The one line of a run that never took a step."""
    capsys.readouterr()
    assert main.main(["pretrain", "--config", str(nano.config), "--workdir", str(workdir)]) == 2
    said = capsys.readouterr().err
    assert said.startswith("jaxenc: ") and said.count("\n") == 1, said
    assert not (workdir / "metrics.jsonl").exists()
    return said


def test_a_work_directory_that_cannot_be_written_to(
    nanos: Callable[[str], Nano], tmp_path: Path, capsys: pytest.CaptureFixture, row: Table
) -> None:
    with closed(tmp_path / "disk"):
        assert f"disk/run: {WORDS}; choose another place" in refused(nanos("mlm"), tmp_path / "disk" / "run", capsys)
    row("T14 work directory that cannot be written to", 1, "one line before the first step")


def test_checkpoints_that_cannot_be_written_to(
    nanos: Callable[[str], Nano], tmp_path: Path, capsys: pytest.CaptureFixture, row: Table
) -> None:
    with closed(tmp_path / "run" / "checkpoints"):
        said = refused(nanos("mlm"), tmp_path / "run", capsys)
    assert f"run/checkpoints: {WORDS}; free space or fix its permissions" in said
    row("T14 checkpoint directory that cannot be written to", 1, "one line before the first step")


@needs_root
@pytest.mark.parametrize(
    "place, size, words",
    [("", 1 << 12, "No space left on device"), ("checkpoints", 1 << 15, "a checkpoint takes up to 0.1 MB and the disk has 0.0 MB")],
)
def test_a_disk_without_room_for_one_checkpoint(
    place: str, size: int, words: str, nanos: Callable[[str], Nano], tmp_path: Path, capsys: pytest.CaptureFixture, row: Table
) -> None:
    workdir = tmp_path / "run"
    with disk(workdir / place, size):
        if not place:
            (workdir / "full.log").write_bytes(bytes(size))
        assert words in refused(nanos("mlm"), workdir, capsys)
    row(f"T14 full disk under {place or 'the work directory'}", 1, "one line before the first step")
