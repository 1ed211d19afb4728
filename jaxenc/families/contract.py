"""The contract of a model: what code that trains, loads and converts models may ask of it without knowing its family."""

import abc
import dataclasses
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import ClassVar, Protocol, Self, runtime_checkable

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxenc.config import at_least
from jaxenc.data.frames import CLS_FIRST, Frame
from jaxenc.data.vocabulary import Vocabulary
from jaxenc.errors import UserError
from jaxenc.execution import Execution
from jaxenc.families.hyperparameters import Hyperparameters
from jaxenc.families.states import States
from jaxenc.heads import BUILT_IN, ON_TEXTS, TUNED
from jaxenc.heads.pooler import TANH
from jaxenc.layers import activation, initializers
from jaxenc.layers.cache import Cache
from jaxenc.layers.initializers import Initializer
from jaxenc.layers.visible import Visible
from jaxenc.rng import Keys
from jaxenc.tree import Tree

# The end of the token table's path in every family: one row a token, padded as `data.vocabulary.padded` says.
TOKEN_TABLE = "token/table"


class ModelConfig(abc.ABC):
    """A frozen dataclass with the hyper-parameters of a model: all that training, inference and conversion ask of any model.

    kind: the name of the model in a recipe.
    attentions: the values that its field `attention` may have, () for a model without that field.
    relative: whether its attention is by relative position (`layers/relative.py`).
    vocab_size: number of rows of the token table, without those that pad it: the pieces of the data's tokenizer and `spare_rows`.
    spare_rows: rows of the token table after those of the pieces; they are kept and never predicted, sampled or drawn. Published tables
        have them, such as 32,102 rows for 31,102 pieces. No loss reaches them, only weight decay. A family without this field has none.
    width: width of the hidden states, [layers + 1, batch, length, width] with the embedding output.
    layers: number of layers.
    positions: longest text in tokens; 0 = no limit.
    types: number of token types; 0 = none.
    attention_dropout: dropout rate on the attention weights, 0 in a model without attention; the fused attention of cuDNN needs 0.
    frame: the special pieces around one text and two, CLS first or last; a vocabulary with another order is given this one.
    context_first: whether it reads the context before the question that is asked about it, with CLS at the end of the row.
    head_names: the built-in heads that its family has; a user's own heads fit any family.
    pools: which of them gives the vector of a text that fine-tuning classifies, '' for none.
    pooler_activation: that of a pooler in fine-tuning.
    beside: {head: factor of its loss} of what fine-tuning trains beside a head on texts.
    answers: the head that finds the answers to questions in a text, '' for none.
    fine_tuning: the published hyper-parameters of fine-tuning, None where none are known here.
    """

    kind: ClassVar[str]

    vocab_size: int
    width: int
    layers: int
    positions: int
    types: int
    attention_dropout: float

    attentions: ClassVar[tuple[str, ...]] = ()
    relative: ClassVar[bool] = False
    spare_rows: ClassVar[int] = 0
    frame: ClassVar[Frame] = CLS_FIRST
    context_first: ClassVar[bool] = False
    head_names: ClassVar[tuple[str, ...]] = ()
    pools: ClassVar[str] = ""
    pooler_activation: ClassVar[str] = TANH
    beside: ClassVar[Mapping[str, float]] = MappingProxyType({})
    answers: ClassVar[str] = ""
    fine_tuning: ClassVar[Hyperparameters | None] = None

    @property
    def pieces(self) -> int:
        """Number of tokens that are predicted: the rows of the table that have a piece, which come first."""
        return self.vocab_size - self.spare_rows

    @property
    def inputs(self) -> Mapping[str, int]:
        """The batch fields that it reads of a text, each with the bound that its values stay below (rows of a table), 0 for none."""
        return {"tokens": self.vocab_size, "types": self.types, "positions": self.positions, "segments": 0}

    @property
    def row_frame(self) -> Frame:
        """`frame` with no more types than the model has, for `Tokenizer.framed_as`. Where it has none (`types` 0) no type is read, and the
        frame is as it is."""
        return self.frame.within(self.types) if self.types else self.frame

    def row_types(self, types: np.ndarray) -> np.ndarray:
        """The batch field `types` of rows whose parts have these types (i32, any shape): zeros for a model without types.
        Raises UserError for a type that the model lacks: those of `row_frame` fit."""
        if not self.types:
            return np.zeros_like(types)
        if (highest := int(types.max(initial=0))) >= self.types:
            what = f"the tokenizer frames texts with the type {highest}, and the model has the types 0 to {self.types - 1}"
            raise UserError(what, fix="give it the model's frame: tokenizer.framed_as(model.row_frame)")
        return types

    @property
    def unused(self) -> dict[str, str]:
        """See `Run.unused`."""
        return {}

    @property
    @abc.abstractmethod
    def published_vocabulary(self) -> Vocabulary:
        """The published vocabulary layout of the family, used when a recipe names no data."""

    def with_vocabulary(self, vocabulary: Vocabulary) -> Self:
        """This model with a row for each piece of a tokenizer, and its spare rows; a family overrides it where other fields follow from
        the tokenizer's ids."""
        return dataclasses.replace(self, vocab_size=vocabulary.size + self.spare_rows)

    def with_spare_rows(self, count: int) -> Self:
        """This model with the same rows, of which the last `count` have no piece. Raises UserError for a family without such rows."""
        if count == self.spare_rows:
            return self
        if not any(field.name == "spare_rows" for field in dataclasses.fields(self)):
            what, fix = f"it would be {count:,}, and model.kind {self.kind} has no such rows", "use a tokenizer with a piece for each row"
            raise UserError(what, "model.spare_rows", fix)
        return dataclasses.replace(self, spare_rows=count)

    def positions_of(self, tokens: np.ndarray) -> np.ndarray:
        """Positions i32 [batch, length] of rows that hold one text each: 0, 1, 2 ... at every place, unless a family overrides it. `tokens`
        i32 [batch, length] may be traced."""
        return np.broadcast_to(np.arange(tokens.shape[1], dtype=np.int32), tokens.shape)


