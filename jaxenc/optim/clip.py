"""Clipping by the global norm."""

import jax
import jax.numpy as jnp
from jax import Array

from jaxenc.tree import Tree


def clip_by_global_norm(grads: Tree, norm: Array, limit: float) -> Tree:
    """`grads` times min(1, limit / norm), as tf.clip_by_global_norm does; unchanged where `limit` is 0.

    norm: float32 scalar, the global norm of `grads` (`optax.tree.norm`), which the step also tests for being finite.
    """
    if limit == 0:
        return grads
    factor = limit / jnp.maximum(norm, limit)
    return jax.tree.map(lambda grad: grad * factor, grads)
