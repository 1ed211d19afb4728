"""An LSTM with projection and clipping (Sak et al. 2014; TensorFlow's LSTMCell, as bilm/training.py of allenai/bilm-tf builds it)."""

import dataclasses

import jax
import jax.numpy as jnp
from flax import linen as nn
from jax import Array

from jaxenc.execution import Execution
from jaxenc.layers import initializers
from jaxenc.layers.initializers import Initializer, Uniform

# Steps that are compiled as one straight line: the segment of ELMo's training. A loop of single steps is 1.5 times slower on a GPU.
UNROLL = 20


@dataclasses.dataclass(frozen=True)
class LstmSpec:
    """The numbers of a layer. cells: of the memory; width: of what it gives, the projection of its cells. cell_clip, projection_clip: the
    largest magnitude of a cell and of an output, 0 for none. forget_bias: added to the forget gate's at run time, never stored."""

    cells: int
    width: int
    cell_clip: float
    projection_clip: float
    forget_bias: float


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class LstmState:
    """What flows from step to step, in the compute dtype: `cell` [batch, cells], clipped, and `hidden` [batch, width], the last output.
    Axes may stand before or, as a stack of layers, behind the batch's."""

    cell: Array
    hidden: Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class LstmWeights:
    """input [in, 4 cells], recurrent [width, 4 cells] and projection [cells, width] in the compute dtype, bias [4 cells] in float32; the
    four gates stand side by side: input, candidate (j), forget, output. Several LSTMs side by side have an axis before these."""

    input: Array
    recurrent: Array
    bias: Array
    projection: Array


class Lstm(nn.Module):
    """One layer, read from the first step to the last.

    The gates are concatenated, so that a device that held a part of a kernel's columns would hold one gate's: kernels are split over
    their rows only.
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

        joint = Uniform((6 / (inputs + spec.width + gates)) ** 0.5)
        return LstmWeights(
            input=kernel("input", joint, (inputs, gates), ("embed", None)),
            recurrent=kernel("recurrent", joint, (spec.width, gates), ("embed", None)),
            bias=self.param("bias", nn.with_logical_partitioning(initializers.zeros, ("norm",)), (gates,), policy.params),
            projection=kernel("projection", initializers.glorot_uniform, (spec.cells, spec.width), (None, "embed")),
        )

    def __call__(self, x: Array, real: Array | None, state: LstmState) -> tuple[Array, LstmState]:
        """[batch, length, in] to [batch, length, width] in the compute dtype, and the state behind the last step.

        real: bool [batch, length]; a step that is not real gives zeros and keeps the state; None for all real.
        """
        alone = lambda tree: jax.tree.map(lambda leaf: leaf[None], tree)
        weights = self.weights(x.shape[-1])
        y, state = side_by_side(self.spec, alone(weights), alone(x.astype(weights.input.dtype)), alone(real), alone(state))
        return y[0], jax.tree.map(lambda leaf: leaf[0], state)


def side_by_side(spec: LstmSpec, weights: LstmWeights, x: Array, real: Array | None, state: LstmState) -> tuple[Array, LstmState]:
    """Several LSTMs of one spec, each on its own rows: everything has a first axis of LSTMs before what `Lstm` says of it.

    Their products are batched products, which fill a GPU that one direction alone leaves idle. Gates are float32.
    """
    inputs = jnp.einsum("dbti,dig->tdbg", x, weights.input)
    steps = (inputs,) if real is None else (inputs, jnp.moveaxis(real, -1, 0))

    def step(state: LstmState, given: tuple[Array, ...]) -> tuple[LstmState, Array]:
        gates = given[0] + jnp.einsum("dbw,dwg->dbg", state.hidden, weights.recurrent).astype(jnp.float32)
        i, j, f, o = jnp.split(gates + weights.bias[:, None], 4, axis=-1)
        cell = jax.nn.sigmoid(f + spec.forget_bias) * state.cell + jax.nn.sigmoid(i) * jnp.tanh(j)
        cell = _clip(cell, spec.cell_clip)
        inner = (jax.nn.sigmoid(o) * jnp.tanh(cell)).astype(state.cell.dtype)
        hidden = _clip(jnp.einsum("dbc,dcw->dbw", inner, weights.projection), spec.projection_clip)
        new = LstmState(cell.astype(state.cell.dtype), hidden)
        if real is None:
            return new, hidden
        here = given[1][..., None]
        kept = jax.tree.map(lambda now, before: jnp.where(here, now, before), new, state)
        return kept, jnp.where(here, hidden, 0)

    state, y = jax.lax.scan(step, state, steps, unroll=min(UNROLL, x.shape[2]))
    return jnp.moveaxis(y, 0, 2), state


def _clip(x: Array, limit: float) -> Array:
    return jnp.clip(x, -limit, limit) if limit else x
