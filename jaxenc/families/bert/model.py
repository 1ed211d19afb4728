"""BERT (Devlin et al. 2018) and RoBERTa (Liu et al. 2019): one config for both, which differ in its fields."""

import dataclasses
from typing import ClassVar

import numpy as np

from jaxenc.config import at_least
from jaxenc.data.frames import Frame
from jaxenc.data.vocabulary import Vocabulary
from jaxenc.families.bert.hyperparameters import BERT, ROBERTA, SMALL_BERT
from jaxenc.families.bert.vocabulary import published_bert, published_roberta
from jaxenc.families.hyperparameters import Hyperparameters
from jaxenc.families.stacked import StackedConfig
from jaxenc.layers.embeddings import EmbeddingsSpec


@dataclasses.dataclass(frozen=True)
class BertConfig(StackedConfig):
    """A BERT or RoBERTa encoder; the defaults are BERT-base uncased. Raises UserError when a number does not fit.

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
    spare_rows: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(0, "model", self, "first_position")

    @property
    def fine_tuning(self) -> Hyperparameters:
        """As the contract says: RoBERTa's where `first_position` is set, and those of the 24 small BERTs below the width of BERT-base."""
        return ROBERTA if self.first_position else BERT if self.width >= 768 else SMALL_BERT

    @property
    def published_vocabulary(self) -> Vocabulary:
        """As the contract says: BERT's layout, or RoBERTa's where `first_position` is set."""
        published = published_roberta if self.first_position else published_bert
        return published(self.pieces)

    def with_vocabulary(self, vocabulary: Vocabulary) -> "BertConfig":
        """As the contract says; RoBERTa's positions start after the tokenizer's pad id."""
        first = vocabulary.pad + 1 if self.first_position else 0
        return dataclasses.replace(self, vocab_size=vocabulary.size + self.spare_rows, first_position=first)

    def positions_of(self, tokens: np.ndarray) -> np.ndarray:
        """Positions i32 [batch, length] of rows that hold one text each; `tokens` may be traced.

        BERT (first_position 0): 0, 1, 2 ... at every place. RoBERTa: counted over the tokens that are not pad, whose id is
        first_position - 1, and -1 at pads (row first_position - 1 of the table), as create_position_ids_from_input_ids of transformers.
        """
        if not self.first_position:
            return np.broadcast_to(np.arange(tokens.shape[1], dtype=np.int32), tokens.shape)
        real = tokens != self.first_position - 1
        return (real.cumsum(axis=1) * real - 1).astype(np.int32)

    @property
    def row_frame(self) -> Frame:
        """As the contract says; without types too, since transformers gives such a model one type (`bert/transformers.py`)."""
        return self.frame.within(max(self.types, 1))

    def head_dropout(self, head: str) -> float:
        """As the contract says; RoBERTa's classification head has dropout before its first dense layer, our pooler, too (fairseq
        models/roberta/model.py, RobertaClassificationHead)."""
        return self.dropout if head == "pooler" and self.first_position else super().head_dropout(head)

    @property
    def embeddings(self) -> EmbeddingsSpec:
        """The hyper-parameters of the tables."""
        shape = (self.vocab_size, self.width, self.positions, self.first_position, self.types)
        return EmbeddingsSpec(*shape, self.norm_epsilon, self.dropout, self.initializer)
