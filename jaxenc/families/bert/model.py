"""BERT (Devlin et al. 2018) and RoBERTa (Liu et al. 2019): one module, told apart by fields."""

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
from jaxenc.families.contract import EncoderConfig
from jaxenc.layers.attend import Visible
from jaxenc.layers.block import BlockSpec
from jaxenc.layers.embeddings import Embeddings, EmbeddingsSpec
from jaxenc.layers.stack import Stack, stack_flops
from jaxenc.rng import Keys


@dataclasses.dataclass(frozen=True)
class BertConfig(EncoderConfig):
    """The numbers of a BERT or RoBERTa encoder; the defaults are BERT-base uncased.

    vocab_size: true number of tokens (the table is stored with `data.vocabulary.padded` rows). feed_forward: inner width.
    positions: longest text in tokens. types: token types, 2 for BERT; 0 leaves the table out, as fairseq's RoBERTa does; 1 is the
    layout that transformers gives RoBERTa. first_position: table row of position 0, 2 for RoBERTa (fairseq starts after its pad id);
    the table has positions + first_position rows.
    activation: `gelu_tanh` is what google-research/bert was trained with; `gelu_erf` is what transformers runs, and RoBERTa's.
    norm_epsilon: 1e-12 is TensorFlow's (tf.contrib.layers.layer_norm); RoBERTa has 1e-5.
    dropout: on the embeddings and on what each sublayer adds; attention_dropout: on the attention weights.
    init: what weights start from, `truncated_normal` (google-research/bert) or `normal` (fairseq's RoBERTa, transformers);
    init_scale: its standard deviation, before any cut.
    Raises UserError when a number does not fit.
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

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(1, "model", self, "heads", "feed_forward", "positions")
        at_least(0, "model", self, "first_position")
        if self.width % self.heads:
            raise UserError(f"model.width {self.width} does not divide into model.heads {self.heads}: make it a multiple")

    @property
    def published_vocabulary(self) -> Vocabulary:
        """The vocabulary that a recipe stands for when no data is named: BERT's layout, or RoBERTa's where positions start after a pad."""
        published = published_roberta if self.first_position else published_bert
        return published(self.vocab_size)

    def with_vocabulary(self, vocabulary: Vocabulary) -> "BertConfig":
        """This model for a tokenizer: its size, and positions after its pad id where RoBERTa's start there."""
        first = vocabulary.pad + 1 if self.first_position else 0
        return dataclasses.replace(self, vocab_size=vocabulary.size, first_position=first)

    def positions_of(self, tokens: np.ndarray) -> np.ndarray:
        """Positions i32 [batch, length] of a text a row, as the family counts them.

        BERT (first_position 0): 0, 1, 2 ... at every place. RoBERTa: counted over the tokens that are not pad, whose id is
        first_position - 1, and -1 (the table's row first_position - 1) at pads, as transformers' create_position_ids_from_input_ids
        does. Traced tokens work too.
        """
        if not self.first_position:
            return np.broadcast_to(np.arange(tokens.shape[1], dtype=np.int32), tokens.shape)
        real = tokens != self.first_position - 1
        return (real.cumsum(axis=1) * real - 1).astype(np.int32)

    def encoder(self, heads: Collection[str], execution: Execution) -> "Bert":
        """The one network. Raises UserError for a head that is another family's."""
        self.check_heads(heads)
        return Bert(self, execution)

    @property
    def embeddings(self) -> EmbeddingsSpec:
        """What the tables need to know."""
        return EmbeddingsSpec(**{field.name: getattr(self, field.name) for field in dataclasses.fields(EmbeddingsSpec)})

    @property
    def block(self) -> BlockSpec:
        """What one layer needs to know."""
        return BlockSpec(**{field.name: getattr(self, field.name) for field in dataclasses.fields(BlockSpec)})


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
        self, tokens: Array, types: Array, positions: Array, visible: Visible, noise: Keys | None, all_layers: bool = False
    ) -> Array:
        """Hidden states [batch, length, width] of the last layer, in the compute dtype.

        tokens, types, positions: i32 [batch, length], positions 0-based within their text. noise: None for evaluation.
        all_layers: the embedding output and every layer instead, [layers + 1, batch, length, width].
        """
        hidden = Embeddings(self.config.embeddings, self.execution, name="embeddings")(tokens, types, positions, noise)
        stack = Stack(self.config.block, self.config.layers, self.execution, name="encoder")
        return stack(hidden, visible, noise, all_layers)

    def forward_flops(self, length: int) -> float:
        """As `base.Encoder`."""
        return stack_flops(self.config.block, self.config.layers, length)
