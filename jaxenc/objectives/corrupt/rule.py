"""The numbers of a masking rule, the random bits that one row takes, and the one budget that every unit keeps to."""

import dataclasses
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

UINT32 = 1 << 32
# A rate that moves does so in this many equal moves, whose arithmetic stays within i32 up to MOST_STEPS steps.
LEVELS = 256
MOST_STEPS = ((1 << 31) - 1) // LEVELS


@dataclasses.dataclass(frozen=True)
class Masking:
    """The numbers of the rule.

    rate: share of a row's tokens, specials counted, that is predicted; final_rate, rate_steps: where it goes on a straight line, and in
    how many steps of the run, 0 for a constant rate. predictions: the most of one row, the fixed shape at every step.
    rounding: how a row's count becomes whole, `half_even` or `stochastic` (see `budget`).
    unit: what is chosen as one, `tokens`, `words`, `ngrams` or `spans`. lengths: of how many words, as the thresholds of random bits that
    `spans.py` makes; () for always one.
    mask_share, random_share: how many of the predicted become [MASK] and a random id; the others stay.
    action: which of the three it is, is drawn for each `token` or once for a `span`.
    mask_id: the id of [MASK]; never_masked: ids that are not candidates; replacements: the ids a random replacement draws from.
    """

    rate: float
    final_rate: float
    rate_steps: int
    predictions: int
    rounding: str
    unit: str
    lengths: tuple[int, ...]
    mask_share: float
    random_share: float
    action: str
    mask_id: int
    never_masked: tuple[int, ...]
    replacements: np.ndarray = dataclasses.field(repr=False)

    def rates(self) -> list[Fraction]:
        """The rate of each level, as it is written in decimals: the one, or LEVELS + 1 from `rate` to `final_rate`, equally far apart."""
        first, last = Fraction(repr(self.rate)), Fraction(repr(self.final_rate))
        return [first + (last - first) * level / LEVELS for level in range(LEVELS + 1)] if self.rate_steps else [first]

    def level(self, step: Array) -> Array:
        """i32 scalar: the level that holds at a step of the run, i32. From step `rate_steps` on it is the last."""
        return jnp.minimum(step, self.rate_steps) * LEVELS // self.rate_steps if self.rate_steps else jnp.int32(0)

    def budget(self, length: int) -> tuple[np.ndarray, np.ndarray]:
        """(sure i32, odds u32), each [levels, length + 1]: n tokens have sure[level, n] predictions, and one more where the row's bits are
        below odds[level, n].

        half_even: max(1, round(n · rate)) and never more, with Python's rounding of the float64 product, as google-research/bert counts.
        stochastic: int(n · rate + U) with U = 1 - (bits + 1) / 2^32, as fairseq counts, of the rate as it is written in decimals.
        Counted on the host, because float32 rounds some n the other way (n = 190 at 0.15).
        """
        if self.rounding == "half_even":
            sure = [[max(1, round(n * float(rate))) if n else 0 for n in range(length + 1)] for rate in self.rates()]
            return np.array(sure, np.int32), np.zeros(np.shape(sure), np.uint32)
        exact = [[n * rate.numerator * UINT32 // rate.denominator for n in range(length + 1)] for rate in self.rates()]
        sure, odds = np.divmod(np.array(exact, np.int64), UINT32)
        return sure.astype(np.int32), odds.astype(np.uint32)

    def candidates(self, tokens: Array, segments: Array) -> Array:
        """bool [length]: the tokens of one row, i32 [length] both, that may be predicted."""
        return (segments > 0) & ~jnp.isin(tokens, jnp.array(self.never_masked, jnp.int32))

    def wanted(self, drawn: "Draws", segments: Array) -> Array:
        """i32 scalar: how many predictions the rate asks for in a row of these segments, i32 [length]."""
        sure, odds = (jnp.asarray(table)[drawn.level, jnp.sum(segments > 0)] for table in self.budget(segments.shape[0]))
        return sure + (drawn.rounding < odds)

    def count(self, drawn: "Draws", segments: Array, candidate: Array) -> Array:
        """i32 scalar: how many predictions the row may have; no more than it has candidates, nor than `predictions`."""
        return jnp.minimum(jnp.minimum(self.wanted(drawn, segments), jnp.sum(candidate)), self.predictions)


@dataclasses.dataclass(frozen=True)
class Draws:
    """Uniform u32 bits of one row, and the level of the rate at its step.

    selection: [length], by position; action, replacement: [predictions]; rounding: a scalar; lengths: [predictions], one for each
    span, or [0] where a unit has one length; level: i32 scalar.
    """

    selection: Array
    action: Array
    replacement: Array
    rounding: Array
    lengths: Array
    level: Array


def draws(masking: Masking, key: Array, length: int, step: Array) -> Draws:
    """All the random bits that masking one row takes from its key, which do not depend on the step."""
    n, spans = masking.predictions, masking.predictions if masking.lengths else 0
    bits = jax.random.bits(key, (length + 2 * n + 1 + spans,), jnp.uint32)
    selection, action, replacement, rounding, lengths = jnp.split(bits, np.cumsum([length, n, n, 1]))
    return Draws(selection, action, replacement, rounding[0], lengths, masking.level(step))


@dataclasses.dataclass(frozen=True)
class Choice:
    """What one row predicts, each [predictions]. at: i32 positions; masked: bool, where there is one; span: i32, which of the chosen."""

    at: Array
    masked: Array
    span: Array


def scores(selection: Array, flag: Array) -> Array:
    """u32 [length]: random bits with the flag as the top bit and the position in the low bits.

    So scores are unique, no backend decides a tie, the largest are the choice, and the position is read off the score (`place`).
    """
    length = selection.shape[0]
    noise = (selection >> 1 >> _place_bits(length)) << _place_bits(length)
    return (flag.astype(jnp.uint32) << 31) | noise | jnp.arange(length, dtype=jnp.uint32)


def place(score: Array, length: int) -> Array:
    """i32: the position in a row of `length` that a score stands for."""
    return (score & jnp.uint32((1 << _place_bits(length)) - 1)).astype(jnp.int32)


def _place_bits(length: int) -> int:
    return max(1, (length - 1).bit_length())
