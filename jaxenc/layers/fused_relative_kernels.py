"""The GPU kernels of `layers/fused_relative.py`, for Triton through Pallas: XLNet's relative attention, forward and backward.

They walk over tiles as `fused_kernels.py` does. The scores by distance are a product of their own before the kernel, and lie in memory as
that product leaves them. A tile of scores by key is a skewed tile of those (`relative.shift`), which the kernel reads through its index: no
shifted copy, no scores, weights or dropout of all pairs. The gradient of the scores is written once, into the same skewed places: it is the
gradient of the scores by distance, and `of_queries` reads it there instead of computing the scores a third time.
"""

import dataclasses
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton

from jaxenc.layers.dropout import survives
from jaxenc.layers.fused_ops import LOWEST, dot, indices, load, steps, store
from jaxenc.layers.fused_tiles import Tile, Tiles

# The values of `Scores.pairs`; 0 where a query does not see a key.
SAME, OTHER = 1, 2


class Scores(NamedTuple):
    """What the kernels read besides q, k and v, whose product is the score's first term.

    position: scores by distance in the compute dtype, [batch, heads, queries · columns]; row i of `columns` has the score of key j at
    length - place of the query + j. segment: what is added where the key is of another segment, [batch, heads, queries]. pairs: i8
    [batch, queries · keys], SAME, OTHER or 0. at: i32 [batch, queries], the place of each query in its row of `length` tokens; None where
    query i is place i. words, heads: as in `fused_kernels.Side`, None without dropout.
    """

    position: Any
    segment: Any
    pairs: Any
    at: Any
    words: Any
    heads: Any


class Back(NamedTuple):
    """As `fused_kernels.Back`."""

    slope: Any
    sums: Any
    delta: Any


@dataclasses.dataclass(frozen=True)
class Spec:
    """The static part of a call. length: tokens of a row, without memory. rate: of the dropout, 0 where `Scores.words` is None."""

    length: int
    rate: float
    tiles: Tiles


@dataclasses.dataclass(frozen=True)
class Program:
    """One program of a kernel: it works on head `pl.program_id(1)` of row `pl.program_id(2)`. columns: distances of a row of scores."""

    spec: Spec
    tile: Tile
    queries: int
    keys: int
    columns: int
    d: int

    @property
    def scale(self) -> float:
        """Of the scores, in base 2: exp(x) = exp2(x · log2 e), and a GPU computes exp2."""
        return self.d**-0.5 * math.log2(math.e)

    def of_queries(self, ref: Any, start: Array) -> Array:
        """The tile of queries from `start` on."""
        return load(ref, start, self.tile.queries, self.queries, self.d)

    def of_keys(self, ref: Any, start: Array) -> Array:
        """The tile of keys from `start` on."""
        return load(ref, start, self.tile.keys, self.keys, self.d)

    def inside(self, rows: Array, keys: Array) -> Array | None:
        """Whether each pair exists, None where all tiles are whole. rows, keys: i32 places, one [n, 1] and the other [1, n]."""
        whole = self.queries % self.tile.queries == 0, self.keys % self.tile.keys == 0
        if all(whole):
            return None
        return jnp.logical_and(rows < self.queries, keys < self.keys)

    def skewed(self, scores: Scores, rows: Array, keys: Array, row_start: Array) -> Array:
        """The index of each pair in `Scores.position`."""
        if scores.at is None:
            return rows * (self.columns - 1) + self.spec.length + keys
        at = self.of_queries(scores.at, row_start).reshape(rows.shape)
        return rows * self.columns + (self.spec.length - at) + keys

    def pairs(self, scores: Scores, rows: Array, keys: Array) -> Array:
        """A tile of `Scores.pairs`, i32."""
        return _pick(scores.pairs, rows * self.keys + keys, self.inside(rows, keys)).astype(jnp.int32)

    def total(self, product: Array, scores: Scores, rows: Array, keys: Array, row_start: Array) -> Array:
        """The score of each pair in base 2, -inf where the query does not see the key; product: q · k."""
        pairs = self.pairs(scores, rows, keys)
        position = _pick(scores.position, self.skewed(scores, rows, keys, row_start), self.inside(rows, keys)).astype(jnp.float32)
        segment = self.of_queries(scores.segment, row_start).astype(jnp.float32).reshape(rows.shape)
        other = jnp.where(pairs == OTHER, jnp.broadcast_to(segment, product.shape), 0.0)
        return jnp.where(pairs != 0, (product + position + other) * self.scale, -jnp.inf)

    def drop(self, scores: Scores, rows: Array, keys: Array) -> Callable[[Array], Array]:
        """As in `fused_kernels`; the element's index is the one in [heads, queries, keys] of the whole model."""
        if scores.words is None:
            return lambda tile: tile
        of_rows = (scores.heads[0] * np.uint32(self.queries) + rows.astype(jnp.uint32)) * np.uint32(self.keys) + scores.words[0]
        kept = survives(self.spec.rate, of_rows + keys.astype(jnp.uint32), scores.words[1])
        return lambda tile: jnp.where(kept, tile, 0.0)


def _pick(ref: Any, index: Array, inside: Array | None) -> Array:
    return triton.load(ref.at[index]) if inside is None else triton.load(ref.at[index], mask=inside, other=0)


def _read(scores: Scores) -> Scores:
    """`scores` with the words of dropout as scalars, which are read once and not in every step."""
    if scores.words is None:
        return scores
    return scores._replace(words=(scores.words[0], scores.words[1]), heads=(scores.heads[0],))


