"""Attention by relative position (Transformer-XL, Dai et al. 2019) for two streams that share their weights (XLNet, Yang et al. 2019)."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn
from jax import Array

from jaxenc.execution import Execution
from jaxenc.layers.attend import HIDDEN
from jaxenc.layers.block import BlockSpec
from jaxenc.layers.dense import Kernel
from jaxenc.layers.dropout import dropout
from jaxenc.layers.embed import Embed
from jaxenc.layers.feed_forward import FeedForward
from jaxenc.layers.norm import LayerNorm
from jaxenc.rng import Keys

# (content, query): hidden states [batch, length, width] and [batch, predictions, width], the second None where nothing is predicted.
Pair = tuple[Array, Array | None]


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Sight:
    """What the queries of one stream see of the keys, the memory's first and then the row's own.

    sees, other: bool [batch, queries, keys], whether a query sees a key, and whether that is of another segment. at: i32 [batch,
    queries], the place of each query in its row; None where query i is place i.
    """

    sees: Array
    other: Array
    at: Array | None = None


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Context:
    """What all layers read beside hidden states.

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


@functools.partial(jax.custom_vjp, nondiff_argnums=(1,))
def softmax(scores: Array, dtype: jnp.dtype) -> Array:
    """Over the last axis of float32 scores, computed in float32, then rounded to `dtype`, and so kept for the backward pass: with scores
    of length squared, what is read and written again is what costs."""
    return jax.nn.softmax(scores, axis=-1).astype(dtype)


def _softmax_forward(scores: Array, dtype: jnp.dtype) -> tuple[Array, Array]:
    weights = softmax(scores, dtype)
    return weights, weights


def _softmax_backward(dtype: jnp.dtype, weights: Array, slope: Array) -> tuple[Array]:
    weights, slope = weights.astype(jnp.float32), slope.astype(jnp.float32)
    return (weights * (slope - jnp.sum(weights * slope, axis=-1, keepdims=True)),)


softmax.defvjp(_softmax_forward, _softmax_backward)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Terms:
    """What the score adds to queries and keys, [heads, d] each: the biases of its three products, and labels, [2, heads, d], the keys of
    `same segment` and `another segment`."""

    content: Array
    position: Array
    segment: Array
    labels: Array


def attend(
    q: Array, k: Array, v: Array, r: Array, terms: Terms, sight: Sight, rate: float, noise: Keys | None, layer: int | Array
) -> Array:
    """softmax of the three products over sqrt(d), times v, with dropout on the weights (zihangdai/xlnet modeling.py, rel_attn_core).

    q: [batch, queries, heads, d]; k, v: [batch, keys, heads, d]; r: the keys of distances, [batch, keys + length, heads, d]. The result
    is like q. Products are in the compute dtype, their sum and the softmax float32. A query that sees nothing has the mean of all values.
    """
    content = jnp.einsum("bqhd,bkhd->bhqk", q + terms.content, k).astype(jnp.float32)
    position = _position(q + terms.position, r, sight, k.shape[1]).astype(jnp.float32)
    # What both labels share moves all scores of a query alike, which a softmax does not see: their difference is the whole term.
    other = jnp.einsum("bqhd,hd->bhq", q + terms.segment, terms.labels[1] - terms.labels[0]).astype(jnp.float32)
    scores = content + position + jnp.where(sight.other[:, None], other[..., None], 0)
    weights = softmax(jnp.where(sight.sees[:, None], scores * q.shape[-1] ** -0.5, HIDDEN), q.dtype)
    return jnp.einsum("bhqk,bkhd->bqhd", dropout(weights, rate, noise, "attention_weights", layer), v)


def _position(q: Array, r: Array, sight: Sight, keys: int) -> Array:
    """q · the key of the distance, [batch, heads, queries, keys] in the compute dtype."""
    scores = jnp.einsum("bqhd,brhd->bhqr", q, r)
    if sight.at is None:
        return shift(scores, keys)
    return windows(scores, r.shape[1] - keys - sight.at, keys)


