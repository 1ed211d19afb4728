"""T7: whatever happens to the newest checkpoint on the disk is found before the first step, and an older one goes on."""

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from jaxenc.checkpoint import restore
from jaxenc.checkpoint.verify import CHECKSUMS
from jaxenc.training.pretrain import pretrain
from tests.faults.alone import EVERY, STEPS, Nano, newest
from tests.faults.conftest import Table
from tests.faults.same import assert_same_run
from tests.selection import FULL

FLIPS = 50 if FULL else 4


def arrays_of(step_dir: Path) -> list[Path]:
    """The files that hold arrays, the largest first."""
    return sorted((path for path in (step_dir / "state").rglob("d/*") if path.is_file()), key=lambda path: -path.stat().st_size)


def truncate(step_dir: Path, draw: random.Random) -> str:
    path = arrays_of(step_dir)[0]
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    return path.name


def delete_data(step_dir: Path, draw: random.Random) -> str:
    path = arrays_of(step_dir)[0]
    path.unlink()
    return path.name


def delete_manifest(step_dir: Path, draw: random.Random) -> str:
    (step_dir / "state" / "manifest.ocdbt").unlink()
    return "manifest.ocdbt is missing"


def flip(step_dir: Path, draw: random.Random) -> str:
    """One bit of one file, each bit of the step's folder as likely as another."""
    paths = sorted(path for path in step_dir.rglob("*") if path.is_file())
    path = draw.choices(paths, [path.stat().st_size for path in paths])[0]
    content = bytearray(path.read_bytes())
    content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
    path.write_bytes(content)
    return "" if path.name == CHECKSUMS else path.name


def swap(step_dir: Path, draw: random.Random) -> str:
    one, other = arrays_of(step_dir)[:2]
    contents = one.read_bytes(), other.read_bytes()
    other.write_bytes(contents[0])
    one.write_bytes(contents[1])
    return "bytes instead of"


def empty(step_dir: Path, draw: random.Random) -> str:
    shutil.rmtree(step_dir)
    step_dir.mkdir()
    return f"{CHECKSUMS} is missing"


def left_over(step_dir: Path, draw: random.Random) -> str:
    """The name that a save in progress has: nothing to say, it goes."""
    step_dir.rename(step_dir.with_name(f".{step_dir.name}.tmp-save"))
    return ""


def no_commit_file(step_dir: Path, draw: random.Random) -> str:
    (step_dir / CHECKSUMS).unlink()
    return f"{CHECKSUMS} is missing"


DAMAGES = {
    "truncate": truncate,
    "delete_data": delete_data,
    "delete_manifest": delete_manifest,
    "swap": swap,
    "empty": empty,
    "left_over": left_over,
    "no_commit_file": no_commit_file,
    **{f"flip_{number:02}": flip for number in range(FLIPS)},
}
# Runs that go on to the end, rather than only choose where they start; all of them with --full. test_alone goes on over left-overs.
TO_THE_END = tuple(DAMAGES) if FULL else ("truncate",)


def damaged(whole: Path, workdir: Path, name: str) -> str:
    shutil.copytree(whole, workdir)
    return DAMAGES[name](workdir / "checkpoints" / str(STEPS), random.Random(name))


def assert_set_aside(workdir: Path, name: str, told: str, said: str) -> None:
    """One line that names the file and what became of the step; only a name of a save in progress goes without a word."""
    bad = workdir / "checkpoints" / f"{STEPS}.bad-1"
    assert bad.exists() == (name != "left_over") == (f"set aside as {bad.name}, trying an older step" in said)
    assert told in said, (name, told, said)


@pytest.mark.slow
def test_each_is_found_and_an_older_step_taken(
    undisturbed_alone: Callable[[str], Path], tmp_path: Path, capsys: pytest.CaptureFixture, row: Table
) -> None:
    for name in DAMAGES:
        workdir = tmp_path / name
        told = damaged(undisturbed_alone("mlm"), workdir, name)
        start = restore.choose(workdir / "checkpoints", "", "", True)
        assert (start.kind, start.step) == ("resume", STEPS - EVERY), name
        assert_set_aside(workdir, name, told, capsys.readouterr().err)
        shutil.rmtree(workdir)
    told = f"the step before restored in all; {len(DAMAGES) - 1} set aside with a message, the left-over temporary folder skipped"
    row("T7 damaged newest checkpoint", len(DAMAGES), told)


@pytest.mark.slow
def test_the_run_goes_on_from_the_older_step(
    nanos: Callable[[str], Nano], undisturbed_alone: Callable[[str], Path], tmp_path: Path, capsys: pytest.CaptureFixture, row: Table
) -> None:
    whole = undisturbed_alone("mlm")
    for name in TO_THE_END:
        workdir = tmp_path / name
        told = damaged(whole, workdir, name)
        pretrain(nanos("mlm").run, workdir)
        said = capsys.readouterr().err
        assert_set_aside(workdir, name, told, said)
        assert f"resume {workdir}/checkpoints/{STEPS - EVERY}" in said and newest(workdir) == STEPS
        assert_same_run(whole, workdir, 0, STEPS)
        assert not any(workdir.glob("checkpoints/.*"))
    row("T7 the run after it", len(TO_THE_END), "bit for bit")
