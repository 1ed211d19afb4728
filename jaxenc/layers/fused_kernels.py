"""The GPU kernels of `layers/fused.py`, for Triton through Pallas: attention with its mask and dropout, forward and backward.

They follow FlashAttention-2 (Dao 2023): a program holds a tile of queries, or of keys, and walks over the tiles of the other side, so the
scores never reach memory. The backward pass computes scores and dropout again. Every array is read where it lies, [batch, length, heads,
d]; a length or a d that is not a multiple of its tile is masked where it is loaded and stored.
"""

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.experimental import pallas as pl

from jaxenc.layers.dropout import survives
from jaxenc.layers.fused_ops import LOWEST, dot, indices, load, steps, store
from jaxenc.layers.fused_tiles import Tile, Tiles


class Side(NamedTuple):
    """What mask and dropout read; None where there is no such rule.

    lengths: i32 [batch]; a query sees its row's first keys only. query_marks, key_marks: i32 [batch, length], both or neither; a query
    sees the keys whose mark is its own. words: u32 [batch, 2], the row's words of `Keys.words`. heads: u32 [heads], the number of each
    head among those of all devices.
    """

    lengths: Any
    query_marks: Any
    key_marks: Any
    words: Any
    heads: Any


class Back(NamedTuple):
    """What the backward pass reads besides.

    slope: the gradient of the output. sums: from `forward`. delta: (1 - rate) · slope · output, summed over d, f32 [batch, heads, length].
    """

    slope: Any
    sums: Any
    delta: Any


@dataclasses.dataclass(frozen=True)
class Spec:
    """The static part of a call. rate: of the dropout, 0 where `Side.words` is None."""

    causal: bool
    rate: float
    tiles: Tiles


class Here(NamedTuple):
    """What one program takes of `Side`. limit: the number of keys that any query of its row may see. words: None, or u32 scalars: the
    number of the head and the two words of the row."""

    limit: Array | int
    query_marks: Any
    key_marks: Any
    words: tuple[Array, Array, Array] | None


@dataclasses.dataclass(frozen=True)
class Program:
    """One program of a kernel: it works on head `pl.program_id(1)` of row `pl.program_id(2)`."""

    spec: Spec
    tile: Tile
    length: int
    d: int

    @property
    def scale(self) -> float:
        """Of the scores, in base 2: exp(x) = exp2(x · log2 e), and a GPU computes exp2."""
        return self.d**-0.5 * math.log2(math.e)

    def load(self, ref: Any, start: Array, size: int) -> Array:
        """As `fused_ops.load`, of a row."""
        return load(ref, start, size, self.length, self.d)

    def store(self, ref: Any, start: Array, value: Array) -> None:
        """As `fused_ops.store`, of a row."""
        store(ref, start, value, self.length, self.d)

    def read(self, side: Side) -> "Here":
        """Reads once what a program needs of `side`; read in the loop over tiles, the compiler would load it in every step."""
        limit = self.length if side.lengths is None else jnp.minimum(side.lengths[0], self.length)
        words = None if side.words is None else (side.heads[0], side.words[0], side.words[1])
        return Here(limit, side.query_marks, side.key_marks, words)

    def hide(self, scores: Array, here: Here, rows: Array, keys: Array, row_start: Array, key_start: Array) -> Array:
        """`scores` with -inf where a query does not see a key. rows, keys: i32 places, one [n, 1] and the other [1, n]."""
        rules = []
        if not isinstance(here.limit, int) or self.length % self.tile.keys:
            rules.append(keys < here.limit)
        if here.key_marks is not None:
            marks = self.load(here.query_marks, row_start, self.tile.queries), self.load(here.key_marks, key_start, self.tile.keys)
            rules.append(marks[0].reshape(rows.shape) == marks[1].reshape(keys.shape))
        if self.spec.causal:
            rules.append(rows >= keys)
        if not rules:
            return scores
        seen = functools.reduce(jnp.logical_and, (jnp.broadcast_to(rule, scores.shape) for rule in rules))
        return jnp.where(seen, scores, -jnp.inf)

    def drop(self, here: Here, rows: Array, keys: Array) -> Callable[[Array], Array]:
        """The function that zeroes the elements of a tile that dropout drops and does not scale the others. rows, keys: as in `hide`.

        The element's index is the one of `dropout.keep` in [heads, length, length] of the whole model.
        """
        if here.words is None:
            return lambda tile: tile
        head, first, second = here.words
        length = np.uint32(self.length)
        # The first word joins the queries' part, which is small, and not the tile.
        of_rows = (head * length + rows.astype(jnp.uint32)) * length + first
        kept = survives(self.spec.rate, of_rows + keys.astype(jnp.uint32), second)
        return lambda tile: jnp.where(kept, tile, 0.0)


