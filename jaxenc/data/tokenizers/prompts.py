"""Texts with the special pieces of a vocabulary around them, by its two engines."""

import bisect
import itertools
from collections.abc import Sequence

from jaxenc.data.tokenizers import checks
from jaxenc.data.tokenizers.engine import Encoding, Engine
from jaxenc.data.tokenizers.templates import Pieces, Template, fill


def _literally(literal: Engine, prompt: Engine, text: str) -> Encoding:
    """A text framed as `prompt` frames it, in which the names of special pieces are ordinary text. Raises UserError for a text that is not
    in UTF-8."""
    checks.characters(text)
    return prompt.post_process(literal.encode(text, add_special_tokens=False))


def of_split(literal: Engine, prompt: Engine, words: Sequence[str]) -> tuple[list[int], list[int], list[int]]:
    """See `Tokenizer.encode_split`."""
    there = [word if word.strip() else "" for word in words]
    found = _literally(literal, prompt, " ".join(filter(None, there)))
    ends = list(itertools.accumulate((len(word) + 1 if word else 0 for word in there), initial=-1))[1:]
    places = zip(found.special_tokens_mask, found.offsets, strict=True)
    return found.ids, found.type_ids, [-1 if special else bisect.bisect_right(ends, max(b - 1, a)) for special, (a, b) in places]


def with_places(literal: Engine, prompt: Engine, text: str) -> tuple[list[int], list[int], list[tuple[int, int]]]:
    """See `Tokenizer.encode_framed_places`."""
    found = _literally(literal, prompt, text)
    places = zip(found.special_tokens_mask, found.offsets, strict=True)
    return found.ids, found.type_ids, [(-1, -1) if special else place for special, place in places]


def of_ids(template: Template, ids: list[int]) -> tuple[list[int], list[int], list[int]]:
    """As `of_split`, for words that have one id each; `ids` has the id of every word."""
    bare = Pieces(ids, [0] * len(ids), [*range(len(ids))], [(0, 0)] * len(ids), [0] * len(ids))
    found = fill(template, [bare])
    return found.ids, found.type_ids, [-1 if number is None else number for number in found.word_ids]
