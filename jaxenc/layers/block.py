"""One transformer layer."""

from flax import linen as nn
from jax import Array

from jaxenc.execution import Execution
from jaxenc.layers.attention import SelfAttention
from jaxenc.layers.cache import Cache
from jaxenc.layers.feed_forward import FeedForward
from jaxenc.layers.frame import BlockSpec
from jaxenc.layers.visible import Visible
from jaxenc.rng import Keys


class Block(nn.Module):
    """Self-attention, then the feed-forward layer (google-research/bert modeling.py, transformer_model)."""

    spec: BlockSpec
    execution: Execution

    @nn.compact
    def __call__(
        self, x: Array, visible: Visible, noise: Keys | None, layer: int | Array, cache: Cache | None = None
    ) -> Array | tuple[Array, Cache]:
        """[batch, length, width] to the same shape in the compute dtype; layer: the number that dropout masks depend on. cache: as in
        `SelfAttention`; the result is then (output, cache)."""
        attention = SelfAttention(self.spec, self.execution, name="attention")
        feed_forward = FeedForward(self.spec, self.execution, name="feed_forward")
        if cache is None:
            return feed_forward(attention(x, visible, noise, layer), noise, layer)
        x, cache = attention(x, visible, noise, layer, cache)
        return feed_forward(x, noise, layer), cache