def forward(program: Program, q_ref: Any, k_ref: Any, v_ref: Any, side: Side, out_ref: Any, sums_ref: Any) -> None:
    """out: the weighted values of a tile of queries; sums: the base-2 logarithm of the sum of a query's exponentials, f32 [length]."""
    spec, tile = program.spec, program.tile
    start = pl.program_id(0) * tile.queries
    q, rows, here = program.load(q_ref, start, tile.queries), (start + indices(tile.queries))[:, None], program.read(side)

    def step(number: Array, carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        mixed, most, total = carry
        at = number * tile.keys
        keys = (at + indices(tile.keys))[None, :]
        scores = dot(q, program.load(k_ref, at, tile.keys), trans_b=True) * program.scale
        scores = program.hide(scores, here, rows, keys, start, at)
        now = jnp.maximum(most, jnp.max(scores, axis=1))
        weights, shrink = jnp.exp2(scores - now[:, None]), jnp.exp2(most - now)
        v = program.load(v_ref, at, tile.keys)
        dropped = program.drop(here, rows, keys)(weights).astype(v.dtype)
        return mixed * shrink[:, None] + dot(dropped, v), now, total * shrink + jnp.sum(weights, axis=1)

    last = steps(here.limit, tile.keys)
    if spec.causal:
        last = jnp.minimum(last, steps(start + tile.queries, tile.keys))
    zeros = jnp.zeros((tile.queries,), jnp.float32)
    mixed, most, total = jax.lax.fori_loop(0, last, step, (jnp.zeros(q.shape, jnp.float32), zeros + LOWEST, zeros))
    total = jnp.where(total == 0, 1.0, total)
    program.store(out_ref, start, mixed / (total * (1 - spec.rate))[:, None])
    program.store(sums_ref, start, most + jnp.log(total) * math.log2(math.e))


def of_keys(program: Program, q_ref: Any, k_ref: Any, v_ref: Any, side: Side, back: Back, *out: Any) -> None:
    """Gradients of a tile of keys and values; also of the queries, where one tile holds all keys.

    out: references to the gradients of keys, values and maybe queries.
    """
    spec, tile = program.spec, program.tile
    start = pl.program_id(0) * tile.keys
    k, v = program.load(k_ref, start, tile.keys), program.load(v_ref, start, tile.keys)
    keys, here = (start + indices(tile.keys))[:, None], program.read(side)
    rescale = 1 / (1 - spec.rate)

    def step(number: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        of_k, of_v = carry
        at = number * tile.queries
        rows = (at + indices(tile.queries))[None, :]
        q, slope = program.load(q_ref, at, tile.queries), program.load(back.slope, at, tile.queries)
        sums, delta = program.load(back.sums, at, tile.queries), program.load(back.delta, at, tile.queries)
        drop = program.drop(here, rows, keys)
        # Transposed, [keys, queries]: both products below then take it as it lies.
        scores = program.hide(dot(k, q, trans_b=True) * program.scale, here, rows, keys, at, start)
        weights = jnp.exp2(scores - sums[None, :])
        of_v = of_v + dot(drop(weights).astype(v.dtype), slope)
        of_scores = (weights * (drop(dot(v, slope, trans_b=True)) - delta[None, :])).astype(q.dtype)
        if len(out) == 3:
            program.store(out[2], at, dot(of_scores, k, trans_a=True) * (program.d**-0.5 * rescale))
        return of_k + dot(of_scores, q), of_v

    first = jax.lax.div(start, tile.queries) if spec.causal else 0
    last = steps(program.length, tile.queries)
    if len(out) == 2:
        last = last * jnp.int32(start < here.limit)  # a select of two constants lowers to a wrong type
    of_k, of_v = jax.lax.fori_loop(first, last, step, (jnp.zeros(k.shape, jnp.float32),) * 2)
    program.store(out[0], start, of_k * (program.d**-0.5 * rescale))
    program.store(out[1], start, of_v * rescale)


def of_queries(program: Program, q_ref: Any, k_ref: Any, v_ref: Any, side: Side, back: Back, out_ref: Any) -> None:
    """The gradient of a tile of queries; arguments as in `of_keys`."""
    spec, tile = program.spec, program.tile
    start = pl.program_id(0) * tile.queries
    q, slope = program.load(q_ref, start, tile.queries), program.load(back.slope, start, tile.queries)
    sums, delta = program.load(back.sums, start, tile.queries), program.load(back.delta, start, tile.queries)
    rows, here = (start + indices(tile.queries))[:, None], program.read(side)

    def step(number: Array, of_q: Array) -> Array:
        at = number * tile.keys
        keys = (at + indices(tile.keys))[None, :]
        k, v = program.load(k_ref, at, tile.keys), program.load(v_ref, at, tile.keys)
        scores = program.hide(dot(q, k, trans_b=True) * program.scale, here, rows, keys, start, at)
        weights = jnp.exp2(scores - sums[:, None])
        of_scores = weights * (program.drop(here, rows, keys)(dot(slope, v, trans_b=True)) - delta[:, None])
        return of_q + dot(of_scores.astype(k.dtype), k)

    last = steps(here.limit, tile.keys)
    if spec.causal:
        last = jnp.minimum(last, steps(start + tile.queries, tile.keys))
    of_q = jax.lax.fori_loop(0, last, step, jnp.zeros(q.shape, jnp.float32))
    program.store(out_ref, start, of_q * (program.d**-0.5 / (1 - spec.rate)))
