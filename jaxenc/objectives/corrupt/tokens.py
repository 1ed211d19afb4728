"""Masking single tokens: exactly k of a row's candidates, without replacement, and what each becomes.

The rule is that of google-research/bert:create_pretraining_data.py (create_masked_lm_predictions), made a pure function of one key a
row so that it runs inside the sharded step. `draws` holds all the randomness, `apply` is deterministic.
"""

import dataclasses
import math
from collections.abc import Mapping

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

UINT32 = 1 << 32


@dataclasses.dataclass(frozen=True)
class TokenMasking:
    """The numbers of the rule.

    rate: share of a row's tokens, specials counted, that is predicted; predictions: the most of one row, the fixed shape.
    mask_share, random_share: how many of the predicted become [MASK] and a random id; the others stay.
    mask_id: the id of [MASK]; never_masked: ids that are no candidates; replacements: the ids a random replacement draws from.
    """

    rate: float
    predictions: int
    mask_share: float
    random_share: float
    mask_id: int
    never_masked: tuple[int, ...]
    replacements: np.ndarray = dataclasses.field(repr=False)

    def budget(self, length: int) -> np.ndarray:
        """i32 [length + 1]: predictions of a row by its number of tokens, min(predictions, max(1, round(n · rate))), half to even.

        Counted on the host with Python's rounding, because float32 rounds some halves the other way (n = 190 at 0.15).
        """
        counts = [min(self.predictions, max(1, round(n * self.rate))) for n in range(length + 1)]
        return np.array([0, *counts[1:]], np.int32)


@dataclasses.dataclass(frozen=True)
class Draws:
    """Uniform u32 bits of one row. selection: [length]; action, replacement: [predictions]."""

    selection: Array
    action: Array
    replacement: Array


def draws(key: Array, length: int, predictions: int) -> Draws:
    """All the random bits that masking one row takes from its key."""
    bits = jax.random.bits(key, (length + 2 * predictions,), jnp.uint32)
    return Draws(bits[:length], bits[length : length + predictions], bits[length + predictions :])


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

    count = jnp.minimum(jnp.asarray(masking.budget(length))[jnp.sum(segments > 0)], jnp.sum(candidate))
    masked = jnp.arange(masking.predictions) < count
    masked_at = jnp.where(masked, (best & jnp.uint32((1 << place_bits) - 1)).astype(jnp.int32), 0)
    originals = tokens[masked_at]

    becomes_mask = drawn.action < jnp.uint32(_threshold(masking.mask_share))
    becomes_random = drawn.action >= jnp.uint32(_threshold(1 - masking.random_share))
    random_ids = jnp.asarray(masking.replacements)[drawn.replacement % len(masking.replacements)]
    becomes = jnp.where(becomes_mask, masking.mask_id, jnp.where(becomes_random, random_ids, originals))
    corrupted = tokens.at[jnp.where(masked, masked_at, length)].set(becomes, mode="drop")
    return {
        "tokens": corrupted,
        "masked_at": masked_at,
        "masked_ids": jnp.where(masked, originals, 0),
        "masked": masked.astype(jnp.int32),
    }


def _threshold(share: float) -> int:
    return min(round(share * UINT32), UINT32 - 1)


def statistics(example: Mapping[str, Array]) -> dict[str, tuple[Array, Array]]:
    """Metrics of masked rows: `mask_rate`, predictions by real tokens, and `padding`, padded places by all places.

    A row without any token only fills up a batch and is not counted.
    """
    real = jnp.sum(example["segments"] > 0, axis=1).astype(jnp.float32)
    places = example["segments"].shape[1] * jnp.sum(real > 0).astype(jnp.float32)
    masked = jnp.sum(example["masked"]).astype(jnp.float32)
    return {"mask_rate": (masked, jnp.sum(real)), "padding": (places - jnp.sum(real), places)}
