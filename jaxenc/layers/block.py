"""One transformer layer."""

import dataclasses

from flax import linen as nn
from jax import Array

from jaxenc.execution import Execution
from jaxenc.layers.attend import Visible
from jaxenc.layers.attention import SelfAttention
from jaxenc.layers.feed_forward import FeedForward
from jaxenc.layers.initializers import Initializer
from jaxenc.rng import Keys


@dataclasses.dataclass(frozen=True)
class BlockSpec:
    """The numbers of one transformer layer; a model's config fills them in (`models/bert.py` documents each)."""

    width: int
    heads: int
    feed_forward: int
    activation: str
    norm_epsilon: float
    dropout: float
    attention_dropout: float
    initializer: Initializer


class Block(nn.Module):
    """Self-attention, then the feed-forward layer (google-research/bert modeling.py, transformer_model)."""

    spec: BlockSpec
    execution: Execution

    @nn.compact
    def __call__(self, x: Array, visible: Visible, noise: Keys | None, layer: int | Array) -> Array:
        """[batch, length, width] to the same shape in the compute dtype; layer: the number that dropout masks depend on."""
        spec, init = self.spec, self.spec.initializer
        attention = SelfAttention(
            spec.width, spec.heads, spec.dropout, spec.attention_dropout, spec.norm_epsilon, init, self.execution, name="attention"
        )
        feed_forward = FeedForward(
            spec.width, spec.feed_forward, spec.activation, spec.dropout, spec.norm_epsilon, init, self.execution, name="feed_forward"
        )
        return feed_forward(attention(x, visible, noise, layer), noise, layer)
