"""The position-wise feed-forward layer with its residual connection."""

from flax import linen as nn
from jax import Array

from jaxenc.execution import Execution
from jaxenc.layers.activation import activate
from jaxenc.layers.dense import Dense
from jaxenc.layers.dropout import dropout
from jaxenc.layers.initializers import Initializer
from jaxenc.layers.norm import LayerNorm
from jaxenc.rng import Keys


class FeedForward(nn.Module):
    """norm(x + dropout(down(activation(up(x))))): the normalisation follows the sum, as in BERT (post-LN).

    inner_dropout: on what `down` reads, as in XLNet (zihangdai/xlnet modeling.py, positionwise_ffn); BERT has none.
    """

    width: int
    inner: int
    activation: str
    dropout: float
    norm_epsilon: float
    init_kernel: Initializer
    execution: Execution
    inner_dropout: float = 0.0

    @nn.compact
    def __call__(self, x: Array, noise: Keys | None, layer: int | Array) -> Array:
        """[batch, length, width] to the same shape in the compute dtype."""
        hidden = Dense(self.inner, ("embed", "mlp"), self.init_kernel, self.execution, name="up")(x)
        hidden = dropout(activate(self.activation, hidden), self.inner_dropout, noise, "feed_forward_inner", layer)
        out = Dense(self.width, ("mlp", "embed"), self.init_kernel, self.execution, name="down")(hidden)
        x = x + dropout(out, self.dropout, noise, "feed_forward_output", layer)
        return LayerNorm(self.norm_epsilon, self.execution, name="norm")(x)
