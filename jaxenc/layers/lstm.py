"""An LSTM, with or without projection and clipping (Sak et al. 2014; TensorFlow's LSTMCell, as bilm/training.py of allenai/bilm-tf builds
it)."""

import jax
from flax import linen as nn
from jax import Array

from jaxenc.execution import Execution
from jaxenc.layers import initializers
from jaxenc.layers.initializers import Initializer, Uniform
from jaxenc.layers.recurrence import LstmSpec, LstmState, LstmWeights, line_on, side_by_side


class Lstm(nn.Module):
    """One layer, read from the first step to the last.

    The gates are concatenated on the columns, so sharding a kernel over its columns would put one gate on each device: kernels are sharded
    over their rows only.
    """

    spec: LstmSpec
    execution: Execution

    @nn.compact
    def weights(self, inputs: int) -> LstmWeights:
        """For inputs of this width. They start as TensorFlow's cell does: Glorot's uniform draws of [input; recurrent] as one matrix, and
        of the projection; a bias of zeros."""
        spec, policy = self.spec, self.execution.policy
        gates = 4 * spec.cells

        def kernel(name: str, init: Initializer, shape: tuple[int, int], names: tuple[str | None, str | None]) -> Array:
            return self.param(name, nn.with_logical_partitioning(init, names), shape, policy.params).astype(policy.compute)

        joint = Uniform((6 / (inputs + spec.outputs + gates)) ** 0.5)
        projection = (spec.cells, spec.width)
        return LstmWeights(
            input=kernel("input", joint, (inputs, gates), ("embed", None)),
            recurrent=kernel("recurrent", joint, (spec.outputs, gates), ("embed", None)),
            bias=self.param("bias", nn.with_logical_partitioning(initializers.zeros, ("norm",)), (gates,), policy.params),
            projection=kernel("projection", initializers.glorot_uniform, projection, (None, "embed")) if spec.width else None,
        )

    def __call__(self, x: Array, real: Array | None, state: LstmState) -> tuple[Array, LstmState]:
        """([batch, length, outputs] in the compute dtype from [batch, length, in], the state after the last step).

        real: bool [batch, length], False for padding, None for no padding. A padding step outputs zeros and keeps the state.
        """
        weights, alone = self.weights(x.shape[-1]), lambda tree: jax.tree.map(lambda leaf: leaf[None], tree)
        given = (alone(weights), alone(x.astype(weights.input.dtype)), alone(real), alone(state))
        y, state = side_by_side(self.spec, line_on(self.execution.platform), *given)
        return y[0], jax.tree.map(lambda leaf: leaf[0], state)
