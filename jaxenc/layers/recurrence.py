"""The steps of LSTMs that run side by side, with a backward pass of their own.

What JAX derives keeps every gate of every step in float32 and adds to each weight's gradient at every step. Here the backward pass keeps
what goes into the gates, in the compute dtype, computes the gates again, and multiplies out the weights' gradients once, over all steps.
The barriers are for that: without them the compiler sees through the rounding, and keeps the float32 of the forward pass after all.
"""

import dataclasses
import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array

from jaxenc.tree import Tree

# Most steps in one straight line: the segment in allenai/bilm-tf. A loop of single steps is 1.5 times slower on a GPU. On a CPU the line
# gains nothing, and two layers of it with their gradient take half a minute to compile.
LINE, LINE_ON_CPU = 20, 1

_Step = Callable[["LstmState", Tree], tuple["LstmState", Tree]]


@dataclasses.dataclass(frozen=True)
class LstmSpec:
    """The numbers of a layer. cells: of the memory; width: of the outputs, a projection of the cells; 0 for no projection, then it is
    `cells`. cell_clip, projection_clip: the largest magnitude of a cell and of an output, 0 for none. forget_bias: added to the forget
    gate's at run time, never stored."""

    cells: int
    width: int
    cell_clip: float
    projection_clip: float
    forget_bias: float

    @property
    def outputs(self) -> int:
        """The width of the outputs."""
        return self.width or self.cells


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class LstmState:
    """The state between steps, in the compute dtype: `cell` [batch, cells], clipped, and `hidden` [batch, outputs], the last output. There
    may be axes before the batch axis, and an axis of layers after it."""

    cell: Array
    hidden: Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class LstmWeights:
    """input [in, 4 cells], recurrent [outputs, 4 cells] and projection [cells, width], None without one, in the compute dtype, bias
    [4 cells] in float32. The four gates are concatenated: input, candidate (j), forget, output. Several LSTMs are stacked on an axis
    before these."""

    input: Array
    recurrent: Array
    bias: Array
    projection: Array | None


@functools.partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def side_by_side(
    spec: LstmSpec, line: int, weights: LstmWeights, x: Array, real: Array | None, state: LstmState
) -> tuple[Array, LstmState]:
    """Several LSTMs of one spec, each on its own rows: [lstms, batch, length, in] to [lstms, batch, length, outputs], and the last state.

    line: most steps that are compiled as one straight line, `line_on` the platform. x and the results are in the compute dtype; gates are
    float32. real: bool [lstms, batch, length], False for padding, None for no padding; a padding step outputs zeros and keeps the state.
    The axis of LSTMs comes first in every array: their products are batched products, which use a GPU better than one direction alone.
    """
    return _forward(spec, line, weights, x, real, state)[0]


def line_on(platform: str) -> int:
    """Most steps in one straight line on a platform, the answer of `sharding.mesh.platform`."""
    return LINE_ON_CPU if platform == "cpu" else LINE


def _forward(
    spec: LstmSpec, line: int, weights: LstmWeights, x: Array, real: Array | None, state: LstmState
) -> tuple[tuple[Array, LstmState], tuple]:
    x, real = _by_steps(x), None if real is None else _by_steps(real[..., None])
    from_input = jnp.einsum("dlbi,dig->dlbg", x, weights.input)

    def step(before: LstmState, given: tuple[Array, Array | None]) -> tuple[LstmState, tuple]:
        now, here = given
        now = now.astype(jnp.float32) + jnp.einsum("dbw,dwg->dbg", before.hidden, weights.recurrent)
        gates = jnp.split(now + weights.bias[:, None], 4, axis=-1)
        old = before.cell.astype(jnp.float32)
        cell, inner = _cell(spec, *gates, old)
        gates, cell, inner = _written(x.dtype, gates, _seen(here, cell, old), inner)
        y = inner if weights.projection is None else jnp.einsum("dbc,dcw->dbw", inner, weights.projection)
        y = jnp.clip(y, -spec.projection_clip, spec.projection_clip) if spec.projection_clip else y
        return LstmState(cell, _seen(here, y, before.hidden)), (_seen(here, y, 0), gates, before)

    last, (y, gates, before) = _scan(step, line, state, (from_input, real))
    return (_by_steps(y), last), (weights, x, real, gates, before, y)


