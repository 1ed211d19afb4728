"""What sits on an encoder: pooler and summary, the heads that predict tokens, the replaced-token head and a classifier."""

import jax.numpy as jnp
from flax import linen as nn
from jax import Array

from jaxenc.data.vocabulary import padded
from jaxenc.execution import Execution
from jaxenc.layers import initializers
from jaxenc.layers.activation import activate
from jaxenc.layers.dense import Dense
from jaxenc.layers.initializers import Initializer, Normal, leading_rows
from jaxenc.layers.norm import LayerNorm
from jaxenc.layers.product import wide_product
from jaxenc.precision import Policy

# The logit of a row that only pads the table: finite, so that no loss or gradient meets infinity minus infinity.
NEVER = -1e30


class Pooler(nn.Module):
    """activation(dense(hidden[:, 0])): the vector of the first token. BERT's has `tanh` (google-research/bert modeling.py), the one in the
    classification head that transformers gives ELECTRA `gelu_erf`."""

    width: int
    activation: str
    init_kernel: Initializer
    execution: Execution

    @nn.compact
    def __call__(self, hidden: Array, segments: Array) -> Array:
        """As `Summary`; the first token is never padding, so `segments` is not read."""
        pooled = Dense(self.width, ("embed", "norm"), self.init_kernel, self.execution, name="dense")(hidden[:, 0])
        return activate(self.activation, pooled)


class Summary(nn.Module):
    """tanh(dense(hidden of the last token)): XLNet's vector of a text (zihangdai/xlnet modeling.py, summarize_sequence, `last`)."""

    width: int
    init_kernel: Initializer
    execution: Execution

    @nn.compact
    def __call__(self, hidden: Array, segments: Array) -> Array:
        """[batch, length, width] to [batch, width] in the compute dtype. segments: i32 [batch, length], 0 = padding.

        The last token is the last that is not padding: the last place of texts padded on the left, as published.
        """
        length = segments.shape[1]
        last = jnp.max(jnp.where(segments > 0, jnp.arange(length), 0), axis=1)
        token = jnp.take_along_axis(hidden, last[:, None, None], axis=1)[:, 0]
        return activate("tanh", Dense(self.width, ("embed", "norm"), self.init_kernel, self.execution, name="dense")(token))


def _tied(hidden: Array, table: Array, bias: Array, vocab_size: int, policy: Policy) -> Array:
    """hidden · tableᵀ + bias in the logits dtype, NEVER for the rows of the table that are padding."""
    logits = wide_product("...w,vw->...v", hidden, table.astype(policy.compute)).astype(policy.logits)
    return jnp.where(jnp.arange(len(table)) < vocab_size, logits + bias, NEVER)


class LmHead(nn.Module):
    """The product with the token table and a bias, and nothing else (zihangdai/xlnet modeling.py, lm_loss). The table is the encoder's
    own and is passed in, as for `MlmHead`."""

    vocab_size: int
    execution: Execution

    @nn.compact
    def __call__(self, hidden: Array, table: Array) -> Array:
        """hidden [..., width] and table [padded, width] to logits [..., padded] in the logits dtype (float32)."""
        policy = self.execution.policy
        bias = self.param("bias", nn.with_logical_partitioning(initializers.zeros, ("vocab",)), table.shape[:1], policy.params)
        return _tied(hidden.astype(policy.compute), table, bias, self.vocab_size, policy)


class Softmax(nn.Module):
    """A table of its own and a bias, and nothing else: ELMo's, which both directions share (allenai/bilm-tf training.py, _build_loss).

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
        return _tied(hidden.astype(policy.compute), *self.rows(), self.vocab_size, policy)


class MlmHead(nn.Module):
    """Dense, activation, LayerNorm, then the product with the token table (google-research/bert run_pretraining.py, get_masked_lm_output).

    The table is the encoder's own and is passed in. Its rows from `vocab_size` on are padding: their logits are NEVER.
    """

    vocab_size: int
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
        return _tied(hidden, table, bias, self.vocab_size, policy)


class Classifier(nn.Module):
    """One dense layer to `classes` logits: BERT's next-sentence head with 2 classes, 0 = next, 1 = random."""

    classes: int
    init_kernel: Initializer
    execution: Execution

    @nn.compact
    def __call__(self, pooled: Array) -> Array:
        """[..., width] to logits [..., classes] in the logits dtype (float32)."""
        dense = Dense(self.classes, ("embed", None), self.init_kernel, self.execution, name="dense")
        return dense(pooled).astype(self.execution.policy.logits)


class RtdHead(nn.Module):
    """Whether each token was replaced: dense, activation, dense to one logit (google-research/electra run_pretraining.py,
    _get_discriminator_output); the last layer starts from Glorot's uniform draws there."""

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