class EncoderConfig(ModelConfig):
    """A model that gives every token of a row a vector, which heads read (`heads/`). Raises UserError when a number does not fit.

    activation: `gelu_tanh`, `gelu_erf` or another of `layers.activation`, in the layers and in the heads.
    norm_epsilon: added to the variance in layer norms.
    dropout: dropout rate on the embeddings, on the output of each sublayer and on the input of the heads that `head_dropout` says.
    init: distribution of the initial weights: `truncated_normal` or `normal`.
    init_scale: standard deviation of the initial weights, before any cut.
    attention: which tokens of its text a token sees: `full`, all of them, or `causal`, itself and those before it.
    """

    attentions: ClassVar[tuple[str, ...]] = ("full", "causal")
    head_names: ClassVar[tuple[str, ...]] = ("pooler", "mlm", "next_sentence", "rtd", *TUNED, "next_token")
    pools: ClassVar[str] = "pooler"
    answers: ClassVar[str] = "spans"

    activation: str
    norm_epsilon: float
    dropout: float
    init: str
    init_scale: float
    attention: str

    def __post_init__(self) -> None:
        at_least(1, "model", self, "vocab_size", "width", "layers")
        at_least(0, "model", self, "positions", "types", "spare_rows")
        if self.pieces < 1:
            what = f"model.spare_rows is {self.spare_rows} and model.vocab_size {self.vocab_size}"
            raise UserError(what, fix="leave a row for each piece")
        for name in ("dropout", "attention_dropout"):
            if not 0 <= getattr(self, name) < 1:
                raise UserError(f"model.{name} is {getattr(self, name)}", fix="it takes a rate from 0 up to but not including 1")
        for name in ("norm_epsilon", "init_scale"):
            if not getattr(self, name) > 0:
                raise UserError(f"model.{name} is {getattr(self, name)}", fix="it takes a positive number")
        activation.check(self.activation, "model.activation")
        initializers.check(self.init, "model.init")
        if self.attention not in self.attentions:
            raise UserError(f"model.attention is {self.attention!r}", fix=f"model.kind {self.kind} takes {' or '.join(self.attentions)}")

    @property
    def initializer(self) -> Initializer:
        """The initial distribution of kernels and tables."""
        return initializers.BY_NAME[self.init](self.init_scale)

    def head_dropout(self, head: str) -> float:
        """The dropout rate on the input of `head` in the objective `heads`, unless `objective.dropout` sets another.

        Here `dropout` for heads on texts and `tags`, and 0 for any other, as in BertForSequenceClassification and
        BertForTokenClassification of transformers; a family overrides it.
        """
        return self.dropout if head in (*ON_TEXTS, "tags") else 0.0

    def visible(self, segments: Array) -> Visible:
        """The attention mask of training rows with one text each; segments: i32 [batch, length], 0 = padding. It masks by length, so
        padding is at the end of a row; a family may override it. Packed rows are masked by their segments (`objectives.encoder.read`)."""
        return self.attended(Visible.by_lengths(jnp.sum(segments > 0, axis=1)))

    def attended(self, padding: Visible) -> Visible:
        """`padding`, the mask that hides padding, combined with the model's own (`attention`): training, evaluation and inference all take
        their mask from here."""
        return padding.causally() if self.attention == "causal" else padding

    def check_heads(self, heads: Collection[str]) -> None:
        """Raises UserError when one of `heads` is a built-in head that the family does not have."""
        for name in heads:
            if name in BUILT_IN and name not in self.head_names:
                raise UserError(f"{name} is not a head of model.kind {self.kind}", fix=f"use {', '.join(self.head_names)}")

    @abc.abstractmethod
    def encoder(self, heads: Collection[str], execution: Execution) -> "Encoder":
        """The network that these heads read. Raises UserError as `check_heads`, and where the heads belong to different networks."""


@runtime_checkable
class Encodes(Protocol):
    """The config of a model with an encoder that heads can read."""

    def encoder(self, heads: Collection[str], execution: Execution) -> "Encoder":
        """The encoder that these heads read. Raises UserError for a built-in head that the model does not have."""


class Encoder(Protocol):
    """A network: a Flax module or another frozen object with its methods. Its parameters and those of its heads are one tree.

    width: of the hidden states; table_width: of the token table.
    """

    config: EncoderConfig
    execution: Execution
    width: int
    table_width: int

    def apply(
        self,
        variables: Tree,
        tokens: Array,
        types: Array,
        positions: Array,
        visible: Visible,
        noise: Keys | None,
        all_layers: bool = False,
        cache: tuple[Cache, ...] | None = None,
    ) -> States:
        """The hidden states of rows.

        variables: {"params": parameters}; tokens, types, positions: i32 [batch, length], positions 0-based within their text. noise: the
        keys of dropout, None for evaluation. all_layers: return `States.layers` too. cache: of the tokens before these, whose places in it
        are `visible.places`; it comes back in `States.cache`. Only models that are `incremental.Incremental` take one.
        """

    def lazy_init(self, key: Array, tokens: Array, types: Array, positions: Array, visible: Visible, noise: Keys | None) -> Tree:
        """{"params": parameters} in float32, boxed with their axis names. All arguments but `key` may be shapes (jax.ShapeDtypeStruct)."""

    def forward_flops(self, length: int) -> float:
        """FLOPs of the matrix products of a forward pass on one row of `length` tokens; a multiply-add counts as two."""