def _backward(spec: LstmSpec, line: int, kept: tuple, slopes: tuple[Array, LstmState]) -> tuple:
    weights, x, real, gates, before, y = kept

    def step(later: LstmState, given: tuple) -> tuple[LstmState, tuple]:
        gates, before, y, of_y, here = given
        out = later.hidden + of_y
        out = jnp.where(jnp.abs(y) < spec.projection_clip, out, 0) if spec.projection_clip else out
        out = _seen(here, out, 0)
        of_inner = out if weights.projection is None else jnp.einsum("dbw,dcw->dbc", out, weights.projection)
        read, slope = jax.tree.map(lambda array: array.astype(jnp.float32), ((*gates, before.cell), (later.cell, of_inner)))
        (_, inner), pull = jax.vjp(functools.partial(_cell, spec), *read)
        *of_gates, of_cell = pull(slope)
        of_gates, of_cell = _seen(here, jnp.concatenate(of_gates, axis=-1), 0), _seen(here, of_cell, slope[0])
        of_gates, of_cell, inner = _written(x.dtype, of_gates, of_cell, inner)
        of_hidden = jnp.einsum("dbg,dwg->dbw", of_gates, weights.recurrent)
        return LstmState(of_cell, _seen(here, of_hidden, later.hidden)), (of_gates, inner, out)

    first, (of_gates, inner, out) = _scan(step, line, slopes[1], (gates, before, y, _by_steps(slopes[0]), real), reverse=True)
    of_weights = LstmWeights(
        input=jnp.einsum("dlbi,dlbg->dig", x, of_gates),
        recurrent=jnp.einsum("dlbw,dlbg->dwg", before.hidden, of_gates),
        bias=jnp.sum(of_gates, axis=(1, 2), dtype=jnp.float32),
        projection=None if weights.projection is None else jnp.einsum("dlbc,dlbw->dcw", inner, out),
    )
    return of_weights, _by_steps(jnp.einsum("dlbg,dig->dlbi", of_gates, weights.input)), None, first


side_by_side.defvjp(_forward, _backward)


def at_once(length: int, line: int) -> int:
    """Steps that are compiled as one straight line: all, or in the fewest lines of at most `line`, all about as long."""
    return -(-length // -(-length // line))


def _cell(spec: LstmSpec, i: Array, j: Array, f: Array, o: Array, before: Array) -> tuple[Array, Array]:
    """(cell, what is projected) from what goes into the gates and the cell before, all of one shape."""
    cell = jax.nn.sigmoid(f + spec.forget_bias) * before + jax.nn.sigmoid(i) * jnp.tanh(j)
    cell = jnp.clip(cell, -spec.cell_clip, spec.cell_clip) if spec.cell_clip else cell
    return cell, jax.nn.sigmoid(o) * jnp.tanh(cell)


def _seen(here: Array | None, new: Array, old: Array | float) -> Array:
    """`new` where a step is real, else `old`."""
    return new if here is None else jnp.where(here, new, old)


def _written(dtype: jnp.dtype, *arrays: Tree) -> Tree:
    """`arrays` in `dtype`, behind a barrier that keeps the compiler from skipping the rounding."""
    return jax.lax.optimization_barrier(jax.tree.map(lambda array: array.astype(dtype), arrays))


def _by_steps(array: Array) -> Array:
    """[lstms, batch, length, ...] to [lstms, length, batch, ...], and back."""
    return jnp.swapaxes(array, 1, 2)


def _scan(step: _Step, line: int, first: LstmState, given: Tree, reverse: bool = False) -> tuple[LstmState, Tree]:
    """jax.lax.scan over the second axis of `given`, [lstms, length, ...]; what the steps give is stacked there.

    Where all steps are one line they are stacked there at once: to move an axis afterwards cost a GPU as much as the products did.
    """
    length = jax.tree.leaves(given)[0].shape[1]
    if at_once(length, line) < length:

        def step_at(before: LstmState, at: Array) -> tuple[LstmState, Tree]:
            # Index on axis 1: moving the axis of all steps first made the forward pass on a CPU 1.2 to 1.6 times slower.
            return step(before, jax.tree.map(lambda array: jax.lax.dynamic_index_in_dim(array, at, axis=1, keepdims=False), given))

        last, out = jax.lax.scan(step_at, first, jnp.arange(length), reverse=reverse, unroll=at_once(length, line))
        return last, jax.tree.map(lambda array: jnp.swapaxes(array, 0, 1), out)
    out = []
    for at in reversed(range(length)) if reverse else range(length):
        first, of_step = step(first, jax.tree.map(lambda array, at=at: array[:, at], given))
        out.append(of_step)
    return first, jax.tree.map(lambda *steps: jnp.stack(steps, axis=1), *(reversed(out) if reverse else out))
