"""The inputs of two streams that share their weights, and a layer of both (XLNet, Yang et al. 2019, section 2.3)."""

import functools

import jax
import jax.numpy as jnp
from flax import linen as nn
from jax import Array

from jaxenc.data.vocabulary import padded
from jaxenc.execution import Execution
from jaxenc.layers.attention_maps import hand_out
from jaxenc.layers.dense import Kernel
from jaxenc.layers.dropout import dropout
from jaxenc.layers.embed import Embed
from jaxenc.layers.feed_forward import FeedForward
from jaxenc.layers.frame import BlockSpec
from jaxenc.layers.initializers import glorot_uniform, leading_rows
from jaxenc.layers.norm import LayerNorm
from jaxenc.layers.relative import Context, Sight, Terms, relative_attend, relative_weights
from jaxenc.rng import Keys

# (content, query): hidden states [batch, length, width] and [batch, predictions, width], the second None where nothing is predicted.
StreamPair = tuple[Array, Array | None]


class StreamEmbeddings(nn.Module):
    """The inputs of both streams: token vectors, and one learned vector for every place that is predicted."""

    vocab_size: int
    spec: BlockSpec
    execution: Execution

    @nn.compact
    def __call__(self, tokens: Array, at: Array | None, noise: Keys | None) -> tuple[StreamPair, Array]:
        """tokens i32 [batch, length], at i32 [batch, predictions] to [..., width] in the compute dtype, and the token table."""
        spec, policy = self.spec, self.execution.policy
        rows = leading_rows(spec.initializer, self.vocab_size)
        table = Embed(padded(self.vocab_size), spec.width, ("vocab", "table_embed"), rows, self.execution, name="token")
        mask = self.param("mask", nn.with_logical_partitioning(_glorot_row, ("norm",)), (spec.width,), policy.params)
        content = dropout(table(tokens).astype(policy.compute), spec.dropout, noise, "embeddings")
        if at is None:
            return (content, None), table.table()
        query = jnp.broadcast_to(mask.astype(policy.compute), (*at.shape, spec.width))
        return (content, dropout(query, spec.dropout, of_query(noise), "embeddings")), table.table()


def _glorot_row(key: Array, shape: tuple[int], dtype: jnp.dtype) -> Array:
    """Glorot's uniform draws of a table of one row: zihangdai/xlnet names no initializer for mask_emb [1, 1, width]."""
    return glorot_uniform(key, (1, *shape), dtype)[0]


class RelativeAttention(nn.Module):
    """norm(x + dropout(output(relative_attend(x, ...)))) of both streams, whose keys and values are the content's and the memory's.

    No kernel has a bias.
    """

    spec: BlockSpec
    execution: Execution

    @nn.compact
    def __call__(self, pair: StreamPair, context: Context, noise: Keys | None, layer: int | Array, memory: Array | None) -> StreamPair:
        """Both streams, in the compute dtype. memory: the input of this layer at the places before the row, [batch, memory, width], or
        None."""
        spec, (content, query) = self.spec, pair
        q, k, v, query_q = self._project(content, query, memory)
        r, terms = self._distances(context), self._terms()
        output, norm = self._kernel("output", ("heads", "embed")), LayerNorm(spec.norm_epsilon, self.execution, spec.biases, name="norm")

        def one(x: Array, q: Array, k: Array, v: Array, sight: Sight, noise: Keys | None) -> Array:
            rule = functools.partial(relative_attend, rate=spec.attention_dropout, backend=self.execution.attention)
            if self.execution.remat == "attention":
                # The scores grow with the square of the length and are cheap to recompute.
                rule = jax.checkpoint(rule, prevent_cse=not self.execution.scan)
            mixed = rule(q, k, v, r, terms, sight, noise=noise, layer=layer).reshape(x.shape)
            return norm(x + dropout(mixed @ output, spec.dropout, noise, "attention_output", layer))

        hand_out(self, lambda: relative_weights(q, k, r, terms, context.content))
        content = one(content, q, k, v, context.content, noise)
        if query is None:
            return content, None
        # The barrier keeps the compiler from computing the scores of both streams as one product and then copying them apart.
        k, v = jax.lax.optimization_barrier((k, v))
        return content, one(query, query_q, k, v, context.query, of_query(noise))

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

        They are broadcast to every row even where all rows have the same: one product for all rows would give these scores another memory
        layout than the scores of the content, and these are the largest arrays of a step.
        """
        r = self._split(context.distances @ self._kernel("relative", ("embed", "heads")))
        if context.backward is None:
            return jnp.broadcast_to(r, (len(context.content.other), *r.shape[1:]))
        return jnp.where(context.backward[:, None, None, None], r[1], r[0])

    def _terms(self) -> Terms:
        spec, policy = self.spec, self.execution.policy
        start = nn.with_logical_partitioning(spec.initializer, ("heads",))
        biases = [self.param(f"{name}_bias", start, (spec.width,), policy.params) for name in ("content", "position", "segment")]
        labels = Embed(2, spec.width, (None, "heads"), spec.initializer, self.execution, name="segment").table()
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
    def __call__(
        self, pair: StreamPair, context: Context, noise: Keys | None, layer: int | Array, memory: Array | None = None
    ) -> StreamPair:
        """(content [batch, length, width], query [batch, predictions, width] or None) to the same in the compute dtype."""
        spec = self.spec
        if spec.norm != "post":
            raise ValueError(f"a layer of two streams is post-LN only, and its norm is {spec.norm!r}")
        attention = RelativeAttention(spec, self.execution, name="attention")
        feed_forward = FeedForward(spec, self.execution, inner_dropout=spec.dropout, name="feed_forward")
        content, query = attention(pair, context, noise, layer, memory)
        return feed_forward(content, noise, layer), None if query is None else feed_forward(query, of_query(noise), layer)


def of_query(noise: Keys | None) -> Keys | None:
    """The keys of the query stream's dropout, independent of those of the content stream."""
    return noise and noise.apart("query")
