"""The contract between a model's config and what trains, opens and converts models without knowing their family."""

import abc
import dataclasses
from collections.abc import Collection
from typing import ClassVar, Protocol, Self, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxenc.config import at_least
from jaxenc.data.vocabulary import Vocabulary
from jaxenc.errors import UserError
from jaxenc.execution import Execution
from jaxenc.heads import BUILT_IN
from jaxenc.layers import activation, initializers
from jaxenc.layers.attend import Visible
from jaxenc.layers.initializers import Initializer
from jaxenc.rng import Keys
from jaxenc.tree import Tree

# How the path of the token table ends in every family: it has a row a token, padded as `data.vocabulary.padded` says.
TOKEN_TABLE = "token/table"


class ModelConfig(abc.ABC):
    """A frozen dataclass: the numbers of a model. All else is for the model's own module and its objectives.

    kind: the name of the model in a recipe.
    vocab_size: number of tokens, without the rows that pad the table; the data's tokenizer decides it.
    width: width of the hidden states, [layers + 1, batch, length, width] with the embedding output.
    layers: number of layers.
    positions: longest text in tokens; 0 = no limit.
    types: number of token types; 0 = none.
    attention_dropout: dropout rate on the attention weights; the fused attention of cuDNN needs 0. It is 0 where there are none.
    """

    kind: ClassVar[str]

    vocab_size: int
    width: int
    layers: int
    positions: int
    types: int
    attention_dropout: float

    @property
    def ids(self) -> int:
        """How many ids a row may hold: those that are predicted, and for a model of words maybe more."""
        return self.vocab_size

    @property
    def reads_characters(self) -> bool:
        """Whether it reads words by the batch field `characters` and not by their ids."""
        return False

    @property
    def unused(self) -> dict[str, str]:
        """See `Run.unused`."""
        return {}

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


def check(config: type[ModelConfig]) -> None:
    """Raises UserError, which says what is missing, for what is no frozen dataclass as `ModelConfig` describes it: the class itself, with
    a `kind`, a default for every field, and every method of its contract."""
    if not (isinstance(config, type) and issubclass(config, ModelConfig)):
        raise UserError(f"{config!r} is no class of a model: give a subclass of EncoderConfig or ModelConfig, and no instance of it")
    name, kind = config.__name__, getattr(config, "kind", None)
    if not (isinstance(kind, str) and kind.isidentifier()):
        raise UserError(f"model {name}: its kind is {kind!r}: give the class a `kind`, a word that names the model in a recipe")
    if missing := sorted(config.__abstractmethods__):
        raise UserError(f"model {name}: it has no {', '.join(missing)}: define what jaxenc.families.contract asks for")
    # A class with annotations and without the decorator has the fields of its base alone.
    undecorated = bool(vars(config).get("__annotations__")) and "__dataclass_params__" not in vars(config)
    if undecorated or not (dataclasses.is_dataclass(config) and config.__dataclass_params__.frozen):
        raise UserError(f"model {name}: it is no frozen dataclass: put @dataclasses.dataclass(frozen=True) above the class")
    missing = [f.name for f in dataclasses.fields(config) if f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING]
    if missing:
        raise UserError(f"model {name}: {', '.join(missing)} has no default, from which a recipe that names the kind starts: give each one")


