"""Sums over the places of rows that are too many to compute at once."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

# Logits that are held at once: 2 GB of float32.
LOGITS = 2**29


def of_logits(function: Callable[..., Any], classes: int, rows: tuple[Array, ...]) -> Any:
    """function(*rows), a tree of sums over places that computes `classes` logits for each place of `rows` [batch, length, ...]; part by
    part, as `summed`, where LOGITS does not hold all of them."""
    batch, length = rows[0].shape[:2]
    at_once = max(1, LOGITS // (batch * classes))
    return function(*rows) if at_once >= length else summed(function, at_once, rows)


def summed(function: Callable[..., Any], size: int, rows: tuple[Array, ...]) -> Any:
    """function(*rows) of `size` places of every row at a time, added up.

    rows: arrays [batch, length, ...]; function takes them cut to [batch, size, ...] and returns a tree of sums over places, to which a
    place where all of them are 0 adds nothing: the last part is filled up with such. The backward pass computes each part again, so no
    more than one is held in memory; the batch axis is not touched.
    """
    count = -(-rows[0].shape[1] // size)

    def cut(leaf: Array) -> Array:
        batch, length, *rest = leaf.shape
        filled = jnp.pad(leaf, [(0, 0), (0, count * size - length), *[(0, 0)] * len(rest)])
        return jnp.moveaxis(filled.reshape(batch, count, size, *rest), 1, 0)

    # A scan keeps what it computes again apart by itself, which checkpoint would otherwise do at a cost.
    one = jax.checkpoint(lambda part: function(*part), prevent_cse=False)
    return jax.tree.map(lambda leaf: jnp.sum(leaf, axis=0), jax.lax.map(one, tuple(cut(leaf) for leaf in rows)))
