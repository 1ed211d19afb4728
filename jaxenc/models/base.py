"""The contract between a model's config and what trains, opens and converts models without knowing their family."""

import abc
from typing import ClassVar, Self

import numpy as np

from jaxenc.data.vocabulary import Vocabulary


class ModelConfig(abc.ABC):
    """A frozen dataclass: the numbers of a model. kind: its name in a recipe. All else is for the model's own module and its objectives.

    vocab_size: true number of tokens, a field, so that config.json has it. width, layers: of the hidden states, [layers + 1, batch,
    length, width] with the embedding output. positions: the longest text in tokens, 0 where there is no limit. types: number of token
    types, 0 where the model has none. attention_dropout: rate on attention weights, 0 where there are none; fused attention cannot
    have it.
    """

    kind: ClassVar[str]

    vocab_size: int
    width: int
    layers: int
    positions: int
    types: int
    attention_dropout: float

    @property
    @abc.abstractmethod
    def published_vocabulary(self) -> Vocabulary:
        """The vocabulary that a recipe stands for when no data is named."""

    @abc.abstractmethod
    def with_vocabulary(self, vocabulary: Vocabulary) -> Self:
        """This model for a tokenizer: its size, and what else follows from its ids."""

    @abc.abstractmethod
    def positions_of(self, tokens: np.ndarray) -> np.ndarray:
        """Positions i32 [batch, length] of a text a row, as the family counts them; `tokens` i32 [batch, length] may be traced."""
