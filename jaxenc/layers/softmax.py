"""Logits over the vocabulary, whose tables have rows without a piece, and a softmax layer with its own table."""

import jax.numpy as jnp
from flax import linen as nn
from jax import Array

from jaxenc.data.vocabulary import padded
from jaxenc.execution import Execution
from jaxenc.layers import initializers
from jaxenc.layers.initializers import Normal, leading_rows
from jaxenc.layers.product import wide_product
from jaxenc.precision import Policy

# The logit of a row without a piece: finite, so that no loss or gradient computes infinity minus infinity.
NEVER = -1e30


def vocabulary_logits(hidden: Array, table: Array, bias: Array | None, pieces: int, policy: Policy) -> Array:
    """hidden · tableᵀ + bias, [..., padded] in the logits dtype, NEVER for the rows of the table without a piece.

    hidden: [..., width] in the compute dtype; table: [padded, width]; bias: [padded] or None. The first `pieces` rows have a piece. The
    others are the spare rows of a published model, whatever their values, and rows of zeros that pad the table: here, and only here, both
    leave every softmax and every sample.
    """
    logits = wide_product("...w,vw->...v", hidden, table.astype(policy.compute)).astype(policy.logits)
    # A bias of NEVER absorbs any product below 1e22 in float32. Adding one row is cheaper than masking all logits.
    never = jnp.where(jnp.arange(len(table)) < pieces, 0 if bias is None else bias, NEVER)
    return logits + never.astype(policy.logits)


class Softmax(nn.Module):
    """A softmax layer with its own table and a bias: ELMo's, which both directions share (allenai/bilm-tf training.py, _build_loss).

    vocab_size: rows of its table, without padding; the first `pieces` are predicted.
    """

    vocab_size: int
    pieces: int
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
        """[..., width] to logits [..., padded] in the logits dtype (float32), NEVER for rows without a piece."""
        policy = self.execution.policy
        return vocabulary_logits(hidden.astype(policy.compute), *self.rows(), self.pieces, policy)
