"""Masking single tokens: k of a row's candidates, without replacement, and what each becomes.

The rules are those of google-research/bert:create_pretraining_data.py (create_masked_lm_predictions) and of
facebookresearch/fairseq:fairseq/data/mask_tokens_dataset.py, made a pure function of one key a row so that they run inside the sharded
step. `draws` holds all the randomness, `apply` is deterministic.
"""

import dataclasses
import math
from collections.abc import Mapping
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

UINT32 = 1 << 32


@dataclasses.dataclass(frozen=True)
class TokenMasking:
    """The numbers of the rule.

    rate: share of a row's tokens, specials counted, that is predicted; predictions: the most of one row, the fixed shape.
    rounding: how a row's count becomes whole, `half_even` or `stochastic` (see `budget`).
    mask_share, random_share: how many of the predicted become [MASK] and a random id; the others stay.
    mask_id: the id of [MASK]; never_masked: ids that are no candidates; replacements: the ids a random replacement draws from.
    """

    rate: float
    predictions: int
    rounding: str
    mask_share: float
    random_share: float
    mask_id: int
    never_masked: tuple[int, ...]
    replacements: np.ndarray = dataclasses.field(repr=False)

    def budget(self, length: int) -> tuple[np.ndarray, np.ndarray]:
        """(sure i32, odds u32), each [length + 1]: n tokens have sure[n] predictions, and one more where the row's bits are below odds[n].

        half_even: max(1, round(n · rate)) and never more, with Python's rounding of the float64 product, as google-research/bert counts.
        stochastic: int(n · rate + U) with U = 1 - (bits + 1) / 2^32, as fairseq counts, of the rate as it is written in decimals.
        Counted on the host, because float32 rounds some n the other way (n = 190 at 0.15).
        """
        rows = range(length + 1)
        if self.rounding == "half_even":
            return np.array([max(1, round(n * self.rate)) if n else 0 for n in rows], np.int32), np.zeros(length + 1, np.uint32)
        sure, odds = zip(*(divmod(int(Fraction(repr(self.rate)) * n * UINT32), UINT32) for n in rows), strict=True)
        return np.array(sure, np.int32), np.array(odds, np.uint32)


@dataclasses.dataclass(frozen=True)
class Draws:
    """Uniform u32 bits of one row. selection: [length]; action, replacement: [predictions]; rounding: a scalar."""

    selection: Array
    action: Array
    replacement: Array
    rounding: Array


def draws(key: Array, length: int, predictions: int) -> Draws:
    """All the random bits that masking one row takes from its key."""
    bits = jax.random.bits(key, (length + 2 * predictions + 1,), jnp.uint32)
    return Draws(bits[:length], bits[length : length + predictions], bits[length + predictions : -1], bits[-1])


def apply(masking: TokenMasking, drawn: Draws, tokens: Array, segments: Array) -> dict[str, Array]:
    """Masks one row. tokens, segments: i32 [length]. Returns the corrupted `tokens` and, each i32 [predictions]:

    `masked_at` the predicted positions (0 beyond the row's count), `masked_ids` the original ids there, `masked` 1 where a prediction
    counts. A token's score is its random bits with the candidate flag as the top bit and the position in the low bits, so scores are
    unique, the largest are the choice, and the position is read off the score.
    """
    length = tokens.shape[0]
    place_bits = max(1, math.ceil(math.log2(length)))
    positions = jnp.arange(length, dtype=jnp.uint32)
    candidate = (segments > 0) & ~jnp.isin(tokens, jnp.array(masking.never_masked, jnp.int32))
    noise = (drawn.selection >> 1 >> place_bits) << place_bits
    scores = (candidate.astype(jnp.uint32) << 31) | noise | positions
    best = jax.lax.top_k(scores, masking.predictions)[0]

    sure, odds = (jnp.asarray(table)[jnp.sum(segments > 0)] for table in masking.budget(length))
    count = jnp.minimum(sure + (drawn.rounding < odds), jnp.sum(candidate))
    masked = jnp.arange(masking.predictions) < count
    masked_at = jnp.where(masked, (best & jnp.uint32((1 << place_bits) - 1)).astype(jnp.int32), 0)
    originals = tokens[masked_at]

    becomes_mask = drawn.action < jnp.uint32(threshold(masking.mask_share))
    becomes_random = drawn.action >= jnp.uint32(threshold(1 - masking.random_share))
    random_ids = jnp.asarray(masking.replacements)[drawn.replacement % len(masking.replacements)]
    becomes = jnp.where(becomes_mask, masking.mask_id, jnp.where(becomes_random, random_ids, originals))
    corrupted = tokens.at[jnp.where(masked, masked_at, length)].set(becomes, mode="drop")
    return {
        "tokens": corrupted,
        "masked_at": masked_at,
        "masked_ids": jnp.where(masked, originals, 0),
        "masked": masked.astype(jnp.int32),
    }


def threshold(share: float) -> int:
    """The u32 that uniform bits lie below with probability `share`, to 2^-32."""
    return min(round(share * UINT32), UINT32 - 1)


def statistics(example: Mapping[str, Array]) -> dict[str, tuple[Array, Array]]:
    """Metrics of masked rows: `mask_rate`, predictions by real tokens, and `padding`, padded places by all places.

    A row without any token only fills up a batch and is not counted.
    """
    real = jnp.sum(example["segments"] > 0, axis=1).astype(jnp.float32)
    places = example["segments"].shape[1] * jnp.sum(real > 0).astype(jnp.float32)
    masked = jnp.sum(example["masked"]).astype(jnp.float32)
    return {"mask_rate": (masked, jnp.sum(real)), "padding": (places - jnp.sum(real), places)}
