"""Templates of rows: the special pieces around one text and two."""

import dataclasses
from collections.abc import Sequence

from jaxenc.data.frames import FIRST, SECOND
from jaxenc.data.tokenizers.engine import Encoding, Engine
from jaxenc.errors import UserError

Template = Sequence[tuple[int, int]]  # (id, type) of each part of a row in order; FIRST and SECOND are the ids of the texts


@dataclasses.dataclass(frozen=True)
class Pieces:
    """See `engine.Encoding`."""

    ids: list[int]
    type_ids: list[int]
    word_ids: list[int | None]
    offsets: list[tuple[int, int]]
    special_tokens_mask: list[int]


def fill(template: Template, texts: Sequence[Encoding]) -> Pieces:
    """The encoding of one text or two with the special pieces of a template."""
    out = Pieces([], [], [], [], [])
    for index, kind in template:
        if index >= 0:
            added: Encoding = Pieces([index], [kind], [None], [(0, 0)], [1])
        else:
            text = texts[FIRST - index]
            added = Pieces(text.ids, [kind] * len(text.ids), text.word_ids, text.offsets, text.special_tokens_mask)
        for field in dataclasses.fields(Pieces):
            getattr(out, field.name).extend(getattr(added, field.name))
    return out


def of(literal: Engine, prompt: Engine, texts: int) -> tuple[tuple[int, int], ...]:
    """The template by which `prompt` frames one text or two, () where it puts nothing around them. literal: an engine over the same
    vocabulary that adds nothing."""
    samples = [literal.encode(text, add_special_tokens=False) for text in ("a", "b")[:texts]]
    found = prompt.post_process(*samples)
    out, text, left = [], 0, 0
    for index, kind, special in zip(found.ids, found.type_ids, found.special_tokens_mask, strict=True):
        if special:
            out.append((index, kind))
        elif left == 0:
            text, left = text - 1, len(samples[-text].ids) - 1
            out.append((text, kind))
        else:
            left -= 1
    return tuple(out) if len(out) > texts else ()


def by_pieces(engine: Engine, texts: int, pieces: Sequence[str]) -> tuple[tuple[int, int], ...]:
    """The template with `pieces` before, between and after one text or two. Raises UserError for no pieces and for one that is not in the
    vocabulary."""
    if not pieces:
        raise UserError("the vocabulary has no special pieces around a text", fix="use a model whose vocabulary has them")
    ids = [engine.token_to_id(piece) for piece in pieces]
    if lacks := [piece for piece, index in zip(pieces, ids, strict=True) if index is None]:
        add = f"jaxenc resize-vocab --model MODEL --tokens {' '.join(lacks)} --out LARGER"
        raise UserError(f"the vocabulary lacks {', '.join(lacks)}", fix=f"add them with `{add}` and start from LARGER")
    begin, between, end = ids
    return ((begin, 0), (FIRST, 0), *[(between, 0), (SECOND, 0)] * (texts - 1), (end, 0))
