"""An embedding table and its look-up."""

import jax.numpy as jnp
from flax import linen as nn
from jax import Array

from jaxenc.execution import Execution
from jaxenc.layers.initializers import Initializer


class Embed(nn.Module):
    """A table [rows, features] and its look-up."""

    rows: int
    features: int
    names: tuple[str | None, str | None]
    init_rows: Initializer
    execution: Execution

    @nn.compact
    def table(self) -> Array:
        """float32 [rows, features]."""
        init = nn.with_logical_partitioning(self.init_rows, self.names)
        return self.param("table", init, (self.rows, self.features), self.execution.policy.params)

    def __call__(self, ids: Array) -> Array:
        """i32 [...] to float32 [..., features], as `look_up`."""
        return look_up(self.table(), ids)


def look_up(table: Array, ids: Array) -> Array:
    """The rows `ids` i32 [...] of a table [rows, features], in the table's dtype; the caller casts them. Ids are checked on the host; here
    one past the end would read the last row.

    Casting the table before the gather would sum its gradient in bfloat16: less exact, and 2.15 times slower for a full step of a model of
    110M parameters on an H200.
    """
    return jnp.take(table, ids, axis=0, mode="clip")
