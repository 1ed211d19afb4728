"""What a head is: a module on an encoder, where it reads, what it learns from and what it predicts.

A head of your own is a `Head` in your own code, passed beside the built-in ones:

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

# Where a head reads, and what its module is called with:
#   pools       (hidden [batch, length, width], segments i32 [batch, length])  makes the vector of a text, [batch, width]
#   text        (that vector)
#   tokens      (hidden [batch, length, width])
#   vocabulary  (hidden [..., width], token table [padded, table_width])       a logit a row of the table, [..., padded]
ROLES = ("pools", "text", "tokens", "vocabulary")
# Names of what stands next to the heads' outputs and predictions: no head can have them.
TAKEN = ("hidden", "pooled", "index")
# Bounds of labels that the run decides.
BOUNDS = ("classes", "length", "choices")


@dataclasses.dataclass(frozen=True)
class Label:
    """A batch field that a head learns from.

    dtype: `int32`, where a negative value is not counted, or `float32`, where NaN is not. axis: "" for one a row, "length" for one a token.
    bound: what int32 values stay below: "classes" (the number of `objective.labels`), "length" (places of the row; a place after the end
    of a row is not counted), "choices" (texts of a row, `objective.choices`), or a number, 0 for none.
    """

    name: str
    dtype: str = "int32"
    axis: str = ""
    bound: str | int = 0

    @property
    def field(self) -> Field:
        """The label as a field of a batch."""
        return Field((self.axis,) if self.axis else (), self.dtype, least=-1)


@dataclasses.dataclass(frozen=True)
class Setting:
    """What a head is made for. width: of the hidden states; table_width: of the token table; vocab_size: its true rows. activation,
    norm_epsilon, initializer: those of the encoder's layers. labels: the names of the classes. pooler_activation: of a pooler."""

    width: int
    table_width: int
    vocab_size: int
    activation: str
    norm_epsilon: float
    initializer: Initializer
    execution: Execution
    labels: tuple[str, ...]
    pooler_activation: str


# (logits, {label's name: values, 0 where not counted}, counted i32 with the labels' shape) -> (float32 sum of losses, {metric: float32
# sum}); the objective divides each by the number of counted labels, and calls a metric HEAD_METRIC.
Loss = Callable[[Array, Mapping[str, Array], Array], tuple[Array, Mapping[str, Array]]]


def unchanged(logits: Array) -> Array:
    """The prediction of a head whose output is what is wanted, such as a score."""
    return logits


def likeliest(logits: Array) -> Array:
    """The prediction of one class: i32 [...], that with the largest logit of [..., classes]."""
    return jnp.argmax(logits, axis=-1).astype(jnp.int32)


@dataclasses.dataclass(frozen=True)
class Head:
    """One head. name: of its parameters, of its output and in `objective.heads`. role: one of ROLES. site: the number that its draws come
    from, its own for good; `rng.FIRST_OWN_SITE` or more for a head outside of jaxenc.

    module: makes the Flax module. labels, loss: both or neither; a head without them is opened and asked, not trained by the objective
    `heads`. prediction: of its output, what an evaluation keeps for each row. reads_first: whether it reads of a text its first token
    alone, which in a model with causal attention has seen nothing but itself. vocabulary: paths of the parameters, below `name`, that have
    a (padded) row a token. Raises UserError where these do not fit together.
    """

    name: str
    role: str
    site: int
    module: Callable[[Setting], nn.Module]
    labels: tuple[Label, ...] = ()
    loss: Loss | None = None
    prediction: Callable[[Array], Array] = unchanged
    reads_first: bool = False
    vocabulary: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.role not in ROLES:
            raise UserError(f"head {self.name}: its role is {self.role!r}: use {', '.join(ROLES)}")
        if not isinstance(self.name, str) or not self.name.isidentifier() or self.name in TAKEN:
            raise UserError(f"head {self.name!r}: its name is no Python name, or one of {', '.join(TAKEN)}: choose another")
        if type(self.site) is not int or not 0 < self.site <= rng.LAST_SITE:
            raise UserError(f"head {self.name}: its site is {self.site}: use a number from {rng.FIRST_OWN_SITE} to {rng.LAST_SITE}")
        for name in ("module", "prediction"):
            if not callable(getattr(self, name)):
                raise UserError(f"head {self.name}: its {name} is {getattr(self, name)!r}, which cannot be called: give a function")
        if not isinstance(self.labels, tuple) or not all(isinstance(label, Label) for label in self.labels):
            raise UserError(f"head {self.name}: its labels are {self.labels!r}: give a tuple of Label, (Label(...),) for a single one")
        if bool(self.labels) != (self.loss is not None):
            raise UserError(f"head {self.name}: it has labels or a loss and not both: give both or neither")
        if len({label.name for label in self.labels}) < len(self.labels):
            raise UserError(f"head {self.name}: two of its labels have one name: give each its own")
        for label in self.labels:
            if label.dtype not in ("int32", "float32") or label.axis not in ("", "length"):
                kinds = "int32 or float32, with the axis '' or 'length'"
                raise UserError(f"head {self.name}: its label {label.name} is {label.dtype} with the axis {label.axis!r}: use {kinds}")
            known = label.bound in BOUNDS if isinstance(label.bound, str) else type(label.bound) is int and label.bound >= 0
            if not known or (label.bound and label.dtype == "float32"):
                kinds = f"{' or '.join(BOUNDS)} or a number that is not negative, and 0 for float32"
                raise UserError(f"head {self.name}: its label {label.name} has the bound {label.bound!r}: use {kinds}")
        if len({label.axis for label in self.labels}) > 1:
            raise UserError(f"head {self.name}: some of its labels are one a row and some one a token: use one kind for all")
        if self.chooses and (self.role != "text" or self.labels[0].axis):
            raise UserError(f"head {self.name}: its label is one of the choices of a row: use the role text, and one label a row")

    @property
    def chooses(self) -> bool:
        """Whether it chooses between the texts of a row: its loss and its prediction take logits [batch, choices, ...]. Those of a choice
        without a token are -1e30."""
        return any(label.bound == "choices" for label in self.labels)


@dataclasses.dataclass(frozen=True)
class Fitted:
    """A head and its module for one encoder."""

    head: Head
    module: nn.Module


def registry(heads: Iterable[Head]) -> Mapping[str, Head]:
    """{name: head} in the order given. Raises UserError for two heads with one name or one site, for a name or a site of `rng.SITES`, and
    for a label with the name of a batch field of another shape or dtype, or of another head's other label."""
    by_name: dict[str, Head] = {}
    sites = {number: f"jaxenc's {name}" for name, number in rng.SITES.items()}
    fields = dict(FIELDS)
    for head in heads:
        if not isinstance(head, Head):
            raise UserError(f"{head!r} is no head: give a jaxenc.heads.Head")
        if head.name in by_name or head.name in rng.SITES:
            raise UserError(f"head {head.name}: the name is taken: choose another")
        if head.site in sites:
            held = f"its site {head.site} is that of {sites[head.site]}"
            raise UserError(f"head {head.name}: {held}: give it a number of its own, from {rng.FIRST_OWN_SITE} on")
        for label in head.labels:
            known = fields.setdefault(label.name, label.field)
            if (known.shape, known.dtype) != (label.field.shape, label.field.dtype):
                raise UserError(f"head {head.name}: its label {label.name} has the name of another field of a batch: choose another name")
        by_name[head.name], sites[head.site] = head, head.name
    return MappingProxyType(by_name)
