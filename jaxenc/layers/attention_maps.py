"""Attention maps: the attention weights of every head, which an attention module hands out where its caller asks for them."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from flax import linen as nn
from jax import Array

from jaxenc.tree import Tree

# The Flax collection of the maps. It exists only within a call of `computed`: models have parameters and nothing else.
MAPS = "attention_maps"


def hand_out(module: nn.Module, weights: Callable[[], Array]) -> None:
    """Called by an attention module: hands `weights()`, [batch, heads, queries, keys], to `computed`, and does nothing elsewhere."""
    if module.is_mutable_collection(MAPS) and not module.is_initializing():
        module.sow(MAPS, "weights", weights())


def computed(network: nn.Module, params: Tree, *inputs: Any) -> Array:
    """float32 [layers, batch, heads, queries, keys]: the attention weights of every layer of `network`, called with `inputs`.

    Raises ValueError for a network whose layers are scanned, which hand out nothing (`Execution.scan`).
    """
    _, found = network.apply({"params": params}, *inputs, mutable=[MAPS])
    # In the order of the layers' names; a layer that is used several times has its maps in the order of its calls.
    maps = jax.tree.leaves(found.get(MAPS, {}))
    if not maps:
        raise ValueError("no layer handed out its attention weights: build the network with Execution.scan off")
    return jnp.stack(maps).astype(jnp.float32)
