"""Dropout whose mask is a function of (seed, step, row, site, layer, element) and of nothing else."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxenc.rng import Keys


def dropout(x: Array, rate: float, noise: Keys | None, site: str | int, layer: int | Array = 0) -> Array:
    """Zeroes each element of `x` [batch, ...] with probability `rate` and divides the others by 1 - `rate`.

    An element is kept when a 32-bit hash of its row's two words (`Keys.words`) and of its index within the row reaches rate · 2^32,
    so the mask does not depend on the mesh, on the microbatch a row falls in, or on whether layers are scanned or computed again.
    noise: None means evaluation, and `x` comes back as it is. site: a name of `rng.SITES` or a head's integer; layer may be traced.
    Raises ValueError unless 0 <= rate < 1.
    """
    if not 0 <= rate < 1:
        raise ValueError(f"dropout rate {rate} is not in [0, 1)")
    if noise is None or rate == 0:
        return x
    # The backward pass hashes again: it is cheaper than reading a mask from memory.
    return jax.checkpoint(functools.partial(_drop, rate), prevent_cse=False)(x, noise.words(site, layer))


def keep(rate: float, words: tuple[Array, Array], shape: tuple[int, ...]) -> Array:
    """bool `shape` = [batch, ...], true where an element stays; words: two u32 [batch]."""
    first, second = (jnp.reshape(word, (-1, *(1 for _ in shape[1:]))) for word in words)
    return survives(rate, _index(shape) + first, second)


def survives(rate: float, x: Array, second: Array) -> Array:
    """Whether an element stays; x: u32, its row-major index within its row plus the row's first word; second: u32, the second word. GPU
    kernels call it too: it has no array constants, which they could not take."""
    # One multiply-and-shift mix (C. Wellons' lowbias32). The second word enters half-way: without it, a row's mask would be a
    # stretch of one sequence that all rows share.
    x = (x ^ (x >> 16)) * np.uint32(0x7FEB352D) + second
    x = (x ^ (x >> 15)) * np.uint32(0x846CA68B)
    return (x ^ (x >> 16)) >= np.uint32(round(rate * 2**32))


def _drop(rate: float, x: Array, words: tuple[Array, Array]) -> Array:
    scaled = x.astype(jnp.float32) / (1 - rate)
    return jnp.where(keep(rate, words, x.shape), scaled, 0).astype(x.dtype)


def _index(shape: tuple[int, ...]) -> Array:
    """u32 [1, ...]: the row-major number of each element within its row."""
    inner = (1, *shape[1:])
    steps = [math.prod(inner[axis + 1 :]) for axis in range(len(inner))]
    terms = [jax.lax.broadcasted_iota(jnp.uint32, inner, axis) * jnp.uint32(steps[axis]) for axis in range(1, len(inner))]
    return sum(terms, start=jnp.zeros(inner, jnp.uint32))
