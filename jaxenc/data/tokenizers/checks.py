"""Checks of a vocabulary of any kind and of a text; each error is one line."""

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from jaxenc.errors import UserError

AGAIN = "make the tokenizer again, or copy it again"
LARGEST = 1 << 22  # pieces; to train, the library reserves memory for all of them and aborts the process when there is not enough


def characters(text: str) -> None:
    """Raises UserError for a lone surrogate, which Python puts where the bytes of an argument are not UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise UserError(f"{text!a} holds {text[error.start]!a}, which is not a character", fix="give text in UTF-8") from error


def size(vocab_size: int, smallest: int, always: str) -> None:
    """Raises UserError where a vocabulary is to be larger than any, or smaller than the pieces it always has.

    smallest: the number of these; always: what messages call them.
    """
    if vocab_size > LARGEST:
        raise UserError("too large", f"--vocab-size {vocab_size}", f"use {LARGEST} at most")
    if vocab_size < smallest:
        raise UserError("too small", f"--vocab-size {vocab_size}", f"use more: {always} alone take {smallest} pieces")


@contextlib.contextmanager
def damaged(path: str | Path) -> Iterator[None]:
    """Turns what Python raises over content of another form than expected into one UserError that names the file."""
    try:
        yield
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise UserError(f"damaged ({type(error).__name__}: {error})", path, AGAIN) from error


def by_id(ids: Mapping[str, int], path: str | Path, gaps: bool = False) -> list[str]:
    """The pieces in the order of their ids, '' for an id that none has. Raises UserError unless ids are 0, 1, 2 ..., each once, and each at
    most once with `gaps`; it names a piece at fault."""
    size = min(max(ids.values(), default=-1) + 1, LARGEST) if gaps else len(ids)
    out: list[str | None] = [None] * size
    for piece, index in ids.items():
        held = out[index] if 0 <= index < size else piece
        if held is not None:
            fault = f"{piece!r} has the id {index}" if held == piece else f"{held!r} and {piece!r} have the id {index}"
            raise UserError(f"ids are not 0 to {size - 1}, each once: {fault}", path, AGAIN)
        out[index] = piece
    return [piece or "" for piece in out]
