"""Multi-head self-attention with its residual connection."""

import functools

import jax
import jax.numpy as jnp
from flax import linen as nn
from jax import Array

from jaxenc.execution import Execution
from jaxenc.layers.attend import Visible, attend
from jaxenc.layers.dense import Dense
from jaxenc.layers.dropout import dropout
from jaxenc.layers.initializers import Initializer
from jaxenc.layers.norm import LayerNorm
from jaxenc.rng import Keys


class SelfAttention(nn.Module):
    """norm(x + dropout(output(attend(query, key, value)))): the normalisation follows the sum, as in BERT (post-LN)."""

    width: int
    heads: int
    dropout: float
    attention_dropout: float
    norm_epsilon: float
    init_kernel: Initializer
    execution: Execution

    @nn.compact
    def __call__(self, x: Array, visible: Visible, noise: Keys | None, layer: int | Array) -> Array:
        """[batch, length, width] to the same shape in the compute dtype."""
        q, k, v = self._project(x)
        rule = functools.partial(attend, execution=self.execution, rate=self.attention_dropout)
        if self.execution.remat == "attention":
            # The scores grow with length squared and are cheap to compute again.
            rule = jax.checkpoint(rule, prevent_cse=not self.execution.scan)
        mixed = rule(q, k, v, visible, noise=noise, layer=layer).reshape(x.shape)
        out = Dense(self.width, ("heads", "embed"), self.init_kernel, self.execution, name="output")(mixed)
        x = x + dropout(out, self.dropout, noise, "attention_output", layer)
        return LayerNorm(self.norm_epsilon, self.execution, name="norm")(x)

    def _project(self, x: Array) -> list[Array]:
        """q, k, v, each [batch, length, heads, width / heads].

        Three kernels, one product: faster than three products (measured on an H200). They are stacked on an axis between in and
        out, so a split of `out` over heads stays a split.
        """
        parts = [Dense(self.width, ("embed", "heads"), self.init_kernel, self.execution, name=n) for n in ("query", "key", "value")]
        kernels, biases = zip(*(part.weights(x.shape[-1]) for part in parts), strict=True)
        product = jnp.einsum("blw,wco->blco", x, jnp.stack(kernels, axis=1)) + jnp.stack(biases)
        split = (*x.shape[:-1], self.heads, self.width // self.heads)
        return [product[:, :, part].reshape(split) for part in range(3)]
