"""What reads the features of a frozen encoder: one layer or a learned mix of all, dropout, a BiLSTM, and a head."""

import jax.numpy as jnp
from flax import linen as nn
from jax import Array

from jaxenc.execution import Execution
from jaxenc.layers.bilstm import BiLstm
from jaxenc.layers.dropout import dropout
from jaxenc.layers.scalar_mix import ScalarMix
from jaxenc.rng import Keys

# The value of `layer` that stands for a learned mix of all layers.
MIX = -1


class Probe(nn.Module):
    """A head of the role `text` or `tokens` on the hidden states of all layers.

    layer: the one that is read, 0 for the input of the first layer; MIX for a `ScalarMix` of all, with `layer_norm` as there. dropout: rate
    on the features and on the outputs of each BiLSTM. cells: of each direction of a BiLSTM; depth: how many BiLSTMs follow each other, 0
    for none. pools: whether the head reads one vector a text, the mean over the tokens of the row, special tokens included. head: its
    module.

    Parameters: `mix`, `bilstm_0`, ..., `head`, those that there are.
    """

    layer: int
    layer_norm: bool
    dropout: float
    cells: int
    depth: int
    pools: bool
    head: nn.Module
    execution: Execution

    @nn.compact
    def __call__(self, hidden: Array, segments: Array, noise: Keys | None) -> Array:
        """The head's logits in its dtype, [batch, ...] or [batch, length, ...].

        hidden: [layers + 1, batch, length, width]; segments: i32 [batch, length], 0 = padding, at any place; noise: the keys of dropout,
        None for evaluation.
        """
        real = segments > 0
        x = ScalarMix(self.layer_norm, name="mix")(hidden, real) if self.layer == MIX else hidden[self.layer]
        x = dropout(x, self.dropout, noise, "features")
        for number in range(self.depth):
            x = BiLstm(self.cells, self.execution, name=f"bilstm_{number}")(x, real)
            x = dropout(x, self.dropout, noise, "features", number + 1)
        if self.pools:
            x = jnp.where(real[..., None], x, 0).sum(axis=1) / jnp.maximum(real.sum(axis=1), 1)[:, None]
        return self.head(x.astype(self.execution.policy.compute))
