"""Which pieces of a SentencePiece model are its special pieces, and where they stand around a text."""

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from jaxenc.data.frames import CLS_FIRST, CLS_LAST, Frame
from jaxenc.data.tokenizers.file_names import SETTINGS, SPECIALS_MAP
from jaxenc.data.tokenizers.published import classes, settings
from jaxenc.errors import Unsupported, UserError
from jaxenc.files import read_json

AGAIN = "save the folder again from AutoTokenizer, which writes a tokenizer.json that can be opened"
FILES = (settings.ADDED, SPECIALS_MAP, SETTINGS)
ROLES = ("unk", "pad", "cls", "sep", "mask")
ENDS = ("<eop>", "<eod>")  # XLNet's ends of paragraphs and documents


@dataclasses.dataclass(frozen=True)
class Specials:
    """What a family calls its special pieces, and its frame. name: the family, '' for a model that belongs to none."""

    name: str
    unk: str
    pad: str
    cls: str
    sep: str
    mask: str
    frame: Frame

    @property
    def pieces(self) -> tuple[str, ...]:
        """All five: unknown, padding, CLS, SEP, mask."""
        return self.unk, self.pad, self.cls, self.sep, self.mask


FAMILIES = (
    Specials("XLNet", "<unk>", "<pad>", "<cls>", "<sep>", "<mask>", CLS_LAST),
    Specials("ALBERT", "<unk>", "<pad>", "[CLS]", "[SEP]", "[MASK]", CLS_FIRST),
)


def of_pieces(path: str | Path, pieces: Collection[str]) -> Specials:
    """The family whose five special pieces are all among `pieces`. Raises Unsupported, which names what the nearest family lacks."""
    found = _nearest(pieces)
    if lacks := [piece for piece in found.pieces if piece not in pieces]:
        what = f"lacks {' '.join(lacks)}, special pieces of {found.name}"
        raise Unsupported(what, path, "name its special pieces in a tokenizer_config.json beside it")
    return found


def of_folder(path: Path, pieces: Sequence[str], unk: str) -> Specials:
    """The special pieces of the model at `path`: XLNet's or ALBERT's, or else those that the tokenizer_config.json or the
    special_tokens_map.json beside it names (`cls_token` and so on; a text is framed as CLS, text, SEP).

    pieces: all of the model; unk: its unknown piece. Raises Unsupported for a role that nothing names, and for pieces that the files or a
    class of transformers add to those of the model; UserError for a role that is not a piece.
    """
    known = set(pieces)
    _check_class(path.parent)
    named = {"unk": unk}
    for name in (SETTINGS, SPECIALS_MAP):
        named |= _named(path.with_name(name), known)
    _check_added(path.parent, known)
    if any(known.issuperset(family.pieces) for family in FAMILIES):
        found = of_pieces(path, known)
        if other := [role for role, piece in named.items() if piece != getattr(found, role)]:
            what = f"{other[0]}_token is {named[other[0]]!r}, and that of {found.name} is {getattr(found, other[0])!r}"
            raise Unsupported(what, path.with_name(SETTINGS), AGAIN)
        return found
    if missing := [role for role in ROLES if role not in named]:
        lacks = " ".join(piece for piece in _nearest(known).pieces if piece not in known)
        fix = f"name pieces of the model as {', '.join(f'{role}_token' for role in missing)} in a {SETTINGS} beside it"
        raise Unsupported(f"no piece is known to be its {', '.join(missing)} (it lacks {lacks} of {_nearest(known).name})", path, fix)
    if named["unk"] != unk:
        raise UserError(f"unk_token is {named['unk']!r}, and the model's unknown piece is {unk!r}", path, f"write {unk!r} in {SETTINGS}")
    return Specials("", **named, frame=CLS_FIRST)


def _nearest(known: Collection[str]) -> Specials:
    return min(FAMILIES, key=lambda family: sum(piece not in known for piece in family.pieces))


def _check_class(folder: Path) -> None:
    """Raises Unsupported for a class of transformers that is not XLNet's or ALBERT's: XLM-R's, CamemBERT's and their like shift the ids of
    the .model, T5's adds pieces, and so on. A model_type of another family built here says nothing of its vocabulary."""
    choice = classes.chosen(folder, classes.XLNET)
    if choice.reason.startswith("tokenizer_class") and choice.kind not in (classes.XLNET, classes.ALBERT):
        raise Unsupported(f"{choice.reason}, which reads no .model", choice.where, "remove the field")


def _check_added(folder: Path, known: Collection[str]) -> None:
    """Raises Unsupported for pieces that the files beside a .model add to its own."""
    found = settings.read(folder, {})
    named = {str(piece) for piece in (*found.roles.values(), *(found.extra or ())) if piece is not None}
    if new := sorted((named | {token.content for token in found.added.values()}) - {*known}):
        there = [path for path in map(folder.joinpath, FILES) if path.is_file()]
        where = next((path for path in there if new[0] in path.read_text("utf-8")), folder)
        raise Unsupported(f"{new[0]!r} is added to the pieces of the .model", where, AGAIN)


def _named(path: Path, known: Collection[str]) -> Mapping[str, str]:
    """{role: piece} in one of the two files."""
    config: Mapping[str, Any] = read_json(path, "write it again") if path.is_file() else {}
    out = {}
    for role in ROLES:
        value = config.get(f"{role}_token")
        piece = value.get("content") if isinstance(value, dict) else value
        if piece is None:
            continue
        if not isinstance(piece, str) or piece not in known:
            raise UserError(f"{role}_token is {piece!r}, which is not a piece of the model", path, "name one of its pieces")
        out[role] = piece
    return out
