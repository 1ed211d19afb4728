"""Every kind of damage is found and named, and the walk back reaches the newest whole step."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from jaxenc.checkpoint.verify import CHECKSUMS, newest_valid, steps, verify
from jaxenc.errors import UserError


def files_of(step_dir: Path) -> list[Path]:
    return sorted(path for path in step_dir.rglob("*") if path.is_file())


def test_a_whole_step_has_no_problem(checkpoints: Path) -> None:
    assert verify(checkpoints / "1") == verify(checkpoints / "2") == []
    assert steps(checkpoints) == [1, 2]
    assert newest_valid(checkpoints, check=True, set_aside=True) == 2


def test_one_flipped_bit_anywhere_is_found(checkpoints: Path) -> None:
    """64 bits: one in every file, the others drawn over all bytes. A flip in the list itself may show as a changed file."""
    rng = np.random.default_rng(0)
    files = [path for path in files_of(checkpoints / "2") if path.stat().st_size]
    weights = np.array([path.stat().st_size for path in files], float)
    drawn = [*range(len(files)), *rng.choice(len(files), 64 - len(files), p=weights / weights.sum())]
    for path in (files[i] for i in drawn):
        whole = path.read_bytes()
        damaged = bytearray(whole)
        bit = int(rng.integers(len(whole) * 8))
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        problems = verify(checkpoints / "2")
        assert problems and (path.name in problems[0] or path.name == CHECKSUMS), (path, bit)
        path.write_bytes(whole)
    assert verify(checkpoints / "2") == []


def test_truncated_missing_and_added_files_are_named_together(checkpoints: Path) -> None:
    step = checkpoints / "2"
    data = max(files_of(step / "state"), key=lambda path: path.stat().st_size)
    data.write_bytes(data.read_bytes()[:-1])
    (step / "config.json").unlink()
    (step / "state" / "extra").write_text("")
    (step / "notes.txt").write_text("a note beside the written files is nobody's harm")
    problems = verify(step, contents=False)
    assert problems == ["config.json is missing", "state/extra was added", problems[2]]
    assert data.name in problems[2] and "bytes instead of" in problems[2]


def test_two_swapped_files_are_found(checkpoints: Path) -> None:
    data = sorted((checkpoints / "2/state/ocdbt.process_0/d").iterdir())
    first, second = data[0].read_bytes(), data[1].read_bytes()
    data[0].write_bytes(second)
    data[1].write_bytes(first)
    assert len(verify(checkpoints / "2")) == 2


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (None, "is missing"),
        ("", "cannot be read"),
        ("[]", "cannot be read"),
        ('{"format": 1, "step": 2}', "cannot be read"),
        ('{"format": 1, "step": 2, "files": {"../1/config.json": {"size": 8, "sha256": ""}}}', "cannot be read"),
        ('{"format": 2, "step": 2, "files": {}}', "format 2, this version reads 1"),
        ('{"format": 1, "step": 3, "files": {}}', "belongs to step 3"),
    ],
)
def test_a_list_that_cannot_be_trusted(checkpoints: Path, text: str | None, problem: str) -> None:
    (checkpoints / "2" / CHECKSUMS).unlink()
    if text is not None:
        (checkpoints / "2" / CHECKSUMS).write_text(text)
    assert problem in verify(checkpoints / "2")[0]
    assert newest_valid(checkpoints, check=False, set_aside=True) == 1
    assert steps(checkpoints) == [1]


def test_the_walk_back_sets_aside_names_the_file_and_is_not_confused(checkpoints: Path, capsys: pytest.CaptureFixture) -> None:
    (checkpoints / "7").mkdir()
    (checkpoints / "2.bad-1").mkdir()
    shutil.copytree(checkpoints / "2", checkpoints / "5")
    for name in (".9.tmp-save", "08", "9.orbax-checkpoint-tmp", "٣"):
        shutil.copytree(checkpoints / "2", checkpoints / name)
    (checkpoints / "10").write_text("a file")
    (checkpoints / "2/config.json").write_bytes(b'{"a": 2}')
    assert newest_valid(checkpoints, check=True, set_aside=True) == 1
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 3
    assert "CHECKSUMS.json is missing" in lines[0] and "7.bad-1" in lines[0]
    assert "belongs to step 2" in lines[1] and "5.bad-1" in lines[1]
    assert "config.json has changed" in lines[2] and "2.bad-2" in lines[2]
    names = {path.name for path in checkpoints.iterdir()}
    assert names == {"1", "2.bad-1", "2.bad-2", "5.bad-1", "7.bad-1", ".9.tmp-save", "08", "9.orbax-checkpoint-tmp", "٣", "10"}


def test_without_check_only_contents_go_unread(checkpoints: Path) -> None:
    (checkpoints / "2/config.json").write_bytes(b'{"a": 2}')
    assert newest_valid(checkpoints, check=False, set_aside=True) == 2
    (checkpoints / "2/config.json").write_bytes(b"{}")
    assert newest_valid(checkpoints, check=False, set_aside=True) == 1


def test_another_runs_directory_is_left_as_it_is(checkpoints: Path, capsys: pytest.CaptureFixture) -> None:
    (checkpoints / "2/config.json").unlink()
    assert newest_valid(checkpoints, check=True, set_aside=False) == 1
    assert (checkpoints / "2").is_dir() and "left where it is" in capsys.readouterr().err


def test_no_step_at_all(tmp_path: Path) -> None:
    assert newest_valid(tmp_path / "missing", check=True, set_aside=True) is None
    assert newest_valid(tmp_path, check=True, set_aside=True) is None


def test_a_step_that_cannot_be_renamed_is_an_error(checkpoints: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Path, target: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "rename", refuse)
    (checkpoints / "2/config.json").unlink()
    with pytest.raises(UserError, match="damaged, and cannot be renamed .Permission denied."):
        newest_valid(checkpoints, check=True, set_aside=True)


def test_the_list_holds_every_other_file_with_its_size(checkpoints: Path) -> None:
    listed = json.loads((checkpoints / "2" / CHECKSUMS).read_text())
    found = {path.relative_to(checkpoints / "2").as_posix(): path.stat().st_size for path in files_of(checkpoints / "2")}
    del found[CHECKSUMS]
    assert {name: entry["size"] for name, entry in listed["files"].items()} == found
    assert (listed["format"], listed["step"]) == (1, 2)
