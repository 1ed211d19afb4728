"""The frame of a transformer layer: its hyper-parameters, and the residual connection with its norm before or after the sublayer."""

import dataclasses
from collections.abc import Callable

from jax import Array

from jaxenc.errors import UserError
from jaxenc.layers.initializers import Initializer
from jaxenc.tree import Tree

NORMS = ("post", "pre")


@dataclasses.dataclass(frozen=True)
class BlockSpec:
    """The hyper-parameters of one transformer layer; a model's config fills them in (`families/bert/model.py` documents the fields).

    norm: `post` normalises the sum of a sublayer's input and output (Vaswani et al. 2017, BERT); `pre` normalises the input of a sublayer,
    and the stack normalises its last output (GPT-2, ModernBERT). biases: whether dense layers and norms have one. gated: the feed-forward
    layer is down(activation(gate(x)) · up(x)) (Shazeer 2020, GLU variants). Raises UserError for another `norm`.
    """

    width: int
    heads: int
    feed_forward: int
    activation: str
    norm_epsilon: float
    dropout: float
    attention_dropout: float
    initializer: Initializer
    norm: str = "post"
    biases: bool = True
    gated: bool = False

    def __post_init__(self) -> None:
        if self.norm not in NORMS:
            raise UserError(f"model.norm is {self.norm!r}", fix=f"use {' or '.join(NORMS)}")


def residual(place: str, norm: Callable[[Array], Array], sublayer: Callable[[Array], Array], x: Array) -> Array:
    """norm(x + sublayer(x)) where `place` is `post`, x + sublayer(norm(x)) where it is `pre`; all arrays have the shape of x."""
    return residual_aux(place, norm, lambda x: (sublayer(x), None), x)[0]


def residual_aux(
    place: str, norm: Callable[[Array], Array], sublayer: Callable[[Array], tuple[Array, Tree]], x: Array
) -> tuple[Array, Tree]:
    """As `residual` for a sublayer that returns an auxiliary output too, which is returned unchanged."""
    added, aux = sublayer(x if place == "post" else norm(x))
    return norm(x + added) if place == "post" else x + added, aux
