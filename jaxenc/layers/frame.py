"""The frame of a transformer layer: its numbers, and where the norm of a sublayer stands."""

import dataclasses
from collections.abc import Callable

from jax import Array

from jaxenc.errors import UserError
from jaxenc.layers.initializers import Initializer

NORMS = ("post", "pre")


@dataclasses.dataclass(frozen=True)
class BlockSpec:
    """The numbers of one transformer layer; a model's config fills them in (`families/bert/model.py` documents each).

    norm: `post` normalises the sum of a sublayer and what it reads (Vaswani et al. 2017, BERT); `pre` normalises what the sublayer reads,
    and the stack normalises its last output (GPT-2, ModernBERT). biases: of dense layers and norms. gated: the feed-forward layer is
    down(activation(gate(x)) · up(x)) (Shazeer 2020, GLU variants). Raises UserError for another `norm`.
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
            raise UserError(f"model.norm is {self.norm!r}: use {' or '.join(NORMS)}")


def residual(place: str, norm: Callable[[Array], Array], sublayer: Callable[[Array], Array], x: Array) -> Array:
    """norm(x + sublayer(x)) for the place `post`, x + sublayer(norm(x)) for `pre`; all of one shape."""
    return norm(x + sublayer(x)) if place == "post" else x + sublayer(norm(x))
