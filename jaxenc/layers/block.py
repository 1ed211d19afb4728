"""One transformer layer."""

from flax import linen as nn
from jax import Array

from jaxenc.execution import Execution
from jaxenc.layers.attend import Visible
from jaxenc.layers.attention import SelfAttention
from jaxenc.layers.feed_forward import FeedForward
from jaxenc.layers.frame import BlockSpec
from jaxenc.rng import Keys


class Block(nn.Module):
    """Self-attention, then the feed-forward layer (google-research/bert modeling.py, transformer_model)."""

    spec: BlockSpec
    execution: Execution

    @nn.compact
    def __call__(self, x: Array, visible: Visible, noise: Keys | None, layer: int | Array) -> Array:
        """[batch, length, width] to the same shape in the compute dtype; layer: the number that dropout masks depend on."""
        x = SelfAttention(self.spec, self.execution, name="attention")(x, visible, noise, layer)
        return FeedForward(self.spec, self.execution, name="feed_forward")(x, noise, layer)
