"""XLNet's relative attention in GPU kernels, with masks and dropout, on any mesh: what `layers/relative.py` calls as `pallas`.

As `fused.py`, with the kernels of `fused_relative_kernels.py`.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton

from jaxenc.layers import fused_relative_kernels as kernels
from jaxenc.layers.fused_ops import steps
from jaxenc.layers.fused_relative_kernels import Back, Scores, Spec
from jaxenc.layers.fused_split import HEAD, NARROW, ROW, WIDE, Split
from jaxenc.layers.fused_tiles import SMALLEST, Tile

# The kinds of the arrays of Scores.
SCORES = Scores(NARROW, NARROW, ROW, ROW, ROW, HEAD)


def fused_relative(q: Array, k: Array, v: Array, scores: Scores, spec: Spec) -> Array:
    """softmax((q · k + the other terms of `scores`) / sqrt(d)) · v, with its mask and dropout.

    q and the result: [batch, queries, heads, d]; k, v: [batch, keys, heads, d]; in one dtype. `scores.position` is [batch, heads, queries,
    columns] here and scores.heads is not read: it follows from the arguments. Scores, softmax and sums are float32. A query that sees no
    key gets exactly 0 and has no gradient.
    Under a mesh of several devices rows are split over its batch axes and heads over its tensor axis, where they divide evenly.
    """
    heads = None if scores.words is None else jnp.arange(q.shape[2], dtype=jnp.uint32)
    position, segment = scores.position.reshape(*scores.position.shape[:2], -1), scores.segment
    return _attend(spec, q, k, v, position, segment, scores._replace(position=None, segment=None, heads=heads))


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _attend(spec: Spec, q: Array, k: Array, v: Array, position: Array, segment: Array, fixed: Scores) -> Array:
    return _forward(spec, q, k, v, position, segment, fixed)[0]


def _forward(spec: Spec, q: Array, k: Array, v: Array, position: Array, segment: Array, fixed: Scores) -> tuple[Array, Any]:
    scores = fixed._replace(position=position, segment=segment)
    call = Split.of(q).map(functools.partial(_call_forward, spec), (WIDE, WIDE, WIDE, SCORES), (WIDE, NARROW))
    out, sums = call(q, k, v, scores)
    return out, (q, k, v, scores, out, sums)


def _backward(spec: Spec, kept: Any, slope: Array) -> tuple[Array, Array, Array, Array, Array, None]:
    q, k, v, scores, out, sums = kept
    given = WIDE, WIDE, WIDE, SCORES, WIDE, WIDE, NARROW
    call = Split.of(q).map(functools.partial(_call_backward, spec), given, (WIDE, WIDE, WIDE, NARROW, NARROW))
    return *call(q, k, v, scores, out, slope, sums), None


_attend.defvjp(_forward, _backward)


def _call_forward(spec: Spec, q: Array, k: Array, v: Array, scores: Scores) -> tuple[Array, Array]:
    sums = jax.ShapeDtypeStruct((q.shape[0], q.shape[2], q.shape[1]), jnp.float32)
    program = _program(spec, spec.tiles.forward, q, k, scores)
    return _call(kernels.forward, program, "queries", (q, k, v, scores), (_like(q), sums))


def _call_backward(
    spec: Spec, q: Array, k: Array, v: Array, scores: Scores, out: Array, slope: Array, sums: Array
) -> tuple[Array, Array, Array, Array, Array]:
    # Right with dropout too: the sum over keys of weight · its gradient is the product of the output with the output's gradient.
    delta = jnp.sum(out.astype(jnp.float32) * slope.astype(jnp.float32), axis=-1).swapaxes(1, 2) * (1 - spec.rate)
    zeros = jnp.zeros_like(scores.position)
    given, out = (q, k, v, scores, Back(slope, sums, delta), zeros), (_like(k), _like(v), _like(zeros))
    of_k, of_v, of_position = _call(kernels.of_keys, _program(spec, spec.tiles.of_keys, q, k, scores), "keys", given, out, written=2)
    given = k, Scores(of_position, None, scores.pairs, scores.at, None, None)
    program = _program(spec, spec.tiles.of_queries, q, k, scores)
    of_q, of_segment = _call(kernels.of_queries, program, "queries", given, (_like(q), _like(scores.segment)))
    return of_q, of_k, of_v, of_position, of_segment


def _program(spec: Spec, tile: Tile, q: Array, k: Array, scores: Scores) -> kernels.Program:
    queries = q.shape[1]
    return kernels.Program(spec, tile, queries, k.shape[1], scores.position.shape[2] // queries, q.shape[3])


def _like(x: Array) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(x.shape, x.dtype)


def _call(kernel: Any, program: kernels.Program, walks: str, given: tuple, out: tuple, written: int | None = None) -> Any:
    """One program a tile of `walks` (queries or keys), head and row. Every program gets its head of its row whole, padded to tiles.
    written: the number of the output that takes the memory of the last argument."""
    tile, wide = program.tile, max(SMALLEST, pl.next_power_of_2(program.d))
    whole = max(tile.queries, tile.keys)
    padded = lambda count: -(-count // whole) * whole

    def block(x: Any) -> pl.BlockSpec:
        if len(x.shape) == 4:
            return pl.BlockSpec((None, padded(x.shape[1]), None, wide), lambda _, head, row: (row, 0, head, 0))
        if len(x.shape) == 3:
            return pl.BlockSpec((None, None, padded(x.shape[2])), lambda _, head, row: (row, head, 0))
        if len(x.shape) == 2:
            return pl.BlockSpec((None, padded(x.shape[1])), lambda _, head, row: (row, 0))
        return pl.BlockSpec((1,), lambda _, head, row: (head,))

    batch, _, heads, _ = out[0].shape
    return pl.pallas_call(
        functools.partial(kernel, program),
        grid=(steps(getattr(program, walks), getattr(tile, walks)), heads, batch),
        in_specs=list(jax.tree.map(block, given)),
        out_specs=[*map(block, out)],
        out_shape=list(out),
        input_output_aliases={} if written is None else {len(jax.tree.leaves(given)) - 1: written},
        compiler_params=triton.CompilerParams(num_warps=tile.warps, num_stages=tile.stages),
        name=f"relative_attention_{kernel.__name__}",
    )(*given)