class RelativeAttention(nn.Module):
    """norm(x + dropout(output(attend(x, ...)))) of both streams, whose keys and values are the content's and the memory's.

    No kernel has a bias.
    """

    spec: BlockSpec
    execution: Execution

    @nn.compact
    def __call__(self, pair: Pair, context: Context, noise: Keys | None, layer: int | Array, memory: Array | None) -> Pair:
        """Both streams, in the compute dtype. memory: what this layer read of the places before, [batch, memory, width], or None."""
        spec, (content, query) = self.spec, pair
        q, k, v, query_q = self._project(content, query, memory)
        r, terms = self._distances(context), self._terms()
        output, norm = self._kernel("output", ("heads", "embed")), LayerNorm(spec.norm_epsilon, self.execution, name="norm")

        def one(x: Array, q: Array, sight: Sight, noise: Keys | None) -> Array:
            rule = functools.partial(attend, rate=spec.attention_dropout)
            if self.execution.remat == "attention":
                # The scores grow with length squared and are cheap to compute again.
                rule = jax.checkpoint(rule, prevent_cse=not self.execution.scan)
            mixed = rule(q, k, v, r, terms, sight, noise=noise, layer=layer).reshape(x.shape)
            return norm(x + dropout(mixed @ output, spec.dropout, noise, "attention_output", layer))

        content = one(content, q, context.content, noise)
        return content, None if query is None else one(query, query_q, context.query, of_query(noise))

    def _project(self, content: Array, query: Array | None, memory: Array | None) -> tuple[Array, Array, Array, Array | None]:
        """q, k and v of the content, k and v of the memory before them, and q of the query stream."""
        kernels = [self._kernel(name, ("embed", "heads")) for name in ("query", "key", "value")]
        if memory is None:
            q, k, v = self._together(content, *kernels)
        else:
            (q,) = self._together(content, kernels[0])
            k, v = self._together(jnp.concatenate([memory, content], axis=1), *kernels[1:])
        return q, k, v, None if query is None else self._together(query, kernels[0])[0]

    def _together(self, x: Array, *kernels: Array) -> list[Array]:
        """x · each kernel, [batch, length, heads, d]: one product, as in `SelfAttention`."""
        product = jnp.einsum("blw,wco->blco", x, jnp.stack(kernels, axis=1))
        return [self._split(product[:, :, part]) for part in range(len(kernels))]

    def _split(self, x: Array) -> Array:
        return x.reshape(*x.shape[:-1], self.spec.heads, self.spec.width // self.spec.heads)

    def _distances(self, context: Context) -> Array:
        """The keys of the distances, [batch, keys + length, heads, d], computed once for all rows.

        They are laid out for every row even where all are the same: one product for all rows would have their scores in another order
        than those of the content, and these are the largest arrays of a step.
        """
        r = self._split(context.distances @ self._kernel("relative", ("embed", "heads")))
        if context.backward is None:
            return jnp.broadcast_to(r, (len(context.content.other), *r.shape[1:]))
        return jnp.where(context.backward[:, None, None, None], r[1], r[0])

    def _terms(self) -> Terms:
        spec, policy = self.spec, self.execution.policy
        start = nn.with_logical_partitioning(spec.initializer, ("heads",))
        biases = [self.param(f"{name}_bias", start, (spec.width,), policy.params) for name in ("content", "position", "segment")]
        labels = Embed(2, spec.width, (None, "heads"), spec.initializer, self.execution, name="segment")(jnp.arange(2))
        return Terms(*(self._split(leaf.astype(policy.compute)) for leaf in (*biases, labels)))

    def _kernel(self, name: str, axes: tuple[str, str]) -> Array:
        width = self.spec.width
        return Kernel(width, axes, self.spec.initializer, self.execution, name=name)(width)


class TwoStreamBlock(nn.Module):
    """Relative attention, then the feed-forward layer, of both streams with the same weights (zihangdai/xlnet modeling.py,
    transformer_xl); a layer of `layers.stack.Stack`."""

    spec: BlockSpec
    execution: Execution

    @nn.compact
    def __call__(self, pair: Pair, context: Context, noise: Keys | None, layer: int | Array, memory: Array | None = None) -> Pair:
        """(content [batch, length, width], query [batch, predictions, width] or None) to the same in the compute dtype."""
        spec = self.spec
        attention = RelativeAttention(spec, self.execution, name="attention")
        shape = (spec.width, spec.feed_forward, spec.activation, spec.dropout, spec.norm_epsilon, spec.initializer)
        feed_forward = FeedForward(*shape, self.execution, inner_dropout=spec.dropout, name="feed_forward")
        content, query = attention(pair, context, noise, layer, memory)
        return feed_forward(content, noise, layer), None if query is None else feed_forward(query, of_query(noise), layer)


def of_query(noise: Keys | None) -> Keys | None:
    """The query stream's own noise: it drops out what it likes, whatever the content stream does."""
    return noise and noise.apart("query")
