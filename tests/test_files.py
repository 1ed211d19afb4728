"""A folder appears whole or not at all, and belongs to one process."""

import errno
import fcntl
import os
from pathlib import Path
from unittest import mock

import pytest

from jaxenc.errors import UserError
from jaxenc.files import locked, made, write_bytes


def test_a_made_folder_appears_whole_and_what_a_killed_process_left_goes(tmp_path: Path) -> None:
    left = tmp_path / ".out.partial" / "new"
    left.mkdir(parents=True)
    (left / "half").write_text("of a killed process")
    with made(tmp_path / "out") as folder:
        (folder / "file").write_text("whole")
        assert not (tmp_path / "out").exists()
    assert [path.name for path in tmp_path.rglob("*")] == ["out", "file"]


def test_a_failure_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="No space left on device; free some space"), made(tmp_path / "out") as folder:
        (folder / "file").write_text("half")
        raise OSError(28, "No space left on device")
    assert not list(tmp_path.iterdir())


def test_a_folder_is_held_by_one_process_and_an_empty_one_goes(tmp_path: Path) -> None:
    refused = pytest.raises(UserError, match="run: another process is writing here; wait")
    with locked(tmp_path / "run", "wait"):
        with refused, locked(tmp_path / "run", "wait"):
            pass
        assert (tmp_path / "run").is_dir()  # the one that is refused leaves it to the one that holds it
    assert not (tmp_path / "run").exists()
    with locked(tmp_path / "run", "wait"):
        (tmp_path / "run" / "kept").touch()
    with locked(tmp_path / "run", "wait"):
        assert (tmp_path / "run" / "kept").exists()


def test_a_folder_that_goes_before_it_is_locked_is_made_again(tmp_path: Path) -> None:
    """As where the process that held it leaves it empty between our opening and our lock."""
    lock, calls = fcntl.flock, []

    def late(number: int, operation: int) -> None:
        if not calls:
            (tmp_path / "run").rmdir()
        calls.append(number)
        lock(number, operation)

    with mock.patch.object(fcntl, "flock", late), locked(tmp_path / "run", "wait"):
        (tmp_path / "run" / "kept").touch()
    assert len(calls) == 2 and (tmp_path / "run" / "kept").exists()


@pytest.mark.parametrize("wrong", ["missing/page.html", "a_file/page.html", "a_folder"])
def test_a_failure_names_the_file_of_the_user_and_no_hidden_one(wrong: str, tmp_path: Path) -> None:
    (tmp_path / "a_file").write_text("mine")
    (tmp_path / "a_folder").mkdir()
    with pytest.raises(OSError) as error:
        write_bytes(tmp_path / wrong, b"new")
    assert error.value.filename == str(tmp_path / wrong) and sorted(os.listdir(tmp_path)) == ["a_file", "a_folder"]


def test_a_folder_that_cannot_be_made_is_named_as_the_user_named_it(tmp_path: Path) -> None:
    (tmp_path / "a_file").write_text("mine")
    for error in (OSError(errno.ENOSPC, "No space left on device"), None):
        out = tmp_path / "out" if error else tmp_path / "a_file" / "out"
        with pytest.raises(UserError) as said, made(out) as folder:
            error.filename = str(folder / "part")
            raise error
        assert str(tmp_path / "a_file") in str(said.value) or str(tmp_path / "out" / "part") in str(said.value)
        assert ".partial" not in str(said.value) and os.listdir(tmp_path) == ["a_file"]
