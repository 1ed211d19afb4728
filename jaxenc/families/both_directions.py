"""The capability of a bidirectional language model: one network reads a text forward, another backward (Peters et al. 2018, section
3.1)."""

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
    """The input of one direction, in its reading order.

    tokens: i32 [batch, length]; characters: uint16 [batch, length, 50]; None is allowed for the one that the model does not read. real:
    bool [batch, length], False for padding, None for no padding. A padding step keeps the state and outputs zeros.
    """

    tokens: Array | None
    characters: Array | None
    real: Array | None


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Both:
    """The output of each direction, in its reading order: the last layer, [batch, length, width], or the input of the first layer and the
    output of each, [layers + 1, batch, length, width]."""

    forward: Array
    backward: Array


class TwoReaders(Protocol):
    """Both networks: a Flax module or another frozen object with its methods. Each outputs vectors of `config.width`."""

    config: ModelConfig
    execution: Execution

    def start(self, key: Array) -> Tree:
        """The initial parameters, boxed with their axis names; key: one typed key."""
        ...

    def zero_state(self, batch: int) -> Tree:
        """The state before the first row: a tree of zeros with leading axis `batch`."""
        ...

    def apply(self, variables: Tree, forward: Read, backward: Read, state: Tree, noise: Keys | None) -> tuple[Both, Tree]:
        """(outputs of both directions in the compute dtype, the state after the rows); gradients flow through the state.

        variables: {"params": parameters}; noise: the keys of dropout, None for evaluation.
        """
        ...

    def text(self, params: Tree, tokens: Array, characters: Array | None, segments: Array, state: Tree | None = None) -> tuple[Array, Tree]:
        """(hidden [layers + 1, batch, length, 2 · width], forward beside backward, in the order of the text; the state after it).

        tokens: i32 [batch, length], one text a row; characters: uint16 [batch, length, 50] for a model that reads them; segments: i32
        [batch, length], 0 = padding, which keeps the state and outputs zeros. state: None for zeros.
        """
        ...

    def forward_flops(self, length: int) -> float:
        """FLOPs of the matrix products of both on one row of `length` words each, forward; a multiply-add counts as two."""
        ...


@runtime_checkable
class BothDirections(Protocol):
    """The config of a bidirectional language model."""

    def readers(self, execution: Execution) -> TwoReaders:
        """Both networks."""
        ...
