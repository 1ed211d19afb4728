"""A language model of both directions: one network reads a text forward, another backward (Peters et al. 2018, section 3.1)."""

import dataclasses
from typing import Protocol, runtime_checkable

import jax
from jax import Array

from jaxenc.execution import Execution
from jaxenc.families.contract import ModelConfig
from jaxenc.rng import Keys
from jaxenc.tree import Tree

DIRECTIONS = ("forward", "backward")


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Read:
    """What one direction reads, in the order of its reading. tokens: i32 [batch, length]; characters: uint16 [batch, length, 50]; the
    one that the model does not read may be None. real: bool [batch, length], None for all. What is not real moves no state and gives zeros.
    """

    tokens: Array | None
    characters: Array | None
    real: Array | None


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Both:
    """What each direction gives, in the order of its reading: the last layer [batch, length, width], or what enters the first layer and
    every layer's output [layers + 1, batch, length, width]."""

    forward: Array
    backward: Array


class TwoReaders(Protocol):
    """Both networks, frozen. What they give is `config.width` wide, each."""

    config: ModelConfig
    execution: Execution

    def start(self, key: Array) -> Tree:
        """The parameters they start from, boxed with their axis names; key: one typed key."""
        ...

    def zero_state(self, batch: int) -> Tree:
        """What they know before the first row: a tree of zeros with leading axis `batch`."""
        ...

    def apply(self, variables: Tree, forward: Read, backward: Read, state: Tree, noise: Keys | None) -> tuple[Both, Tree]:
        """What both give of rows, in the compute dtype, and the state after them, whose gradient nothing stops. variables:
        {"params": parameters}; noise: None for evaluation, which draws no dropout."""
        ...

    def text(self, params: Tree, tokens: Array, characters: Array | None, segments: Array, state: Tree | None = None) -> tuple[Array, Tree]:
        """(hidden [layers + 1, batch, length, 2 · width], forward beside backward, in the order of the text; the state after it).

        tokens: i32 [batch, length], a text a row; characters: uint16 [batch, length, 50] for a model that reads them; segments: i32
        [batch, length], 0 = padding, which moves no state and gives zeros. state: None for zeros.
        """
        ...

    def forward_flops(self, length: int) -> float:
        """FLOPs of their matrix products on one row of `length` words a direction, forward; a multiply and an add are two."""
        ...


@runtime_checkable
class BothDirections(Protocol):
    """The config of such a model."""

    def readers(self, execution: Execution) -> TwoReaders:
        """Both networks."""
        ...
