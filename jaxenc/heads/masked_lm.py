"""The masked-token head, tied to the token table."""

from flax import linen as nn
from jax import Array

from jaxenc.execution import Execution
from jaxenc.heads.contract import Head, Setting, likeliest
from jaxenc.layers import initializers
from jaxenc.layers.activation import activate
from jaxenc.layers.dense import Dense
from jaxenc.layers.initializers import Initializer
from jaxenc.layers.norm import LayerNorm
from jaxenc.layers.softmax import vocabulary_logits


class MlmHead(nn.Module):
    """Dense, activation, LayerNorm, then the product with the token table (google-research/bert run_pretraining.py, get_masked_lm_output).

    The table is the encoder's and is passed in. The logits of its rows from `pieces` on are `softmax.NEVER`.
    """

    pieces: int
    width: int
    activation: str
    norm_epsilon: float
    init_kernel: Initializer
    execution: Execution

    @nn.compact
    def __call__(self, hidden: Array, table: Array) -> Array:
        """hidden [..., width] and table [padded, width] to logits [..., padded] in the logits dtype (float32)."""
        policy = self.execution.policy
        hidden = Dense(self.width, ("embed", "norm"), self.init_kernel, self.execution, name="dense")(hidden)
        hidden = LayerNorm(self.norm_epsilon, self.execution, name="norm")(activate(self.activation, hidden))
        bias = self.param("bias", nn.with_logical_partitioning(initializers.zeros, ("vocab",)), table.shape[:1], policy.params)
        return vocabulary_logits(hidden, table, bias, self.pieces, policy)


def _module(setting: Setting) -> MlmHead:
    layer = (setting.activation, setting.norm_epsilon, setting.initializer)
    return MlmHead(setting.pieces, setting.table_width, *layer, setting.execution)


MASKED_LM = Head(name="mlm", role="vocabulary", site=33, module=_module, prediction=likeliest, vocabulary=("bias",))
