"""How parameters start."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array

Initializer = Callable[[Array, tuple[int, ...], jnp.dtype], Array]

zeros: Initializer = jax.nn.initializers.zeros
ones: Initializer = jax.nn.initializers.ones


def truncated_normal(scale: float) -> Initializer:
    """Normal draws of deviation `scale`, those beyond 2 · `scale` drawn again (google-research/bert modeling.py, create_initializer).

    `scale` is that of the distribution before the cut, as in TensorFlow: what remains has the standard deviation 0.87963 · `scale`.
    """
    return jax.nn.initializers.truncated_normal(scale, lower=-2.0, upper=2.0)


def leading_rows(init: Initializer, rows: int) -> Initializer:
    """`init` for the first `rows` rows and zeros below them. The draws depend on `rows` alone, not on how far the table is padded."""

    def padded_init(key: Array, shape: tuple[int, ...], dtype: jnp.dtype) -> Array:
        true = init(key, (rows, *shape[1:]), dtype)
        return jnp.zeros(shape, dtype).at[:rows].set(true)

    return padded_init
