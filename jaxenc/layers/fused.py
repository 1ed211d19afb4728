"""Attention in one GPU kernel, with masks and dropout, on any mesh: what `layers/attend.py` calls as `pallas`.

`fused_kernels.py` has the kernels and `fused_tiles.py` their sizes. This file calls them on every device's own rows and heads, and ties the
forward to the backward pass.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton

from jaxenc.layers import fused_kernels as kernels
from jaxenc.layers.fused_kernels import Back, Side, Spec
from jaxenc.layers.fused_split import HEAD, NARROW, ROW, WIDE, Split
from jaxenc.layers.fused_tiles import SMALLEST, Tile

# The kinds of Side's arrays.
SIDE = Side(ROW, ROW, ROW, ROW, HEAD)


def fused(q: Array, k: Array, v: Array, side: Side, spec: Spec) -> Array:
    """softmax(q · k / sqrt(d)) · v, with the mask and the dropout of `side` and `spec`.

    q, k, v and the result: [batch, length, heads, d] in one dtype. Scores, softmax and sums are float32; the products take the dtype's
    operands, float32 ones without rounding them to tf32. A query that sees no key gets exactly 0 and has no gradient. side.heads is not
    read: it follows from the arguments.
    Under a mesh of several devices rows are split over its batch axes and heads over its tensor axis, where they divide evenly.
    """
    heads = None if side.words is None else jnp.arange(q.shape[2], dtype=jnp.uint32)
    return _attend(spec, q, k, v, side._replace(heads=heads))


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _attend(spec: Spec, q: Array, k: Array, v: Array, side: Side) -> Array:
    return _forward(spec, q, k, v, side)[0]


def _forward(spec: Spec, q: Array, k: Array, v: Array, side: Side) -> tuple[Array, Any]:
    split = Split.of(q)
    out, sums = split.map(functools.partial(_call_forward, spec), (*(WIDE,) * 3, SIDE), (WIDE, NARROW))(q, k, v, side)
    return out, (q, k, v, side, out, sums)


def _backward(spec: Spec, kept: Any, slope: Array) -> tuple[Array, Array, Array, None]:
    q, k, v, side, out, sums = kept
    split = Split.of(q)
    call = split.map(functools.partial(_call_backward, spec), (*(WIDE,) * 3, SIDE, WIDE, WIDE, NARROW), (WIDE,) * 3)
    return *call(q, k, v, side, out, slope, sums), None


_attend.defvjp(_forward, _backward)


def _call_forward(spec: Spec, q: Array, k: Array, v: Array, side: Side) -> tuple[Array, Array]:
    sums = jax.ShapeDtypeStruct((q.shape[0], q.shape[2], q.shape[1]), jnp.float32)
    return _call(kernels.forward, spec, spec.tiles.forward, "queries", (q, k, v), side, (), (jax.ShapeDtypeStruct(q.shape, q.dtype), sums))


def _call_backward(
    spec: Spec, q: Array, k: Array, v: Array, side: Side, out: Array, slope: Array, sums: Array
) -> tuple[Array, Array, Array]:
    # Right with dropout too: the sum over keys of weight · its gradient is the product of the output with the output's gradient.
    delta = jnp.sum(out.astype(jnp.float32) * slope.astype(jnp.float32), axis=-1).swapaxes(1, 2) * (1 - spec.rate)
    back, shape = (Back(slope, sums, delta),), jax.ShapeDtypeStruct(q.shape, q.dtype)
    tile = spec.tiles.of_keys
    if tile.keys >= q.shape[1]:
        of_k, of_v, of_q = _call(kernels.of_keys, spec, tile, "keys", (q, k, v), side, back, (shape,) * 3)
        return of_q, of_k, of_v
    of_k, of_v = _call(kernels.of_keys, spec, tile, "keys", (q, k, v), side, back, (shape,) * 2)
    (of_q,) = _call(kernels.of_queries, spec, spec.tiles.of_queries, "queries", (q, k, v), side, back, (shape,))
    return of_q, of_k, of_v


def _call(kernel: Any, spec: Spec, tile: Tile, walks: str, qkv: tuple, side: Side, more: tuple, out: tuple) -> Any:
    """One program a tile of `walks` (queries or keys), head and row. Every program gets its head of its row whole, padded to tiles."""
    batch, length, heads, d = qkv[0].shape
    whole = max(tile.queries, tile.keys)
    padded, wide = -(-length // whole) * whole, max(SMALLEST, pl.next_power_of_2(d))

    def block(x: Any) -> pl.BlockSpec:
        if len(x.shape) == 4:
            return pl.BlockSpec((None, padded, None, wide), lambda _, head, row: (row, 0, head, 0))
        return pl.BlockSpec((None, None, padded), lambda _, head, row: (row, head, 0))

    marks = pl.BlockSpec((None, padded), lambda _, head, row: (row, 0))
    sides = Side(
        pl.BlockSpec((1,), lambda _, head, row: (row,)),
        marks,
        marks,
        pl.BlockSpec((None, 2), lambda _, head, row: (row, 0)),
        pl.BlockSpec((1,), lambda _, head, row: (head,)),
    )
    sides = Side(*(None if array is None else one for array, one in zip(side, sides, strict=True)))
    return pl.pallas_call(
        functools.partial(kernel, kernels.Program(spec, tile, length, d)),
        grid=(-(-length // getattr(tile, walks)), heads, batch),
        in_specs=[*map(block, qkv), sides, *jax.tree.map(block, more)],
        out_specs=[*map(block, out)],
        out_shape=list(out),
        compiler_params=triton.CompilerParams(num_warps=tile.warps, num_stages=tile.stages),
        name=f"attention_{kernel.__name__}",
    )(*qkv, side, *more)
