"""The capability of an encoder that shows its attention weights."""

from typing import Protocol, runtime_checkable

from jax import Array

from jaxenc.errors import UserError
from jaxenc.families.contract import Encoder
from jaxenc.layers.visible import Visible
from jaxenc.tree import Tree


@runtime_checkable
class Attentive(Protocol):
    """An encoder, as `contract.Encoder`, whose attention weights can be computed."""

    def attention_maps(self, params: Tree, tokens: Array, types: Array, positions: Array, visible: Visible) -> Array:
        """float32 [layers, batch, heads, length, length]: the weight of each key (last axis) for each query, without dropout; 0 for a key
        that the query does not see. The arguments are those of `contract.Encoder.apply`."""
        ...


def required(encoder: Encoder) -> Attentive:
    """`encoder`, checked to be `Attentive`. Raises UserError for one that is not."""
    if isinstance(encoder, Attentive):
        return encoder
    what = f"a model of kind {encoder.config.kind} does not show its attention weights"
    raise UserError(what, fix="give its encoder the method attention_maps (jaxenc/families/attentive.py)")
