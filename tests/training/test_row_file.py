"""Files of rows that a run appends to."""

from pathlib import Path

import pytest

from jaxenc.errors import UserError
from jaxenc.training import row_file


def read(path: Path) -> list[int]:
    return row_file.read(path, int, "a number", "make it")


def test_only_lines_with_an_end_are_rows(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"1\n22\r\n3")
    assert read(path) == [1, 22]
    assert row_file.read(path, bytes, "a row", "") == [b"1\n", b"22\r\n"]
    row_file.drop_unfinished(path)
    assert path.read_bytes() == b"1\n22\r\n"
    row_file.drop_unfinished(path)
    assert path.read_bytes() == b"1\n22\r\n"


@pytest.mark.parametrize("content", [b"", b"1"])
def test_a_file_without_a_whole_line_has_no_rows(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(content)
    assert read(tmp_path / "log") == []
    row_file.drop_unfinished(tmp_path / "log")
    assert (tmp_path / "log").read_bytes() == b""


def test_a_line_that_is_no_row_is_named_and_so_is_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"1\n\n3\n")
    with pytest.raises(UserError, match=r"log:2: is not a number \(.*\); remove the line"):
        read(tmp_path / "log")
    with pytest.raises(UserError, match="none: No such file or directory; make it"):
        read(tmp_path / "none")
