"""A model with two streams: one reads tokens, the other predicts tokens that it does not see (Yang et al. 2019, section 2.3)."""

import dataclasses
from typing import Protocol, runtime_checkable

import jax
from jax import Array

from jaxenc.execution import Execution
from jaxenc.families.contract import Encoder
from jaxenc.rng import Keys
from jaxenc.tree import Tree


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Memory:
    """What the layers read of the places before a row. states: [batch, layers, memory, width] in the compute dtype; filled: i32 [batch],
    how many of them, at the end, are real: no query sees the others."""

    states: Array
    filled: Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Query:
    """The places that the query stream predicts. at: i32 [batch, predictions]; sees: bool [batch, predictions, memory + length]."""

    at: Array
    sees: Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Rows:
    """What the network reads of rows whose factorisation order is in what each place sees.

    tokens, types: i32 [batch, length]; only whether two types are equal counts, and memory has type 0. sees: bool [batch, length or 1,
    memory + length], what the content of each place does, itself included. direction: i32 [batch], -1 where the text of a row runs
    backward, None where none does.
    """

    tokens: Array
    types: Array
    sees: Array
    direction: Array | None = None
    memory: Memory | None = None
    query: Query | None = None


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class TwoStreams:
    """What both streams give: the last layers, [batch, length, width] and [batch, predictions, width] or None, or all layers of each,
    [layers + 1, ...]. inputs: [batch, layers, length, width], what each layer read of the content, which is the memory of the rows after
    these. table: float32 [padded, width], the token table."""

    content: Array
    query: Array | None
    inputs: Array
    table: Array


class TwoStreamEncoder(Encoder, Protocol):
    """An encoder, which is the content's stream without memory, and what it is with the other stream."""

    def streams(self, params: Tree, rows: Rows, noise: Keys | None) -> TwoStreams:
        """Both streams of rows. noise: None for evaluation, which draws no dropout.

        Nothing stops the gradient of memory: a caller that hands it on differentiates with respect to parameters only.
        """
        ...

    def streams_flops(self, length: int, memory: int, predictions: int) -> float:
        """FLOPs of the matrix products of `streams` on one row, forward; a multiply and an add are two."""
        ...


@runtime_checkable
class TwoStream(Protocol):
    """The config of such a model."""

    def two_streams(self, execution: Execution) -> TwoStreamEncoder:
        """The network."""
        ...
