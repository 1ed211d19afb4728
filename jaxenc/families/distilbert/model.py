"""DistilBERT (Sanh et al. 2019): a BERT of half the layers, without token types and without a pooler."""

import dataclasses
from typing import ClassVar

from jaxenc.data.vocabulary import Vocabulary
from jaxenc.families.bert.vocabulary import published_bert
from jaxenc.families.distilbert.hyperparameters import DISTILBERT
from jaxenc.families.hyperparameters import Hyperparameters
from jaxenc.families.stacked import StackedConfig
from jaxenc.heads import ON_TEXTS, TUNED
from jaxenc.layers.embeddings import EmbeddingsSpec

# Dropout rates on the input of the heads of fine-tuned models.
TEXT_DROPOUT, SPANS_DROPOUT = 0.2, 0.1


@dataclasses.dataclass(frozen=True)
class DistilbertConfig(StackedConfig):
    """A DistilBERT encoder; the defaults are the published model. Raises UserError when a number does not fit.

    types: 0: there are no token types.
    activation: `gelu_erf` is what it was trained with (modeling_distilbert.py of transformers).
    norm_epsilon: added to the variance in layer norms: transformers has 1e-12 and no field for it.
    """

    kind: ClassVar[str] = "distilbert"
    types: ClassVar[int] = 0
    head_names: ClassVar[tuple[str, ...]] = ("pooler", "mlm", *TUNED)
    pooler_activation: ClassVar[str] = "relu"  # DistilBertForSequenceClassification of transformers
    fine_tuning: ClassVar[Hyperparameters] = DISTILBERT

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
    spare_rows: int = 0

    @property
    def published_vocabulary(self) -> Vocabulary:
        """The layout of its teacher's vocabulary, used when a recipe names no data."""
        return published_bert(self.pieces)

    def head_dropout(self, head: str) -> float:
        """The rates of transformers' DistilBertConfig: seq_classif_dropout for heads on texts, qa_dropout for `spans`, and `dropout` for
        `tags`."""
        return TEXT_DROPOUT if head in ON_TEXTS else SPANS_DROPOUT if head == "spans" else super().head_dropout(head)

    @property
    def embeddings(self) -> EmbeddingsSpec:
        """The hyper-parameters of the tables."""
        shape = (self.vocab_size, self.width, self.positions, 0, 0)
        return EmbeddingsSpec(*shape, self.norm_epsilon, self.dropout, self.initializer)
