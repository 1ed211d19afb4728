"""ALBERT (Lan et al. 2019): a BERT with narrow embeddings, whose layers share one set of parameters."""

import dataclasses
from collections.abc import Collection
from typing import ClassVar

from flax import linen as nn
from jax import Array

from jaxenc.config import at_least
from jaxenc.data.vocabulary import Vocabulary
from jaxenc.errors import UserError
from jaxenc.execution import Execution
from jaxenc.families.albert.hyperparameters import ALBERT
from jaxenc.families.albert.vocabulary import published_albert
from jaxenc.families.contract import EncoderConfig
from jaxenc.families.hyperparameters import Hyperparameters
from jaxenc.families.states import States, states
from jaxenc.heads import ON_TEXTS, TUNED
from jaxenc.layers import attention_maps
from jaxenc.layers.dense import Dense
from jaxenc.layers.embeddings import Embeddings, EmbeddingsSpec
from jaxenc.layers.frame import BlockSpec
from jaxenc.layers.stack import Stack, stack_flops
from jaxenc.layers.visible import Visible
from jaxenc.rng import Keys
from jaxenc.tree import Tree

# The dropout rate on the input of the heads of fine-tuned models.
HEAD_DROPOUT = 0.1


@dataclasses.dataclass(frozen=True)
class AlbertConfig(EncoderConfig):
    """An ALBERT encoder; the defaults are ALBERT-base, version 2. Raises UserError when a number does not fit.

    heads: number of attention heads; it divides `width`.
    feed_forward: inner width of the feed-forward layers.
    embedding: width of the token, position and type tables; a dense layer takes their sum to `width`.
    groups: number of sets of layer parameters that are stored, 1 as published; consecutive layers share a set.
    dropout: dropout rate on the embeddings and on the output of each sublayer. It is 0 in version 2 of the published models and 0.1 in
        version 1 (google-research/albert README.md), as is `attention_dropout`.
    activation: `gelu_tanh` is what google-research/albert was trained with.
    attention: what a token sees of its text: `full`, all of it, as published, or `causal`, nothing after itself.
    """

    kind: ClassVar[str] = "albert"
    head_names: ClassVar[tuple[str, ...]] = ("pooler", "mlm", "sentence_order", *TUNED)
    fine_tuning: ClassVar[Hyperparameters] = ALBERT

    vocab_size: int = 30000
    width: int = 768
    layers: int = 12
    heads: int = 12
    feed_forward: int = 3072
    embedding: int = 128
    groups: int = 1
    positions: int = 512
    types: int = 2
    activation: str = "gelu_tanh"
    norm_epsilon: float = 1e-12
    dropout: float = 0.0
    attention_dropout: float = 0.0
    init: str = "truncated_normal"
    init_scale: float = 0.02
    attention: str = "full"
    spare_rows: int = 0

    def __post_init__(self) -> None:
        at_least(1, "model", self, "heads", "feed_forward", "embedding", "groups", "positions")
        super().__post_init__()
        if self.width % self.heads:
            raise UserError(f"model.width {self.width} does not divide into model.heads {self.heads}", fix="make it a multiple")
        if self.groups > self.layers:
            raise UserError(f"model.groups is {self.groups} and model.layers {self.layers}", fix="use one group for each layer at most")

    @property
    def published_vocabulary(self) -> Vocabulary:
        """The vocabulary that a recipe stands for when no data is named: ALBERT's layout."""
        return published_albert(self.pieces)

    def encoder(self, heads: Collection[str], execution: Execution) -> "Albert":
        """The one network. Raises UserError for a head that is another family's."""
        self.check_heads(heads)
        return Albert(self, execution)

    def head_dropout(self, head: str) -> float:
        """As the contract says, but with a rate of its own, 0.1 in version 2 too (google-research/albert classifier_utils.py, keep_prob;
        transformers' classifier_dropout_prob)."""
        return HEAD_DROPOUT if head in (*ON_TEXTS, "tags") else 0.0

    @property
    def embeddings(self) -> EmbeddingsSpec:
        """What the tables need to know."""
        shape = (self.vocab_size, self.embedding, self.positions, 0, self.types)
        return EmbeddingsSpec(*shape, self.norm_epsilon, self.dropout, self.initializer)

    @property
    def block(self) -> BlockSpec:
        """What one layer needs to know."""
        rates = (self.dropout, self.attention_dropout)
        return BlockSpec(self.width, self.heads, self.feed_forward, self.activation, self.norm_epsilon, *rates, self.initializer)


class Albert(nn.Module):
    """The encoder: narrow embeddings, the dense layer `project`, and a stack of `config.layers` layers with the parameters of
    `config.groups`. Heads are in `heads/`."""

    config: AlbertConfig
    execution: Execution

    @property
    def width(self) -> int:
        """Of the hidden states."""
        return self.config.width

    @property
    def table_width(self) -> int:
        """Of the tables."""
        return self.config.embedding

    @nn.compact
    def __call__(
        self, tokens: Array, types: Array, positions: Array, visible: Visible, noise: Keys | None, all_layers: bool = False
    ) -> States:
        """As `contract.Encoder.apply`. What enters the first layer is what `project` gives (google-research/albert modeling.py,
        transformer_model)."""
        config = self.config
        hidden, table = Embeddings(config.embeddings, self.execution, name="embeddings")(tokens, types, positions, noise)
        hidden = Dense(config.width, ("embed", "norm"), config.initializer, self.execution, name="project")(hidden)
        stack = Stack(config.block, config.layers, self.execution, stored=config.groups, name="encoder")
        return states(stack(hidden, visible, noise, all_layers), table, all_layers)

    def attention_maps(self, params: Tree, tokens: Array, types: Array, positions: Array, visible: Visible) -> Array:
        """As `attentive.Attentive`."""
        return attention_maps.computed(self, params, tokens, types, positions, visible, None)

    def forward_flops(self, length: int) -> float:
        """As `contract.Encoder`."""
        config = self.config
        return 2.0 * length * config.embedding * config.width + stack_flops(config.block, config.layers, length)
