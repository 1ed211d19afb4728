"""The replaced-token head (Clark et al. 2020)."""

import jax
from flax import linen as nn
from jax import Array

from jaxenc.execution import Execution
from jaxenc.heads.contract import Head
from jaxenc.layers import initializers
from jaxenc.layers.activation import activate
from jaxenc.layers.dense import Dense
from jaxenc.layers.initializers import Initializer


class RtdHead(nn.Module):
    """Whether each token was replaced: dense, activation, dense to one logit (google-research/electra run_pretraining.py,
    _get_discriminator_output, which initialises the last layer by Glorot's uniform rule)."""

    width: int
    activation: str
    init_kernel: Initializer
    execution: Execution

    @nn.compact
    def __call__(self, hidden: Array) -> Array:
        """[..., width] to logits [...] in the logits dtype (float32); positive means replaced."""
        hidden = Dense(self.width, ("embed", "norm"), self.init_kernel, self.execution, name="dense")(hidden)
        hidden = activate(self.activation, hidden)
        output = Dense(1, ("embed", None), initializers.glorot_uniform, self.execution, name="output")
        return output(hidden)[..., 0].astype(self.execution.policy.logits)


# Its prediction is the probability that a token was replaced.
REPLACED = Head(
    name="rtd",
    role="tokens",
    site=41,
    module=lambda setting: RtdHead(setting.width, setting.activation, setting.initializer, setting.execution),
    prediction=jax.nn.sigmoid,
)
