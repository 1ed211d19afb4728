"""A bidirectional LSTM layer (Schuster and Paliwal 1997; Graves and Schmidhuber 2005)."""

import jax
import jax.numpy as jnp
from flax import linen as nn
from jax import Array

from jaxenc.execution import Execution
from jaxenc.layers.lstm import Lstm
from jaxenc.layers.recurrence import LstmSpec, LstmState, line_on, side_by_side


class BiLstm(nn.Module):
    """One layer of two LSTMs of `cells` cells each, without projection and clipping: one reads a row forward, the other backward.

    Parameters: `forward` and `backward`, each as `Lstm`. The forget gate has a bias of 1 that is not stored.
    """

    cells: int
    execution: Execution

    @nn.compact
    def __call__(self, x: Array, real: Array) -> Array:
        """[batch, length, 2 · cells] in the compute dtype, forward beside backward, from [batch, length, in].

        real: bool [batch, length], False for padding, at any place: it changes no other output, and its own outputs are zeros.
        """
        spec = LstmSpec(self.cells, width=0, cell_clip=0.0, projection_clip=0.0, forget_bias=1.0)
        both = [Lstm(spec, self.execution, name=name).weights(x.shape[-1]) for name in ("forward", "backward")]
        weights = jax.tree.map(lambda *pair: jnp.stack(pair), *both)
        x = x.astype(weights.input.dtype)
        x, real = (jnp.stack([array, jnp.flip(array, axis=1)]) for array in (x, real))
        zeros = jnp.zeros((*x.shape[:2], self.cells), x.dtype)
        y, _ = side_by_side(spec, line_on(self.execution.platform), weights, x, real, LstmState(zeros, zeros))
        return jnp.concatenate([y[0], jnp.flip(y[1], axis=1)], axis=-1)