class EncoderConfig(ModelConfig):
    """A model that gives every token of a row a vector, on which heads sit (`heads/`). Raises UserError when a number does not fit.

    activation: `gelu_tanh`, `gelu_erf` or another of `layers.activation`, in the layers and in the heads.
    norm_epsilon: added to the variance in layer norms.
    dropout: dropout rate on the embeddings, on what each sublayer adds and on what the heads `dropped_out` read. The last is as in
        BertForSequenceClassification and BertForTokenClassification of transformers.
    init: distribution of the initial weights: `truncated_normal` or `normal`.
    init_scale: standard deviation of the initial weights, before any cut.
    head_names: those of the built-in heads that its family has; heads from elsewhere sit on any.
    attention: what a token sees of its text: `full`, all of it, or `causal`, nothing after itself.
    attentions: the choices of `attention` that the family has.
    """

    attentions: ClassVar[tuple[str, ...]] = ("full", "causal")
    head_names: ClassVar[tuple[str, ...]] = ("pooler", "mlm", "next_sentence", "rtd", "classifier", "tags", "spans", "next_token")
    dropped_out: ClassVar[tuple[str, ...]] = ("classifier", "tags")

    activation: str
    norm_epsilon: float
    dropout: float
    init: str
    init_scale: float
    attention: str

    def __post_init__(self) -> None:
        at_least(1, "model", self, "vocab_size", "width", "layers")
        at_least(0, "model", self, "positions", "types")
        for name in ("dropout", "attention_dropout"):
            if not 0 <= getattr(self, name) < 1:
                raise UserError(f"model.{name} is {getattr(self, name)}: it takes a rate from 0 up to but not including 1")
        for name in ("norm_epsilon", "init_scale"):
            if not getattr(self, name) > 0:
                raise UserError(f"model.{name} is {getattr(self, name)}: it takes a positive number")
        activation.check(self.activation, "model.activation")
        initializers.check(self.init, "model.init")
        if self.attention not in self.attentions:
            raise UserError(f"model.attention is {self.attention!r}: model.kind {self.kind} takes {' or '.join(self.attentions)}")

    @property
    def initializer(self) -> Initializer:
        """What kernels and tables start from."""
        return initializers.BY_NAME[self.init](self.init_scale)

    def visible(self, segments: Array) -> Visible:
        """What rows of one text each see in training, segments i32 [batch, length], 0 = padding: by lengths, for padding at the end."""
        return self.attended(Visible.by_lengths(jnp.sum(segments > 0, axis=1)))

    def attended(self, padding: Visible) -> Visible:
        """What tokens see where `padding` says what is none: training, evaluation and a model in use all ask here."""
        return padding.causally() if self.attention == "causal" else padding

    def check_heads(self, heads: Collection[str]) -> None:
        """Raises UserError for a built-in head that the family does not have."""
        for name in heads:
            if name in BUILT_IN and name not in self.head_names:
                raise UserError(f"{name} is no head for model.kind {self.kind}: use {', '.join(self.head_names)}")

    @abc.abstractmethod
    def encoder(self, heads: Collection[str], execution: Execution) -> "Encoder":
        """The module that has these heads. Raises UserError as `check_heads` does, and where no one network has them together."""


@runtime_checkable
class Encodes(Protocol):
    """The config of a model with an encoder for heads to sit on."""

    def encoder(self, heads: Collection[str], execution: Execution) -> "Encoder":
        """The encoder that has these heads. Raises UserError for a built-in head that it does not have."""
        ...


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class States:
    """What an encoder computes of rows. last: [batch, length, width], the last layer in the compute dtype. table: float32 [padded,
    table_width], the token table as these rows read it, which heads on the vocabulary are tied to. layers: None, or where all were asked
    for [layers + 1, batch, length, width], what enters the first layer and every layer's output."""

    last: Array
    table: Array
    layers: Array | None = None


def states(out: Array, table: Array, all_layers: bool) -> States:
    """The states of `out`, which is the last layer, or with `all_layers` all of them, and of the token table."""
    return States(out[-1], table, out) if all_layers else States(out, table)


class Encoder(Protocol):
    """A network, frozen, whose parameters lie beside those of its heads in one tree. width: of the hidden states; table_width: of the
    token table."""

    config: EncoderConfig
    execution: Execution
    width: int
    table_width: int

    def apply(
        self, variables: Tree, tokens: Array, types: Array, positions: Array, visible: Visible, noise: Keys | None, all_layers: bool = False
    ) -> States:
        """The hidden states of rows.

        variables: {"params": parameters}; tokens, types, positions: i32 [batch, length], positions 0-based within their text. noise: None
        for evaluation, which draws no dropout. all_layers: keep `States.layers` too.
        """
        ...

    def lazy_init(self, key: Array, tokens: Array, types: Array, positions: Array, visible: Visible, noise: Keys | None) -> Tree:
        """{"params": parameters} in float32, boxed with their axis names, from the shapes of what `apply` takes."""
        ...

    def forward_flops(self, length: int) -> float:
        """FLOPs of its matrix products on one row of `length` tokens, forward; a multiply and an add are two."""
        ...
