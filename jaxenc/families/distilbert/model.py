"""DistilBERT (Sanh et al. 2019): a BERT of half the layers, without token types and without a pooler."""

import dataclasses
from collections.abc import Collection
from typing import ClassVar

from flax import linen as nn
from jax import Array

from jaxenc.config import at_least
from jaxenc.data.vocabulary import Vocabulary
from jaxenc.errors import UserError
from jaxenc.execution import Execution
from jaxenc.families.bert.vocabulary import published_bert
from jaxenc.families.contract import EncoderConfig, States, states
from jaxenc.layers.attend import Visible
from jaxenc.layers.embeddings import Embeddings, EmbeddingsSpec
from jaxenc.layers.frame import BlockSpec
from jaxenc.layers.stack import Stack, stack_flops
from jaxenc.rng import Keys


@dataclasses.dataclass(frozen=True)
class DistilbertConfig(EncoderConfig):
    """A DistilBERT encoder; the defaults are the published model. Raises UserError when a number does not fit.

    types: 0: there are no token types.
    heads: number of attention heads; it divides `width`.
    feed_forward: inner width of the feed-forward layers.
    activation: `gelu_erf` is what it was trained with (modeling_distilbert.py of transformers).
    norm_epsilon: added to the variance in layer norms: transformers has 1e-12 and no field for it.
    """

    kind: ClassVar[str] = "distilbert"
    types: ClassVar[int] = 0
    head_names: ClassVar[tuple[str, ...]] = ("pooler", "mlm", "classifier", "tags", "spans")

    vocab_size: int = 30522
    width: int = 768
    layers: int = 6
    heads: int = 12
    feed_forward: int = 3072
    positions: int = 512
    activation: str = "gelu_erf"
    norm_epsilon: float = 1e-12
    dropout: float = 0.1
    attention_dropout: float = 0.1
    init: str = "normal"
    init_scale: float = 0.02
    attention: str = "full"

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(1, "model", self, "heads", "feed_forward", "positions")
        if self.width % self.heads:
            raise UserError(f"model.width {self.width} does not divide into model.heads {self.heads}: make it a multiple")

    @property
    def published_vocabulary(self) -> Vocabulary:
        """The layout of its teacher's vocabulary, used when a recipe names no data."""
        return published_bert(self.vocab_size)

    def encoder(self, heads: Collection[str], execution: Execution) -> "Distilbert":
        """The network, one for all heads. Raises UserError for a built-in head that DistilBERT does not have."""
        self.check_heads(heads)
        return Distilbert(self, execution)

    @property
    def embeddings(self) -> EmbeddingsSpec:
        """The hyper-parameters of the tables."""
        shape = (self.vocab_size, self.width, self.positions, 0, 0)
        return EmbeddingsSpec(*shape, self.norm_epsilon, self.dropout, self.initializer)

    @property
    def block(self) -> BlockSpec:
        """The hyper-parameters of one layer."""
        rates = (self.dropout, self.attention_dropout)
        return BlockSpec(self.width, self.heads, self.feed_forward, self.activation, self.norm_epsilon, *rates, self.initializer)


class Distilbert(nn.Module):
    """The encoder: embeddings and a stack of post-LN layers. Heads are in `heads/`."""

    config: DistilbertConfig
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
        self, tokens: Array, types: Array, positions: Array, visible: Visible, noise: Keys | None, all_layers: bool = False
    ) -> States:
        """As `contract.Encoder.apply`; `types` is not read."""
        hidden, table = Embeddings(self.config.embeddings, self.execution, name="embeddings")(tokens, types, positions, noise)
        stack = Stack(self.config.block, self.config.layers, self.execution, name="encoder")
        return states(stack(hidden, visible, noise, all_layers), table, all_layers)

    def forward_flops(self, length: int) -> float:
        """As `contract.Encoder`."""
        return stack_flops(self.config.block, self.config.layers, length)
