"""The position-wise feed-forward layer with its residual connection."""

from flax import linen as nn
from jax import Array

from jaxenc.execution import Execution
from jaxenc.layers.activation import activate
from jaxenc.layers.dense import Dense, together
from jaxenc.layers.dropout import dropout
from jaxenc.layers.frame import BlockSpec, residual
from jaxenc.layers.norm import LayerNorm
from jaxenc.rng import Keys


class FeedForward(nn.Module):
    """dropout(down(activation(up(x)))), or, gated, dropout(down(activation(gate(x)) · up(x))), in its `residual` frame.

    inner_dropout: rate of the dropout on the input of `down`, as in XLNet (zihangdai/xlnet modeling.py, positionwise_ffn); BERT has none.
    """

    spec: BlockSpec
    execution: Execution
    inner_dropout: float = 0.0

    @nn.compact
    def __call__(self, x: Array, noise: Keys | None, layer: int | Array) -> Array:
        """[batch, length, width] to the same shape in the compute dtype."""
        spec = self.spec

        def sublayer(x: Array) -> Array:
            hidden = dropout(self._inner(x), self.inner_dropout, noise, "feed_forward_inner", layer)
            out = self._dense(spec.width, ("mlp", "embed"), "down")(hidden)
            return dropout(out, spec.dropout, noise, "feed_forward_output", layer)

        return residual(spec.norm, LayerNorm(spec.norm_epsilon, self.execution, spec.biases, name="norm"), sublayer, x)

    def _inner(self, x: Array) -> Array:
        """The input of `down`, [batch, length, feed_forward]."""
        spec = self.spec
        up = self._dense(spec.feed_forward, ("embed", "mlp"), "up")
        if not spec.gated:
            return activate(spec.activation, up(x))
        both = together(x, [self._dense(spec.feed_forward, ("embed", "mlp"), "gate"), up])
        return activate(spec.activation, both[:, :, 0]) * both[:, :, 1]

    def _dense(self, features: int, names: tuple[str, str], name: str) -> Dense:
        return Dense(features, names, self.spec.initializer, self.execution, use_bias=self.spec.biases, name=name)
