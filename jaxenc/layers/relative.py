"""Attention by relative position (Transformer-XL, Dai et al. 2019), with labels of segments (XLNet, Yang et al. 2019)."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxenc.layers.attend import where_seen
from jaxenc.layers.dropout import dropout
from jaxenc.layers.visible import HIDDEN
from jaxenc.rng import Keys


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Sight:
    """The attention mask of one stream. The keys are those of the memory, then those of the row.

    sees, other: bool [batch, queries, keys], whether a query sees a key, and whether that is of another segment. at: i32 [batch,
    queries], the place of each query in its row; None where query i is place i.
    """

    sees: Array
    other: Array
    at: Array | None = None


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Context:
    """The second input of every layer, besides hidden states.

    distances: `sinusoids`, [1 or 2, keys + length, width] in the compute dtype. backward: bool [batch], the rows whose text runs
    backward; None where all run forward, and `distances` has one table. query: None without a query stream.
    """

    distances: Array
    backward: Array | None
    content: Sight
    query: Sight | None


def sinusoids(keys: int, length: int, width: int, clamp: int, both: bool) -> Array:
    """[sin | cos] of the distances keys, keys - 1, ... 1 - length from a query to a key: float32 [1 or 2, keys + length, width].

    both: a second table, of the negated distances, for text that runs backward. clamp: longer distances count as this one; 0 is off.
    Source: zihangdai/xlnet modeling.py, relative_positional_encoding, with attn_type bi.
    """
    distance = np.arange(keys, -length, -1, dtype=np.float32)
    distance = np.stack([distance, -distance] if both else [distance])
    distance = np.clip(distance, -clamp, clamp) if clamp else distance
    frequency = (10000.0 ** -(np.arange(0, width, 2) / width)).astype(np.float32)
    angle = jnp.asarray(distance)[..., None] * frequency
    return jnp.concatenate([jnp.sin(angle), jnp.cos(angle)], axis=-1)


def shift(x: Array, keys: int) -> Array:
    """[..., i, length - i + j] at [..., i, j]: from scores by distance [..., length, keys + length] to scores by key [..., length, keys].

    Row i of the result begins `length - i` places further on, so all rows lie one place short of a row apart in memory: one slice, no
    gather (Dai et al. 2019, appendix B).
    """
    *outer, length, columns = x.shape
    flat = x.reshape(*outer, length * columns)[..., length:]
    return flat.reshape(*outer, length, columns - 1)[..., :keys]


@functools.partial(jax.custom_vjp, nondiff_argnums=(2,))
def windows(x: Array, start: Array, size: int) -> Array:
    """[b, h, q, start[b, q] + j] at [b, h, q, j]: `size` neighbours of each row of x [batch, heads, queries, columns]; start: i32
    [batch, queries], 0 to columns - size. Each row has one window, so the gradient is windows too, not a scatter that adds."""
    # A slice for each query, all heads at once: an index for every element would be larger than what it picks.
    one = lambda x, start: jax.lax.dynamic_slice_in_dim(x, start, size, axis=1)
    return jax.vmap(jax.vmap(one, in_axes=(1, 0), out_axes=1))(x, start)


def _windows_forward(x: Array, start: Array, size: int) -> tuple[Array, tuple[Array, int]]:
    return windows(x, start, size), (start, x.shape[-1])


def _windows_backward(size: int, kept: tuple[Array, int], slope: Array) -> tuple[Array, None]:
    start, columns = kept
    zeros = columns - size
    return windows(jnp.pad(slope, ((0, 0), (0, 0), (0, 0), (zeros, zeros))), zeros - start, columns), None


windows.defvjp(_windows_forward, _windows_backward)


@functools.partial(jax.custom_vjp, nondiff_argnums=(4,))
def weigh(content: Array, position: Array, segment: Array, sight: Sight, scale: float) -> Array:
    """softmax((content + position + segment where the key is of another segment) · scale) over the keys that are seen; uniform over all
    keys where none is.

    content, position and the result: [batch, heads, queries, keys]; segment: [batch, heads, queries]; all in the compute dtype, the sum
    and the softmax in float32. The weights are kept for the backward pass as they are given, and its gradient of the scores is rounded
    once, before all that reads it: with arrays of length squared, reading and writing is what costs.
    """
    dtype = content.dtype
    content, position, segment = (x.astype(jnp.float32) for x in (content, position, segment[..., None]))
    scores = (content + position + jnp.where(sight.other[:, None], segment, 0)) * scale
    return jax.nn.softmax(jnp.where(sight.sees[:, None], scores, HIDDEN), axis=-1).astype(dtype)


def _weigh_forward(content: Array, position: Array, segment: Array, sight: Sight, scale: float) -> tuple[Array, tuple[Array, Sight]]:
    weights = weigh(content, position, segment, sight, scale)
    return weights, (weights, sight)


def _weigh_backward(scale: float, kept: tuple[Array, Sight], slope: Array) -> tuple[Array, Array, Array, None]:
    weights, sight = kept
    w, slope = weights.astype(jnp.float32), slope.astype(jnp.float32)
    scores = w * (slope - jnp.sum(w * slope, axis=-1, keepdims=True)) * scale
    # The barrier keeps the compiler from writing the wider float32 array too, for the sum alone.
    scores = jax.lax.optimization_barrier(jnp.where(sight.sees[:, None], scores, 0).astype(weights.dtype))
    segment = jnp.sum(jnp.where(sight.other[:, None], scores, 0), axis=-1, dtype=jnp.float32)
    return scores, scores, segment.astype(weights.dtype), None


weigh.defvjp(_weigh_forward, _weigh_backward)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Terms:
    """The parameters of the score: the biases that are added to the queries of its three products, [heads, d] each, and labels, [2, heads,
    d], the keys of `same segment` and `another segment`."""

    content: Array
    position: Array
    segment: Array
    labels: Array


@jax.named_scope("attend")  # the name that bench/kinds.py looks for
def relative_attend(
    q: Array,
    k: Array,
    v: Array,
    r: Array,
    terms: Terms,
    sight: Sight,
    rate: float,
    noise: Keys | None,
    layer: int | Array,
    backend: str,
) -> Array:
    """softmax of the three products over sqrt(d), times v, with dropout on the weights (zihangdai/xlnet modeling.py, rel_attn_core).

    q: [batch, queries, heads, d]; k, v: [batch, keys, heads, d]; r: the keys of distances, [batch, keys + length, heads, d]. The result
    is like q. Products are in the compute dtype, their sum and the softmax float32. A query that sees no key gets exactly 0.
    backend: `xla` or `pallas`, as `attend.resolve` answers. Raises ValueError for another one.
    """
    if backend not in ("xla", "pallas"):
        raise ValueError(f"attention backend {backend!r} has no relative positions: pass the answer of layers.attend.resolve")
    if backend == "pallas":
        return _pallas(q + terms.content, k, v, *_scores(q, r, terms), sight, rate, noise, layer)
    weights = _weights(q, k, r, terms, sight)
    mixed = jnp.einsum("bhqk,bkhd->bqhd", dropout(weights, rate, noise, "attention_weights", layer), v)
    return where_seen(mixed, sight.sees[:, None])


def relative_weights(q: Array, k: Array, r: Array, terms: Terms, sight: Sight) -> Array:
    """float32 [batch, heads, queries, keys]: the softmax of `relative_attend`, without dropout, and 0 for a key that is not seen."""
    return jnp.where(sight.sees[:, None], _weights(q, k, r, terms, sight).astype(jnp.float32), 0)


def _weights(q: Array, k: Array, r: Array, terms: Terms, sight: Sight) -> Array:
    """As `weigh`."""
    content = jnp.einsum("bqhd,bkhd->bhqk", q + terms.content, k)
    distances, segment = _scores(q, r, terms)
    return weigh(content, _position(distances, sight, k.shape[1]), segment, sight, q.shape[-1] ** -0.5)


def _scores(q: Array, r: Array, terms: Terms) -> tuple[Array, Array]:
    """The scores by distance [batch, heads, queries, keys + length], and of a key of another segment [batch, heads, queries]."""
    distances = jnp.einsum("bqhd,brhd->bhqr", q + terms.position, r)
    # A term that both labels share shifts all scores of a query equally, which does not change a softmax: only their difference matters.
    return distances, jnp.einsum("bqhd,hd->bhq", q + terms.segment, terms.labels[1] - terms.labels[0])


def _position(scores: Array, sight: Sight, keys: int) -> Array:
    """The scores by distance [batch, heads, queries, keys + length] by key, [batch, heads, queries, keys]."""
    if sight.at is None:
        return shift(scores, keys)
    return windows(scores, scores.shape[-1] - keys - sight.at, keys)


def _pallas(
    q: Array, k: Array, v: Array, distances: Array, segment: Array, sight: Sight, rate: float, noise: Keys | None, layer: int | Array
) -> Array:
    # JAX calls Pallas's Triton backend experimental: a version without it must still train elsewhere.
    from jaxenc.layers.fused_relative import fused_relative
    from jaxenc.layers.fused_relative_kernels import OTHER, SAME, Scores, Spec
    from jaxenc.layers.fused_tiles import relative_tiles

    rate = 0.0 if noise is None else rate
    words = jnp.stack(noise.words("attention_weights", layer), axis=1) if rate else None
    (batch, queries), keys = q.shape[:2], k.shape[1]
    pairs = jnp.where(sight.sees, jnp.where(sight.other, OTHER, SAME), 0).astype(jnp.int8)
    pairs = jnp.broadcast_to(pairs, (batch, queries, keys)).reshape(batch, -1)
    spec = Spec(distances.shape[-1] - keys, rate, relative_tiles(queries, keys, q.shape[-1], q.dtype))
    return fused_relative(q, k, v, Scores(distances, segment, pairs, sight.at, words, None), spec)
