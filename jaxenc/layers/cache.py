"""The cache of keys and values of a layer, with which the next token of a text is computed without the earlier ones."""

import dataclasses

import jax
import jax.numpy as jnp
from jax import Array

from jaxenc.layers.frame import BlockSpec


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Cache:
    """The keys and values of one layer, each [batch, places, heads, width / heads] in the compute dtype.

    Place i belongs to token i of the text; its values are undefined until it is written.
    """

    keys: Array
    values: Array

    def written(self, keys: Array, values: Array, places: Array) -> "Cache":
        """This cache with `keys` and `values` [batch, n, heads, width / heads] at `places` i32 [batch, n] of each row."""
        rows = jnp.arange(len(places))[:, None]
        return Cache(self.keys.at[rows, places].set(keys), self.values.at[rows, places].set(values))


def empty(spec: BlockSpec, layers: int, batch: int, places: int, dtype: jnp.dtype) -> tuple[Cache, ...]:
    """One cache for each of `layers` layers, of zeros."""
    zeros = jnp.zeros((batch, places, spec.heads, spec.width // spec.heads), dtype)
    return tuple(Cache(zeros, zeros) for _ in range(layers))
