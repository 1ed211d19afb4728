"""The contract of a head: its module, its input (role), its labels and loss, and its prediction.

A head of your own is a `Head` in your own code, passed with the built-in ones:

    heads = jaxenc.heads.with_built_in(SCORE)
    objective = run.build(vocabulary, phase, platform, heads)
    model = jaxenc.load(DIR, heads=heads)
"""

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

import jax.numpy as jnp
from flax import linen as nn
from jax import Array

from jaxenc import rng
from jaxenc.data.batch import FIELDS, Field
from jaxenc.errors import UserError
from jaxenc.execution import Execution
from jaxenc.layers.initializers import Initializer

# What a head reads, and the arguments of its module:
#   pools       (hidden [batch, length, width], segments i32 [batch, length])  returns the vector of a text, [batch, width]
#   text        (that vector)
#   tokens      (hidden [batch, length, width])
#   vocabulary  (hidden [..., width], token table [padded, table_width])       returns a logit for each row of the table, [..., padded]
#   search      (hidden [batch, length, width], {field: values} with `segments` and the head's `inputs`, {label: values} or None,
#               keys of dropout or None). With labels it returns what its loss takes, any tree; without them it searches for the best
#               predictions and returns them, {name: [batch, ...]}
ROLES = ("pools", "text", "tokens", "vocabulary", "search")
# Keys that the dicts of outputs and predictions have besides the names of heads: no head can have these names.
TAKEN = ("hidden", "pooled", "index")
# Bounds of labels that depend on the run.
BOUNDS = ("classes", "length", "choices")
# Axes of labels, after the rows.
AXES = ("", "length", "classes")


@dataclasses.dataclass(frozen=True)
class Label:
    """A batch field with the target of a head.

    dtype: `int32`, where negative values are ignored in the loss, or `float32`, where NaN is. axis: "" for one value a row, "length" for
    one a token, "classes" for one for each of `objective.labels`. bound: exclusive upper bound of int32 values: "classes" (the number of
    `objective.labels`), "length" (positions in the row; a value after the end of the row is ignored), "choices" (texts in a row,
    `objective.choices`), or a number, 0 for no bound.
    """

    name: str
    dtype: str = "int32"
    axis: str = ""
    bound: str | int = 0

    @property
    def field(self) -> Field:
        """The label as a field of a batch; the size of its axis "classes" is the number of `objective.labels`."""
        return Field((self.axis,) if self.axis else (), self.dtype, least=-1)


@dataclasses.dataclass(frozen=True)
class Setting:
    """The settings that a head's module is built from.

    width: of the hidden states; table_width: of the token table; pieces: how many of its rows, from the first on, are predicted: the logits
    of the others are `layers.softmax.NEVER`. activation, norm_epsilon, initializer: those of the encoder's layers. labels: the names of the
    classes. pooler_activation: of a pooler. dropout: the encoder's rate, for a module with dropout of its own.
    """

    width: int
    table_width: int
    pieces: int
    activation: str
    norm_epsilon: float
    initializer: Initializer
    execution: Execution
    labels: tuple[str, ...]
    pooler_activation: str
    dropout: float


# (logits, {label's name: values, 0 where ignored}, counted: i32 with the labels' shape, 0 where ignored) -> (float32 sum of losses,
# {metric: float32 sum}). The objective divides each sum by the number of counted labels and reports a metric as HEAD_METRIC.
Loss = Callable[[Array, Mapping[str, Array], Array], tuple[Array, Mapping[str, Array]]]


# (tokens, segments), i32 [batch, length], to (the id to predict at each place, 1 where it is counted and 0 elsewhere), both i32 with this
# shape: what a head on the vocabulary learns from the row itself.
Targets = Callable[[Array, Array], tuple[Array, Array]]


def unchanged(logits: Array) -> Array:
    """The logits themselves: the prediction of a head whose output is the answer, such as a score."""
    return logits


def likeliest(logits: Array) -> Array:
    """The class with the largest logit: i32 [...] from [..., classes]."""
    return jnp.argmax(logits, axis=-1).astype(jnp.int32)


