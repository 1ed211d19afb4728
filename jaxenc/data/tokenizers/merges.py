"""Merges of byte-pair encoding, by rank: the two pieces of each, as merges.txt and tokenizer.json hold them."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from jaxenc.data.tokenizers import checks
from jaxenc.data.tokenizers.checks import AGAIN
from jaxenc.errors import UserError
from jaxenc.files import read_lines

NAME = "merges.txt"
VERSION = "#version: 0.2"

Merges = Sequence[tuple[str, str]]


def pair(merge: str | Sequence[str]) -> tuple[str, str]:
    """Two pieces, written with a blank between them or as a list of two. Raises ValueError for another number of them."""
    left, right = merge.split(" ") if isinstance(merge, str) else merge
    return left, right


def lines(path: Path) -> list[str]:
    """The merges of a merges.txt as they are written. Raises UserError for a file that cannot be read."""
    return [line for line in read_lines(path, AGAIN) if line and not line.startswith("#version")]


def read(path: Path) -> Merges:
    """The merges of a merges.txt: two pieces a line after a line with its version. Raises UserError for a damaged file."""
    found = lines(path)
    with checks.damaged(path):
        return [pair(line) for line in found]


def written(merges: Merges) -> str:
    """The content of a merges.txt."""
    return VERSION + "\n" + "".join(f"{left} {right}\n" for left, right in merges)


def check(merges: Merges, ids: Mapping[str, int], path: str | Path) -> None:
    """Raises UserError for a merge that names, or makes, a piece without an id. path: what the message calls the source."""
    for number, (left, right) in enumerate(merges, 1):
        if missing := [piece for piece in (left, right, left + right) if piece not in ids]:
            raise UserError(f"merge {number} names {missing[0]!r}, which has no id", path, AGAIN)