def forward(program: Program, q_ref: Any, k_ref: Any, v_ref: Any, scores: Scores, out_ref: Any, sums_ref: Any) -> None:
    """out: the weighted values of a tile of queries; sums: the base-2 logarithm of the sum of a query's exponentials, f32 [queries]."""
    tile, scores = program.tile, _read(scores)
    start = pl.program_id(0) * tile.queries
    q, rows = program.of_queries(q_ref, start), (start + indices(tile.queries))[:, None]

    def step(number: Array, carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        mixed, most, total = carry
        at = number * tile.keys
        keys = (at + indices(tile.keys))[None, :]
        these = program.total(dot(q, program.of_keys(k_ref, at), trans_b=True), scores, rows, keys, start)
        now = jnp.maximum(most, jnp.max(these, axis=1))
        weights, shrink = jnp.exp2(these - now[:, None]), jnp.exp2(most - now)
        v = program.of_keys(v_ref, at)
        dropped = program.drop(scores, rows, keys)(weights).astype(v.dtype)
        return mixed * shrink[:, None] + dot(dropped, v), now, total * shrink + jnp.sum(weights, axis=1)

    zeros = jnp.zeros((tile.queries,), jnp.float32)
    carry = jnp.zeros(q.shape, jnp.float32), zeros + LOWEST, zeros
    mixed, most, total = jax.lax.fori_loop(0, steps(program.keys, tile.keys), step, carry)
    total = jnp.where(total == 0, 1.0, total)
    store(out_ref, start, mixed / (total * (1 - program.spec.rate))[:, None], program.queries, program.d)
    store(sums_ref, start, most + jnp.log(total) * math.log2(math.e), program.queries, program.d)


def of_keys(program: Program, q_ref: Any, k_ref: Any, v_ref: Any, scores: Scores, back: Back, zeros: Any, *out: Any) -> None:
    """Gradients of a tile of keys and values, and of the scores by distance that they meet; the others stay 0 as in `zeros`, which is the
    memory of the last of `out`, the references to these three."""
    tile, scores, (of_k_ref, of_v_ref, of_position) = program.tile, _read(scores), out
    start = pl.program_id(0) * tile.keys
    k, v = program.of_keys(k_ref, start), program.of_keys(v_ref, start)
    rescale = 1 / (1 - program.spec.rate)
    # A tile is [keys, queries], so that both products below take it as it lies; with queries at places of their own [queries, keys] is
    # faster (0.66 against 0.81 ms, forward and backward, for 85 queries over 512 keys on an H200).
    turned = scores.at is None
    by_query, by_key = (lambda x: x[None, :], lambda x: x[:, None]) if turned else (lambda x: x[:, None], lambda x: x[None, :])
    pairs = lambda of_query, of_key: dot(of_key, of_query, trans_b=True) if turned else dot(of_query, of_key, trans_b=True)
    keys = by_key(start + indices(tile.keys))

    def step(number: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        of_k, of_v = carry
        at = number * tile.queries
        rows = by_query(at + indices(tile.queries))
        q, slope, sums, delta = (program.of_queries(ref, at) for ref in (q_ref, *back))
        drop = program.drop(scores, rows, keys)
        weights = jnp.exp2(program.total(pairs(q, k), scores, rows, keys, at) - by_query(sums))
        of_v = of_v + dot(drop(weights).astype(v.dtype), slope, trans_a=not turned)
        of_scores = weights * (drop(pairs(slope, v)) - by_query(delta))
        of_scores = (of_scores * (program.d**-0.5 * rescale)).astype(q.dtype)
        index, inside = program.skewed(scores, rows, keys, at), program.inside(rows, keys)
        if inside is not None:
            # The interpreter writes what it read to places outside, and these may be those of another row.
            index = jnp.where(inside, index, program.queries * program.columns)
        triton.store(of_position.at[index], of_scores, mask=inside)
        return of_k + dot(of_scores, q, trans_a=not turned), of_v

    of_k, of_v = jax.lax.fori_loop(0, steps(program.queries, tile.queries), step, (jnp.zeros(k.shape, jnp.float32),) * 2)
    store(of_k_ref, start, of_k, program.keys, program.d)
    store(of_v_ref, start, of_v * rescale, program.keys, program.d)


def of_queries(program: Program, k_ref: Any, scores: Scores, of_q_ref: Any, of_segment_ref: Any) -> None:
    """Gradients of a tile of queries and of their segment term. `scores.position` is the gradient of the scores here, from `of_keys`."""
    tile = program.tile
    start = pl.program_id(0) * tile.queries
    rows = (start + indices(tile.queries))[:, None]

    def step(number: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        of_q, of_segment = carry
        at = number * tile.keys
        keys = (at + indices(tile.keys))[None, :]
        of_scores = _pick(scores.position, program.skewed(scores, rows, keys, start), program.inside(rows, keys))
        other = jnp.where(program.pairs(scores, rows, keys) == OTHER, of_scores.astype(jnp.float32), 0.0)
        return of_q + dot(of_scores, program.of_keys(k_ref, at)), of_segment + jnp.sum(other, axis=1)

    carry = jnp.zeros((tile.queries, k_ref.shape[1]), jnp.float32), jnp.zeros((tile.queries,), jnp.float32)
    of_q, of_segment = jax.lax.fori_loop(0, steps(program.keys, tile.keys), step, carry)
    store(of_q_ref, start, of_q, program.queries, program.d)
    store(of_segment_ref, start, of_segment, program.queries, program.d)