@dataclasses.dataclass(frozen=True)
class Head:
    """One head.

    name: the key of its parameters and of its output, and its name in `objective.heads`. role: one of ROLES. site: the unique number that
    its random draws are derived from, which must never change; `rng.FIRST_OWN_SITE` or more for a head outside of jaxenc. module: builds
    the Flax module. labels, loss: both or neither. inputs: batch fields that a head with the role `search` reads in training and in
    prediction. prediction: from its logits to what an evaluation keeps of each row. reads_first: whether it reads only the first token of a
    text, which has seen nothing but itself in a model with causal attention. vocabulary: paths, below `name`, of the parameters with a
    (padded) row for each token. targets: of a head on the vocabulary of a causal model, what it learns from the tokens of a row; such a
    head has no labels. The objective `heads` does not train a head with neither labels nor targets. Raises UserError where these do not fit
    together.
    """

    name: str
    role: str
    site: int
    module: Callable[[Setting], nn.Module]
    labels: tuple[Label, ...] = ()
    loss: Loss | None = None
    inputs: tuple[Label, ...] = ()
    prediction: Callable[[Array], Array] = unchanged
    reads_first: bool = False
    vocabulary: tuple[str, ...] = ()
    targets: Targets | None = None

    def __post_init__(self) -> None:
        if self.role not in ROLES:
            raise UserError(f"head {self.name}: its role is {self.role!r}", fix=f"use {', '.join(ROLES)}")
        if not isinstance(self.name, str) or not self.name.isidentifier() or self.name in TAKEN:
            raise UserError(
                f"head {self.name!r}: the name is not a Python identifier, or is one of {', '.join(TAKEN)}", fix="choose another"
            )
        if type(self.site) is not int or not 0 < self.site <= rng.LAST_SITE:
            raise UserError(f"head {self.name}: its site is {self.site}", fix=f"use a number from {rng.FIRST_OWN_SITE} to {rng.LAST_SITE}")
        for name in ("module", "prediction"):
            if not callable(getattr(self, name)):
                raise UserError(f"head {self.name}: its {name} is {getattr(self, name)!r}, which cannot be called", fix="give a function")
        for name in ("labels", "inputs"):
            given = getattr(self, name)
            if not isinstance(given, tuple) or not all(isinstance(label, Label) for label in given):
                raise UserError(f"head {self.name}: its {name} are {given!r}", fix="give a tuple of Label, (Label(...),) for a single one")
        if self.inputs and self.role != "search":
            raise UserError(f"head {self.name}: it has inputs and the role {self.role}", fix="set role='search', or leave the inputs out")
        if self.targets and (self.labels or self.role != "vocabulary"):
            raise UserError(f"head {self.name}: it has targets", fix="give them to a head with the role vocabulary and without labels")
        if bool(self.labels) != (self.loss is not None):
            raise UserError(f"head {self.name}: it has labels or a loss but not both", fix="give both or neither")
        if len({label.name for label in self.fields}) < len(self.fields):
            raise UserError(f"head {self.name}: two of its labels have one name", fix="give each its own")
        for label in self.fields:
            if label.dtype not in ("int32", "float32") or label.axis not in AXES:
                kinds = f"int32 or float32, with the axis {' or '.join(map(repr, AXES))}"
                raise UserError(
                    f"head {self.name}: its label {label.name} is {label.dtype} with the axis {label.axis!r}", fix=f"use {kinds}"
                )
            known = label.bound in BOUNDS if isinstance(label.bound, str) else type(label.bound) is int and label.bound >= 0
            if not known or (label.bound and label.dtype == "float32"):
                kinds = f"{' or '.join(BOUNDS)} or a number that is not negative, and 0 for float32"
                raise UserError(f"head {self.name}: its label {label.name} has the bound {label.bound!r}", fix=f"use {kinds}")
        if len(axes := list(dict.fromkeys(repr(label.axis) for label in self.labels))) > 1:
            raise UserError(f"head {self.name}: its labels have different axes, {' and '.join(axes)}", fix="use one axis for all")
        if self.chooses and (self.role != "text" or self.labels[0].axis):
            raise UserError(
                "a label with the bound 'choices' needs the role text and one label a row",
                f"head {self.name}",
                "set role='text' and give a label of rows",
            )

    @property
    def classifies(self) -> bool:
        """Whether its labels are the classes that `objective.labels` names."""
        return any("classes" in (label.bound, label.axis) for label in self.labels)

    @property
    def fields(self) -> tuple[Label, ...]:
        """The batch fields that it reads besides those of the encoder: its labels and its inputs."""
        return (*self.labels, *self.inputs)

    @property
    def chooses(self) -> bool:
        """Whether it chooses between the texts of a row: its loss and its prediction take logits [batch, choices, ...], which are -1e30 for
        an empty choice."""
        return any(label.bound == "choices" for label in self.labels)


@dataclasses.dataclass(frozen=True)
class Fitted:
    """A head with its module, built for one encoder.

    whole: of a head on the vocabulary, the module that also gives the spare rows of the table (`ModelConfig.spare_rows`) their logits, as
    the published model does; for any other head the same module. dropout: the rate on its input in training.
    """

    head: Head
    module: nn.Module
    whole: nn.Module
    dropout: float = 0.0


def registry(heads: Iterable[Head]) -> Mapping[str, Head]:
    """{name: head} in the given order. Raises UserError for a name or a site that two heads share or that `rng.SITES` has, and for a label
    whose name is that of a batch field, or of another head's label, with a different shape or dtype."""
    by_name: dict[str, Head] = {}
    sites = {number: f"jaxenc's {name}" for name, number in rng.SITES.items()}
    fields = dict(FIELDS)
    for head in heads:
        if not isinstance(head, Head):
            raise UserError(f"{head!r} is not a head", fix="give a jaxenc.heads.Head")
        if head.name in by_name or head.name in rng.SITES:
            raise UserError(f"head {head.name}: this name is taken", fix="choose another")
        if head.site in sites:
            clash = f"its site {head.site} is that of {sites[head.site]}"
            raise UserError(f"head {head.name}: {clash}", fix=f"give it a unique number from {rng.FIRST_OWN_SITE} to {rng.LAST_SITE}")
        for label in head.fields:
            known = fields.setdefault(label.name, label.field)
            if (known.shape, known.dtype) != (label.field.shape, label.field.dtype):
                raise UserError(f"head {head.name}: its label {label.name} has the name of another batch field", fix="choose another name")
        by_name[head.name], sites[head.site] = head, head.name
    return MappingProxyType(by_name)
