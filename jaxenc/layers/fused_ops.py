"""What the GPU kernels of attention share: masked loads and stores of a tile, products of tiles and counts of them."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton

# Where the running maximum starts. Finite, so that a query without keys subtracts it from -inf and gets weights of 0, not NaN.
LOWEST = -1e30


def load(ref: Any, start: Array, size: int, count: int, d: int) -> Array:
    """Places start .. start + size of [padded length, padded d] or [padded length]; 0 from place `count` and column d on."""
    at, mask = ref.at[pl.ds(start, size)], _mask(start, size, count, d, ref.shape)
    return triton.load(at) if mask is None else triton.load(at, mask=mask, other=0)


def store(ref: Any, start: Array, value: Array, count: int, d: int) -> None:
    """Writes `value` to the places from `start` on, as `load` reads them."""
    size = len(value)
    triton.store(ref.at[pl.ds(start, size)], value.astype(ref.dtype), mask=_mask(start, size, count, d, ref.shape))


def _mask(start: Array, size: int, count: int, d: int, shape: tuple[int, ...]) -> Array | None:
    masks = [] if count % size == 0 else [(start + indices(size) < count).reshape(size, *(1 for _ in shape[1:]))]
    if len(shape) == 2 and shape[1] != d:
        masks.append((indices(shape[1]) < d)[None, :])
    wanted = (size, *shape[1:])
    return functools.reduce(jnp.logical_and, (jnp.broadcast_to(mask, wanted) for mask in masks)) if masks else None


def indices(size: int) -> Array:
    """i32 0 .. size."""
    return jax.lax.iota(jnp.int32, size)


def dot(a: Array, b: Array, trans_a: bool = False, trans_b: bool = False) -> Array:
    """The product of two tiles, float32, without rounding float32 operands to tf32."""
    # The highest precision is plain float32 for float32 operands and nothing special for bfloat16.
    return triton.dot(a, b, trans_a=trans_a, trans_b=trans_b, precision=jax.lax.Precision.HIGHEST)


def steps(places: Array | int, size: int) -> Array | int:
    """The number of tiles of `size` that cover `places`."""
    return jax.lax.div(places + (size - 1), size) if isinstance(places, jax.Array) else -(-places // size)
