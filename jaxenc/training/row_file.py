"""The files that a run appends to, one row a line: metrics.jsonl, events.jsonl and examples.log.

A last line without an end is not a row yet: the process was killed, or is writing it.
"""

import os
import pathlib
from collections.abc import Callable
from typing import TypeVar

from jaxenc.errors import UserError
from jaxenc.files import user_errors

FULL = "free some space and run the same command again"  # advice if a row cannot be written
T = TypeVar("T")


def read(path: pathlib.Path, row_of: Callable[[bytes], T], what: str, advice: str) -> list[T]:
    r"""`row_of` of each line, which includes its \n. what: what a row is, such as `an event`, for messages.

    Raises UserError, with `advice`, for a file that cannot be read, and names a line that `row_of` cannot parse: it raises ValueError,
    KeyError, TypeError, AttributeError, OverflowError or RecursionError.
    """
    with user_errors(path, advice):
        lines = path.read_bytes().split(b"\n")
    found = []
    for number, line in enumerate(lines[:-1], 1):
        try:
            found.append(row_of(line + b"\n"))
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
            raise UserError(f"is not {what} ({error})", f"{path}:{number}", "remove the line") from error
    return found


def drop_unfinished(path: pathlib.Path) -> None:
    """Cuts off a last line without an end, so that the next row begins a line. Raises OSError."""
    os.truncate(path, path.read_bytes().rfind(b"\n") + 1)
