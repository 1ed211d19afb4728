"""Masking single tokens drawn with replacement, as google-research/electra:pretrain/pretrain_helpers.py (mask) does."""

from collections.abc import Mapping

import jax.numpy as jnp
from jax import Array

from jaxenc.objectives.corrupt.masking import threshold
from jaxenc.objectives.corrupt.rule import Draws, Masking


def apply(masking: Masking, drawn: Draws, row: Mapping[str, Array]) -> dict[str, Array]:
    """As `masking.apply` of single tokens with the same budget, but each prediction falls on any candidate, whether or not another has
    fallen there.

    A place that was drawn twice counts twice. Each draw of it becomes [MASK] with probability `mask_share`, so the place stays as it
    is when no draw does. random_share has no meaning here and must be 0.
    """
    tokens, segments = row["tokens"], row["segments"]
    candidate = masking.candidates(tokens, segments)
    candidates = jnp.sum(candidate)
    count = jnp.where(candidates > 0, masking.wanted(drawn, segments), 0)
    masked = jnp.arange(masking.predictions) < count

    # The remainder favours low numbers by less than length / 2^32.
    number = drawn.selection[: masking.predictions] % jnp.maximum(candidates, 1).astype(jnp.uint32)
    places = jnp.searchsorted(jnp.cumsum(candidate), number.astype(jnp.int32) + 1)
    masked_at = jnp.where(masked, places, 0).astype(jnp.int32)
    becomes_mask = masked & (drawn.action < jnp.uint32(threshold(masking.mask_share)))
    return {
        "tokens": tokens.at[jnp.where(becomes_mask, masked_at, len(tokens))].set(masking.mask_id, mode="drop"),
        "masked_at": masked_at,
        "masked_ids": jnp.where(masked, tokens[masked_at], 0),
        "masked": masked.astype(jnp.int32),
    }
