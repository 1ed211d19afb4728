"""BERT (Devlin et al. 2018) and RoBERTa (Liu et al. 2019): one module for both, which differ in config fields."""

import dataclasses
from collections.abc import Collection
from typing import ClassVar

import numpy as np
from flax import linen as nn
from jax import Array

from jaxenc.config import at_least
from jaxenc.data.vocabulary import Vocabulary
from jaxenc.errors import UserError
from jaxenc.execution import Execution
from jaxenc.families.bert.vocabulary import published_bert, published_roberta
from jaxenc.families.contract import EncoderConfig, States, states
from jaxenc.layers import cache as caches
from jaxenc.layers.attend import Visible
from jaxenc.layers.cache import Cache
from jaxenc.layers.embeddings import Embeddings, EmbeddingsSpec
from jaxenc.layers.frame import BlockSpec
from jaxenc.layers.stack import Stack, stack_flops
from jaxenc.rng import Keys


@dataclasses.dataclass(frozen=True)
class BertConfig(EncoderConfig):
    """A BERT or RoBERTa encoder; the defaults are BERT-base uncased. Raises UserError when a number does not fit.

    heads: number of attention heads; it divides `width`.
    feed_forward: inner width of the feed-forward layers.
    types: number of token types: 2 for BERT; 0 leaves the table out, as fairseq's RoBERTa does. RoBERTa of transformers has 1.
    first_position: table row of position 0: 0 for BERT, 2 for RoBERTa. Those of fairseq start after the pad id; the table has positions +
        first_position rows.
    activation: `gelu_tanh` is what google-research/bert was trained with, `gelu_erf` is RoBERTa's and what transformers runs.
    norm_epsilon: added to the variance in layer norms: 1e-12 is TensorFlow's (tf.contrib.layers.layer_norm), 1e-5 RoBERTa's.
    init: distribution of the initial weights: `truncated_normal` (google-research/bert) or `normal` (RoBERTa). The latter is fairseq's and
        transformers'.
    attention: which tokens of its text a token sees: `full`, all of them, as BERT, or `causal`, itself and those before it.
    """

    kind: ClassVar[str] = "bert"

    vocab_size: int = 30522
    width: int = 768
    layers: int = 12
    heads: int = 12
    feed_forward: int = 3072
    positions: int = 512
    types: int = 2
    first_position: int = 0
    activation: str = "gelu_tanh"
    norm_epsilon: float = 1e-12
    dropout: float = 0.1
    attention_dropout: float = 0.1
    init: str = "truncated_normal"
    init_scale: float = 0.02
    attention: str = "full"

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(1, "model", self, "heads", "feed_forward", "positions")
        at_least(0, "model", self, "first_position")
        if self.width % self.heads:
            raise UserError(f"model.width {self.width} does not divide into model.heads {self.heads}: make it a multiple")

    @property
    def published_vocabulary(self) -> Vocabulary:
        """As the contract says: BERT's layout, or RoBERTa's where `first_position` is set."""
        published = published_roberta if self.first_position else published_bert
        return published(self.vocab_size)

    def with_vocabulary(self, vocabulary: Vocabulary) -> "BertConfig":
        """As the contract says; RoBERTa's positions start after the tokenizer's pad id."""
        first = vocabulary.pad + 1 if self.first_position else 0
        return dataclasses.replace(self, vocab_size=vocabulary.size, first_position=first)

    def positions_of(self, tokens: np.ndarray) -> np.ndarray:
        """Positions i32 [batch, length] of rows that hold one text each; `tokens` may be traced.

        BERT (first_position 0): 0, 1, 2 ... at every place. RoBERTa: counted over the tokens that are not pad, whose id is
        first_position - 1, and -1 at pads (row first_position - 1 of the table), as create_position_ids_from_input_ids of transformers.
        """
        if not self.first_position:
            return np.broadcast_to(np.arange(tokens.shape[1], dtype=np.int32), tokens.shape)
        real = tokens != self.first_position - 1
        return (real.cumsum(axis=1) * real - 1).astype(np.int32)

    def encoder(self, heads: Collection[str], execution: Execution) -> "Bert":
        """As the contract says; there is one network for all heads."""
        self.check_heads(heads)
        return Bert(self, execution)

    @property
    def embeddings(self) -> EmbeddingsSpec:
        """The hyper-parameters of the tables."""
        shape = (self.vocab_size, self.width, self.positions, self.first_position, self.types)
        return EmbeddingsSpec(*shape, self.norm_epsilon, self.dropout, self.initializer)

    @property
    def block(self) -> BlockSpec:
        """The hyper-parameters of one layer."""
        rates = (self.dropout, self.attention_dropout)
        return BlockSpec(self.width, self.heads, self.feed_forward, self.activation, self.norm_epsilon, *rates, self.initializer)

    def empty_cache(self, execution: Execution, batch: int, places: int) -> tuple[Cache, ...]:
        """As `incremental.Incremental`."""
        return caches.empty(self.block, self.layers, batch, places, execution.policy.compute)


class Bert(nn.Module):
    """The encoder: embeddings and a stack of post-LN layers. Heads are in `heads/`."""

    config: BertConfig
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
        """As `contract.Encoder.apply`."""
        hidden, table = Embeddings(self.config.embeddings, self.execution, name="embeddings")(tokens, types, positions, noise)
        stack = Stack(self.config.block, self.config.layers, self.execution, name="encoder")
        return states(stack(hidden, visible, noise, all_layers, cache=cache), table, all_layers, cache is not None)

    def forward_flops(self, length: int) -> float:
        """As `contract.Encoder`."""
        return stack_flops(self.config.block, self.config.layers, length)
