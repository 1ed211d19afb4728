"""A language-model head with a bias and no layers, tied to the token table."""

from flax import linen as nn
from jax import Array

from jaxenc.execution import Execution
from jaxenc.heads.contract import Head, likeliest
from jaxenc.layers import initializers
from jaxenc.layers.softmax import vocabulary_logits


class LmHead(nn.Module):
    """hidden · tableᵀ + bias (zihangdai/xlnet modeling.py, lm_loss). The table is the encoder's and is passed in, as for `MlmHead`."""

    pieces: int
    execution: Execution

    @nn.compact
    def __call__(self, hidden: Array, table: Array) -> Array:
        """hidden [..., width] and table [padded, width] to logits [..., padded] in the logits dtype (float32)."""
        policy = self.execution.policy
        bias = self.param("bias", nn.with_logical_partitioning(initializers.zeros, ("vocab",)), table.shape[:1], policy.params)
        return vocabulary_logits(hidden.astype(policy.compute), table, bias, self.pieces, policy)


LM = Head(
    name="lm",
    role="vocabulary",
    site=44,
    module=lambda setting: LmHead(setting.pieces, setting.execution),
    prediction=likeliest,
    vocabulary=("bias",),
)
