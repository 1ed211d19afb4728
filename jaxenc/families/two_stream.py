"""The capability of a model with two streams: the content stream reads tokens, the query stream predicts tokens that it does not see
(Yang et al. 2019, section 2.3)."""

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
    """The hidden states of the tokens before a row. states: [batch, layers, memory, width] in the compute dtype, the input of each layer;
    filled: i32 [batch], the number of valid places, which are the last ones: no query sees the others."""

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
    """The inputs of the network. The factorisation order of each row is in its attention masks.

    tokens, types: i32 [batch, length]; only whether two types are equal matters, and memory has type 0. sees: bool [batch, length or 1,
    memory + length], the keys that the content stream sees from each place, itself included. direction: i32 [batch], -1 for a row whose
    text runs backward, None where all run forward.
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
    """The outputs of both streams.

    content, query: the last layer, [batch, length, width] and [batch, predictions, width] or None, or all layers of each, [layers + 1,
    ...]. inputs: [batch, layers, length, width], the input of each layer of the content stream, which is the memory of the next rows.
    table: float32 [padded vocabulary, width], the token table.
    """

    content: Array
    query: Array | None
    inputs: Array
    table: Array


class TwoStreamEncoder(Encoder, Protocol):
    """An encoder (the content stream without memory) that can also run both streams."""

    def streams(self, params: Tree, rows: Rows, noise: Keys | None) -> TwoStreams:
        """Runs both streams. noise: the keys of dropout, None for evaluation.

        Gradients flow into the memory; a caller differentiates with respect to the parameters only.
        """
        ...

    def streams_flops(self, length: int, memory: int, predictions: int) -> float:
        """FLOPs of the matrix products of `streams` on one row, forward; a multiply-add counts as two."""
        ...


@runtime_checkable
class TwoStream(Protocol):
    """The config of a model with two streams."""

    def two_streams(self, execution: Execution) -> TwoStreamEncoder:
        """The network."""
        ...
