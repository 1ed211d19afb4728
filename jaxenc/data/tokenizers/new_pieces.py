"""Checks of pieces that are added to a vocabulary of any kind."""

from collections.abc import Callable, Sequence

from jaxenc.data.tokenizers import checks
from jaxenc.errors import UserError


def check(pieces: Sequence[str], spelled: Callable[[str], str], find: Callable[[str], int | None]) -> None:
    """Raises UserError for no pieces, and for one that is blank, in the vocabulary already, given twice, or not in UTF-8.

    spelled: as in `Kind`. find: the id of a piece, None if the vocabulary lacks it.
    """
    if not pieces:
        raise UserError("no piece is given", fix="name at least one")
    given: set[str] = set()
    for piece in pieces:
        checks.characters(piece)
        if not piece.strip():
            raise UserError(f"{piece!r} is blank", fix="give pieces with at least one character")
        if find(spelled(piece)) is not None:
            raise UserError(f"{piece!r} is in the vocabulary already", fix="leave it out")
        if spelled(piece) in given:
            raise UserError(f"{piece!r} is given twice", fix="give every piece once")
        given.add(spelled(piece))
