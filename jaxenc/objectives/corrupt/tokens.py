"""Choosing single tokens: k of a row's candidates, without replacement.

The rule of google-research/bert:create_pretraining_data.py (create_masked_lm_predictions) and of
facebookresearch/fairseq:fairseq/data/mask_tokens_dataset.py, made a pure function of one key a row.
"""

from collections.abc import Mapping

import jax
import jax.numpy as jnp
from jax import Array

from jaxenc.objectives.corrupt.rule import Choice, Draws, Masking, place, scores


def select(masking: Masking, drawn: Draws, row: Mapping[str, Array]) -> Choice:
    """The candidates of the largest random bits, as many as the budget has. row: `tokens`, `segments`, i32 [length]."""
    length, numbers = row["tokens"].shape[0], jnp.arange(masking.predictions)
    candidate = masking.candidates(row["tokens"], row["segments"])
    best = jax.lax.top_k(scores(drawn.selection, candidate), masking.predictions)[0]
    masked = numbers < masking.count(drawn, row["segments"], candidate)
    return Choice(jnp.where(masked, place(best, length), 0), masked, numbers)
