"""The vector of the first token of a text."""

from flax import linen as nn
from jax import Array

from jaxenc.execution import Execution
from jaxenc.heads.contract import Head
from jaxenc.layers.activation import activate
from jaxenc.layers.dense import Dense
from jaxenc.layers.initializers import Initializer

# The activation of google-research/bert's pooler.
TANH = "tanh"


class Pooler(nn.Module):
    """activation(dense(hidden[:, 0])). BERT's activation is `tanh` (google-research/bert modeling.py); the classification head that
    transformers gives ELECTRA has `gelu_erf`."""

    width: int
    activation: str
    init_kernel: Initializer
    execution: Execution

    @nn.compact
    def __call__(self, hidden: Array, segments: Array) -> Array:
        """[batch, length, width] to [batch, width] in the compute dtype. The first token is never padding, so `segments` is not read."""
        pooled = Dense(self.width, ("embed", "norm"), self.init_kernel, self.execution, name="dense")(hidden[:, 0])
        return activate(self.activation, pooled)


POOLER = Head(
    name="pooler",
    role="pools",
    site=34,
    module=lambda setting: Pooler(setting.width, setting.pooler_activation, setting.initializer, setting.execution),
    reads_first=True,
)
