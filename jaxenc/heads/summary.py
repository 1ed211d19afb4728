"""The vector of the last token of a text, after a dense layer."""

from flax import linen as nn
from jax import Array

from jaxenc.execution import Execution
from jaxenc.heads.contract import Head
from jaxenc.heads.last_token import LastToken
from jaxenc.layers.activation import activate
from jaxenc.layers.dense import Dense
from jaxenc.layers.initializers import Initializer


class Summary(nn.Module):
    """tanh(dense(hidden of the last token)): XLNet's vector of a text (zihangdai/xlnet modeling.py, summarize_sequence, `last`)."""

    width: int
    init_kernel: Initializer
    execution: Execution

    @nn.compact
    def __call__(self, hidden: Array, segments: Array) -> Array:
        """[batch, length, width] to [batch, width] in the compute dtype. segments: i32 [batch, length], 0 = padding.

        The last token is that of `LastToken`; for texts padded on the left, as published, it is at the last place.
        """
        token = LastToken()(hidden, segments)
        return activate("tanh", Dense(self.width, ("embed", "norm"), self.init_kernel, self.execution, name="dense")(token))


SUMMARY = Head(
    name="summary",
    role="pools",
    site=45,
    module=lambda setting: Summary(setting.width, setting.initializer, setting.execution),
)
