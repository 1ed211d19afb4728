"""The head of a causal model: the logits of the next token, from the token table alone."""

import jax.numpy as jnp
from flax import linen as nn
from jax import Array

from jaxenc.errors import UserError
from jaxenc.execution import Execution
from jaxenc.heads.contract import Head, Setting, likeliest
from jaxenc.layers.softmax import vocabulary_logits


class NextTokenHead(nn.Module):
    """hidden · tableᵀ, without parameters (openai/finetune-transformer-lm train.py, lm_logits; Radford et al. 2018). The table is the
    encoder's and is passed in."""

    pieces: int
    execution: Execution

    def __call__(self, hidden: Array, table: Array) -> Array:
        """hidden [..., width] and table [padded, width] to logits [..., padded] in the logits dtype (float32)."""
        policy = self.execution.policy
        return vocabulary_logits(hidden.astype(policy.compute), table, None, self.pieces, policy)


def targets(tokens: Array, segments: Array) -> tuple[Array, Array]:
    """(the token after each place, 1 where it belongs to the same segment and 0 elsewhere), both i32 [batch, length]: the last token of a
    text and padding predict nothing. tokens, segments: i32 [batch, length], segments 0 = padding."""
    here, after = segments[:, :-1], segments[:, 1:]
    counted = jnp.pad(((here > 0) & (here == after)).astype(jnp.int32), ((0, 0), (0, 1)))
    return jnp.pad(tokens[:, 1:], ((0, 0), (0, 1))), counted


def _module(setting: Setting) -> NextTokenHead:
    """The module. Raises UserError for a token table that is not as wide as the model."""
    if setting.width != setting.table_width:
        widths = f"the hidden states are {setting.width} wide and the token table {setting.table_width}"
        raise UserError(widths, "head next_token", "make them equal: this head has no layer between them")
    return NextTokenHead(setting.pieces, setting.execution)


NEXT_TOKEN = Head(name="next_token", role="vocabulary", site=49, module=_module, prediction=likeliest, targets=targets)
