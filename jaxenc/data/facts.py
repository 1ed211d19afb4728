"""Counts of the text and tokens of a build, which add up over groups, shards and splits; the report shows them."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jaxenc.data.scripts import script_of
from jaxenc.data.tokenizers import Tokenizer
from jaxenc.data.tokenizers.marks import Marks
from jaxenc.data.tokenizers.wordpiece_rules import LONGEST_WORD

# Upper ends (exclusive) of the bins of lengths in tokens: four bins for each doubling.
EDGES = np.unique(np.round(2 ** (np.arange(0, 97) / 4)).astype(np.int64)) + 1


@dataclasses.dataclass(frozen=True)
class Facts:
    """Of documents that were kept: documents, sentences, tokens, unknown (tokens predicted as the unknown one), single (documents of one
    sentence), text_bytes (UTF-8), removed (characters that the normaliser removes, see lost.py). Dropped: empty_sentences, empty_documents
    (no token at all), duplicates.

    document_lengths, sentence_lengths: counts by bins of EDGES. In a sample of the text: marks; sampled_tokens and sampled_unknown by
    script; long_words: the unknown tokens that are words of more than LONGEST_WORD characters. In a sample of the lines with an unknown
    token: unknown_characters.
    """

    documents: int = 0
    sentences: int = 0
    tokens: int = 0
    unknown: int = 0
    single: int = 0
    text_bytes: int = 0
    empty_sentences: int = 0
    empty_documents: int = 0
    duplicates: int = 0
    document_lengths: tuple[int, ...] = ()
    sentence_lengths: tuple[int, ...] = ()
    marks: Marks = Marks()
    sampled_tokens: Mapping[str, int] = dataclasses.field(default_factory=dict)
    sampled_unknown: Mapping[str, int] = dataclasses.field(default_factory=dict)
    long_words: int = 0
    removed: Mapping[str, int] = dataclasses.field(default_factory=dict)
    unknown_characters: Mapping[str, int] = dataclasses.field(default_factory=dict)

    def __add__(self, other: "Facts") -> "Facts":
        return Facts(**{field.name: _sum(getattr(self, field.name), getattr(other, field.name)) for field in dataclasses.fields(Facts)})

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Facts":
        """The inverse of `dataclasses.asdict`, with JSON between."""
        lists = {name: tuple(data[name]) for name in ("document_lengths", "sentence_lengths")}
        return cls(**{**data, **lists, "marks": Marks(**data["marks"])})


def _sum(a: Any, b: Any) -> Any:
    if isinstance(a, tuple):
        short, long = sorted((a, b), key=len)
        return tuple(x + y for x, y in zip(short, long, strict=False)) + long[len(short) :]
    if isinstance(a, Mapping):
        return {name: a.get(name, 0) + b.get(name, 0) for name in sorted({*a, *b})}
    return a + b


def lengths(values: np.ndarray) -> tuple[int, ...]:
    """How many of `values` (tokens, i64 [n], each 1 or more) are in each bin of EDGES, without the empty bins after the last."""
    return tuple(np.bincount(np.searchsorted(EDGES, values, "right")).tolist()) if len(values) else ()


def scripts(texts: Sequence[str], tool: Tokenizer) -> Facts:
    """sampled_tokens, sampled_unknown and long_words of `texts`."""
    tokens: dict[str, int] = {}
    unknown: dict[str, int] = {}
    long_words = 0
    for text, (ids, places) in zip(texts, tool.encode_offsets(texts), strict=True):
        for index, (start, end) in zip(ids, places, strict=True):
            script = script_of(text[start:end])
            tokens[script] = tokens.get(script, 0) + 1
            if tool.vocabulary.is_unknown(index):
                unknown[script] = unknown.get(script, 0) + 1
                long_words += end - start > LONGEST_WORD
    return Facts(sampled_tokens=tokens, sampled_unknown=unknown, long_words=long_words)
