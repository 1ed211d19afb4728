"""The lines of BERT's vocab.txt: a piece on each, whose id is the number of the line from 0.

They are read as google-research/bert (tokenization.py, `load_vocab`) and transformers 5 read them, wherever these two agree: white space
after a piece is not part of it, a piece on several lines has the id of the last one, and a blank line takes an id that no text gives.
"""

from collections.abc import Sequence
from pathlib import Path

from jaxenc.data.tokenizers import wrong_content
from jaxenc.errors import UserError
from jaxenc.files import read_lines, user_errors

ADVICE = "name a vocab.txt in UTF-8"
BLANKS = " \t\r"  # a line of other white space is kept, without these around it: no text gives it either
LIKE = "as in google-research/bert and transformers"
# What str.strip takes off, as google-research/bert does, and transformers does not.
SEPARATORS = "\x1c\x1d\x1e\x1f"


def read(path: Path) -> tuple[list[str], list[str]]:
    """The piece of each line, '' for a blank one, and notes for the user about lines that are not what they should be.

    Blank lines at the end of the file are left out. Raises UserError for a file that is something else, one that is not UTF-8 or starts
    with a byte order mark, and a line that google-research/bert and transformers read differently.
    """
    with user_errors(path, ADVICE):
        wrong_content.check(path, path.read_bytes())
    lines = read_lines(path, ADVICE)
    if lines[0].startswith("\ufeff"):
        raise UserError("starts with a byte order mark", f"{path}:1", "remove it")
    pieces = [_piece(line, f"{path}:{number}") for number, line in enumerate(lines, 1)]
    while pieces and not pieces[-1]:
        pieces.pop()
    return pieces, _notes(lines, pieces)


def _piece(line: str, where: str) -> str:
    if (piece := line.strip()) == line:
        return piece
    if not piece:
        return line.strip(BLANKS)
    if piece != (theirs := without_end(line)):
        read = f"google-research/bert reads it as {piece!r} and transformers as {theirs!r}"
        raise UserError(f"{line!r} has white space around it; {read}", where, "remove the white space, or the line's piece is not found")
    return piece


def without_end(line: str) -> str:
    """`line` without the white space at its end, as Rust's trim_end, which transformers uses, knows it."""
    end = len(line)
    while end and line[end - 1].isspace() and line[end - 1] not in SEPARATORS:
        end -= 1
    return line[:end]


def _notes(lines: Sequence[str], pieces: Sequence[str]) -> list[str]:
    places: dict[str, list[int]] = {}
    for number, piece in enumerate(pieces, 1):
        places.setdefault(piece, []).append(number)
    blank = places.pop("", [])
    repeated = {piece: numbers for piece, numbers in places.items() if len(numbers) > 1}
    padded = [number for number, piece in enumerate(pieces, 1) if piece and piece != lines[number - 1]]
    notes = []
    if repeated:
        piece, numbers = next(iter(repeated.items()))
        on = f"{piece!r} on lines {' and '.join(map(str, numbers[-2:]))}"
        notes.append(f"pieces on more than one line: {len(repeated)}, such as {on}; the last line gives the id, {LIKE}")
    if blank:
        notes.append(f"blank lines: {len(blank)}, such as line {blank[0]}; each takes an id, which no text gives, {LIKE}")
    if padded:
        shown = f"{lines[padded[0] - 1]!r} on line {padded[0]}"
        notes.append(f"pieces with white space after them: {len(padded)}, such as {shown}; it is left out, {LIKE}")
    if len(pieces) < len(lines) and lines != [""]:
        notes.append(f"blank lines at the end: {len(lines) - len(pieces)}; they are left out")
    return notes


def twins(pieces: Sequence[str]) -> dict[int, int]:
    """{id that no text gives: the id that texts give} of pieces on several lines."""
    last = {piece: index for index, piece in enumerate(pieces)}
    return {index: last[piece] for index, piece in enumerate(pieces) if last[piece] != index}
