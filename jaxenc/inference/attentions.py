"""Attention maps of texts: how much each token looks at each other token, in every head of every layer."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jax import Array

from jaxenc.data.batch import Batch
from jaxenc.inference.hidden import by_length


class Attended(NamedTuple):
    """weights: float32 [layers, batch, heads, length, length], of each key (last axis) for each query; mask, tokens: int32 [batch,
    length]."""

    weights: np.ndarray
    mask: np.ndarray
    tokens: np.ndarray


def attention_weights(start: Callable[[Batch], Array], rows: Batch, at_once: int) -> np.ndarray:
    """float32 [layers, batch, heads, length, length] of `rows`, 0 at padding.

    rows: i32 [batch, length] fields, at least one row. start: computes the weights of some rows, [layers, >= n, heads, >= length, >=
    length], which it may pad at the end of these axes. at_once: rows of one call.
    """
    real, out = rows["segments"] != 0, None
    for chosen, length in by_length(real, at_once):
        found = np.asarray(start({field: array[chosen, :length] for field, array in rows.items()}))
        if out is None:
            out = np.zeros((found.shape[0], real.shape[0], found.shape[2], real.shape[1], real.shape[1]), np.float32)
        # Queries at padding read the text too, and nothing reads what they get.
        out[:, chosen, :, :length, :length] = found[:, : len(chosen), :, :length, :length] * real[chosen, None, :length, None]
    return out
