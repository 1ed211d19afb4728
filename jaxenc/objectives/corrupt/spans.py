"""Choosing spans of whole words: n-grams, and SpanBERT's spans of geometric lengths.

n-grams: n with p(n) proportional to 1/n for n = 1 .. longest (Lan et al. 2019, ALBERT, section 4.1; 3 at most). Spans: Joshi et al. 2019,
section 3.1: lengths in words of Geometric(0.2), 10 at most, from a start that is uniform over words. The paper's mean length of 3.8 is
that of a geometric law whose longer draws are drawn again (3.797); cutting them to 10 would give 4.46.
"""

from collections.abc import Mapping
from fractions import Fraction
from itertools import accumulate

import jax.numpy as jnp
from jax import Array

from jaxenc.objectives.corrupt import whole_words
from jaxenc.objectives.corrupt.rule import UINT32, Choice, Draws, Masking

# The most words of a span, and the least p of the geometric law: the thresholds are counted exactly, on the host.
MOST_WORDS, LEAST_P = 100, 1e-4


def ngrams(longest: int) -> tuple[int, ...]:
    """The thresholds of n = 1 .. longest words with p(n) proportional to 1/n."""
    return _thresholds([Fraction(1, n) for n in range(1, longest + 1)])


def geometric(p: float, longest: int) -> tuple[int, ...]:
    """The thresholds of 1 .. longest words with p(n) proportional to p (1 - p)^(n - 1): a longer draw is drawn again."""
    stop = Fraction(repr(p))
    return _thresholds([stop * (1 - stop) ** n for n in range(longest)])


def _thresholds(weights: list[Fraction]) -> tuple[int, ...]:
    """The u32 bits from which on a length is more than 1, more than 2, ...: the cumulative shares of 2^32, in what u32 holds. () where
    it is always 1."""
    whole = sum(weights)
    return tuple(min(round(part / whole * UINT32), UINT32 - 1) for part in list(accumulate(weights))[:-1])


def select(masking: Masking, drawn: Draws, row: Mapping[str, Array]) -> Choice:
    """Spans of whole words that never overlap. row: `tokens`, `segments`, `word_starts`, i32 [length]."""
    if not masking.lengths:
        return whole_words.select(masking, drawn, row)
    reached = drawn.lengths[:, None] >= jnp.array(masking.lengths, jnp.uint32)
    return whole_words.take(masking, drawn, row, 1 + jnp.sum(reached, axis=1, dtype=jnp.int32))
