"""Logits over the vocabulary, whose tables have padding rows, and a softmax layer with its own table."""

import jax.numpy as jnp
from flax import linen as nn
from jax import Array

from jaxenc.data.vocabulary import padded
from jaxenc.execution import Execution
from jaxenc.layers import initializers
from jaxenc.layers.initializers import Normal, leading_rows
from jaxenc.layers.product import wide_product
from jaxenc.precision import Policy

# The logit of a row that only pads the table: finite, so that no loss or gradient computes infinity minus infinity.
NEVER = -1e30


def vocabulary_logits(hidden: Array, table: Array, bias: Array | None, vocab_size: int, policy: Policy) -> Array:
    """hidden · tableᵀ + bias, [..., padded] in the logits dtype, NEVER for the padding rows of the table.

    hidden: [..., width] in the compute dtype; table: [padded, width]; bias: [padded] or None; the first `vocab_size` rows are true.
    """
    logits = wide_product("...w,vw->...v", hidden, table.astype(policy.compute)).astype(policy.logits)
    # Padding rows of the table are zeros, so a bias of NEVER makes their logits NEVER. Adding one row is cheaper than masking all logits.
    never = jnp.where(jnp.arange(len(table)) < vocab_size, 0 if bias is None else bias, NEVER)
    return logits + never.astype(policy.logits)


class Softmax(nn.Module):
    """A softmax layer with its own table and a bias: ELMo's, which both directions share (allenai/bilm-tf training.py, _build_loss).

    Rows of the table from `vocab_size` on are padding.
    """

    vocab_size: int
    width: int
    execution: Execution

    @nn.compact
    def rows(self) -> tuple[Array, Array]:
        """(table [padded, width], bias [padded]) in float32, for callers that need some rows only."""
        policy, rows = self.execution.policy, padded(self.vocab_size)
        init = nn.with_logical_partitioning(leading_rows(Normal(self.width**-0.5), self.vocab_size), ("vocab", "table_embed"))
        table = self.param("table", init, (rows, self.width), policy.params)
        return table, self.param("bias", nn.with_logical_partitioning(initializers.zeros, ("vocab",)), (rows,), policy.params)

    def __call__(self, hidden: Array) -> Array:
        """[..., width] to logits [..., padded] in the logits dtype (float32), NEVER for padding rows."""
        policy = self.execution.policy
        return vocabulary_logits(hidden.astype(policy.compute), *self.rows(), self.vocab_size, policy)
