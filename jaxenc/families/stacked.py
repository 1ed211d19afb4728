"""The encoder that BERT, GPT-1 and DistilBERT have in common: embeddings and a stack of equal layers. They differ in their configs."""

import abc
from collections.abc import Collection
from typing import ClassVar

from flax import linen as nn
from jax import Array

from jaxenc.config import at_least
from jaxenc.errors import UserError
from jaxenc.execution import Execution
from jaxenc.families.contract import EncoderConfig
from jaxenc.families.states import States, states
from jaxenc.layers import attention_maps
from jaxenc.layers import cache as caches
from jaxenc.layers.block import Block
from jaxenc.layers.cache import Cache
from jaxenc.layers.embeddings import Embeddings, EmbeddingsSpec
from jaxenc.layers.frame import BlockSpec
from jaxenc.layers.stack import Stack, stack_flops
from jaxenc.layers.visible import Visible
from jaxenc.rng import Keys
from jaxenc.tree import Tree


class StackedConfig(EncoderConfig):
    """The config of a model whose encoder is a `StackedEncoder`. Raises UserError when a number does not fit.

    heads: number of attention heads; it divides `width`.
    feed_forward: inner width of the feed-forward layers.
    layer_class: the class of a layer, a module with the fields and the arguments of `Block`.
    """

    layer_class: ClassVar[type[nn.Module]] = Block

    heads: int
    feed_forward: int

    def __post_init__(self) -> None:
        at_least(1, "model", self, "heads", "feed_forward", "positions")
        super().__post_init__()
        if self.width % self.heads:
            raise UserError(f"model.width {self.width} does not divide into model.heads {self.heads}", fix="make it a multiple")

    @property
    @abc.abstractmethod
    def embeddings(self) -> EmbeddingsSpec:
        """The hyper-parameters of the tables."""

    @property
    def block(self) -> BlockSpec:
        """The hyper-parameters of one layer."""
        rates = (self.dropout, self.attention_dropout)
        return BlockSpec(self.width, self.heads, self.feed_forward, self.activation, self.norm_epsilon, *rates, self.initializer)

    def encoder(self, heads: Collection[str], execution: Execution) -> "StackedEncoder":
        """As the contract says; there is one network for all heads."""
        self.check_heads(heads)
        return StackedEncoder(self, execution)

    def empty_cache(self, execution: Execution, batch: int, places: int) -> tuple[Cache, ...]:
        """As `incremental.Incremental`."""
        return caches.empty(self.block, self.layers, batch, places, execution.policy.compute)


class StackedEncoder(nn.Module):
    """Embeddings and a stack of equal layers. Heads are in `heads/`."""

    config: StackedConfig
    execution: Execution

    @property
    def width(self) -> int:
        """Of the hidden states."""
        return self.config.width

    @property
    def table_width(self) -> int:
        """Of the tables."""
        return self.config.width

    @nn.compact
    def __call__(
        self,
        tokens: Array,
        types: Array,
        positions: Array,
        visible: Visible,
        noise: Keys | None,
        all_layers: bool = False,
        cache: tuple[Cache, ...] | None = None,
    ) -> States:
        """As `contract.Encoder.apply`; `types` is not read where the model has none."""
        hidden, table = Embeddings(self.config.embeddings, self.execution, name="embeddings")(tokens, types, positions, noise)
        stack = Stack(self.config.block, self.config.layers, self.execution, self.config.layer_class, name="encoder")
        return states(stack(hidden, visible, noise, all_layers, cache=cache), table, all_layers, cache is not None)

    def attention_maps(self, params: Tree, tokens: Array, types: Array, positions: Array, visible: Visible) -> Array:
        """As `attentive.Attentive`."""
        return attention_maps.computed(self, params, tokens, types, positions, visible, None)

    def forward_flops(self, length: int) -> float:
        """As `contract.Encoder`."""
        return stack_flops(self.config.block, self.config.layers, length)
