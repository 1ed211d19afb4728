"""Multi-head self-attention with its residual connection."""

import functools

import jax
from flax import linen as nn
from jax import Array

from jaxenc.execution import Execution
from jaxenc.layers.attend import attend, attention_weights
from jaxenc.layers.attention_maps import hand_out
from jaxenc.layers.cache import Cache
from jaxenc.layers.dense import Dense, together
from jaxenc.layers.dropout import dropout
from jaxenc.layers.frame import BlockSpec, residual_aux
from jaxenc.layers.norm import LayerNorm
from jaxenc.layers.visible import Visible
from jaxenc.rng import Keys


class SelfAttention(nn.Module):
    """dropout(output(attend(query, key, value))) in its `residual` frame."""

    spec: BlockSpec
    execution: Execution

    @nn.compact
    def __call__(
        self, x: Array, visible: Visible, noise: Keys | None, layer: int | Array, cache: Cache | None = None
    ) -> Array | tuple[Array, Cache]:
        """[batch, length, width] to the same shape in the compute dtype.

        cache: of earlier tokens, which x continues: its keys and values are written to the cache at `visible.places`, its queries attend to
        the cache as `visible` allows, and the result is (output, cache).
        """
        spec = self.spec

        def sublayer(x: Array) -> tuple[Array, Cache | None]:
            q, k, v = self._project(x)
            held = cache
            if held is not None:
                held = held.written(k, v, visible.places)
                k, v = held.keys, held.values
            hand_out(self, lambda: attention_weights(q, k, visible))
            rule = functools.partial(attend, execution=self.execution, rate=spec.attention_dropout)
            if self.execution.remat == "attention":
                # The scores grow with the square of the length and are cheap to recompute.
                rule = jax.checkpoint(rule, prevent_cse=not self.execution.scan)
            mixed = rule(q, k, v, visible, noise=noise, layer=layer).reshape(x.shape)
            return dropout(self._dense(("heads", "embed"), "output")(mixed), spec.dropout, noise, "attention_output", layer), held

        norm = LayerNorm(spec.norm_epsilon, self.execution, spec.biases, name="norm")
        out, held = residual_aux(spec.norm, norm, sublayer, x)
        return out if held is None else (out, held)

    def _project(self, x: Array) -> list[Array]:
        """q, k, v, each [batch, length, heads, width / heads]."""
        parts = ("query", "key", "value")
        product = together(x, [self._dense(("embed", "heads"), name) for name in parts])
        split = (*x.shape[:-1], self.spec.heads, self.spec.width // self.spec.heads)
        return [product[:, :, part].reshape(split) for part in range(len(parts))]

    def _dense(self, names: tuple[str, str], name: str) -> Dense:
        return Dense(self.spec.width, names, self.spec.initializer, self.execution, use_bias=self.spec.biases, name=name)
