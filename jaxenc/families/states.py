"""What an encoder returns for a batch of rows."""

import dataclasses

import jax
from jax import Array

from jaxenc.layers.cache import Cache
from jaxenc.tree import Tree


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class States:
    """What an encoder returns for a batch of rows.

    last: [batch, length, width], the output of the last layer in the compute dtype. table: float32 [padded vocabulary, table_width], the
    token table as these rows read it (after its dropout, where it has one), for heads tied to it. layers: None unless all layers were
    requested; then [layers + 1, batch, length, width], the input of the first layer and the output of each. cache: that of every layer with
    these rows written to it, None where none was given.
    """

    last: Array
    table: Array
    layers: Array | None = None
    cache: tuple[Cache, ...] | None = None


def states(out: Tree, table: Array, all_layers: bool, cached: bool = False) -> States:
    """`States` from the output of a stack: `out` is the last layer, or, with `all_layers`, the layers stacked on a first axis; where the
    stack was given a cache (`cached`), (that, the cache)."""
    out, cache = out if cached else (out, None)
    return States(out[-1], table, out, cache) if all_layers else States(out, table, None, cache)
