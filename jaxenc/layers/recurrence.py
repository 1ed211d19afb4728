"""The steps of LSTMs that run side by side, with a backward pass of their own.

What JAX derives keeps every gate of every step in float32 and adds to each weight's gradient at every step. Here the backward pass keeps
what goes into the gates, in the compute dtype, computes the gates again, and multiplies out the weights' gradients once, over all steps.
"""

import dataclasses
import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array

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


def side_by_side(spec: LstmSpec, weights: LstmWeights, x: Array, real: Array | None, state: LstmState) -> tuple[Array, LstmState]:
    """Several LSTMs of one spec, each on its own rows: [lstms, batch, length, in] to [lstms, batch, length, width], and the last state.

    x and what comes back are in the compute dtype; gates are float32. real: bool [lstms, batch, length]; a step that is not real gives
    zeros and keeps the state; None for all real. Everything has the axis of LSTMs first: their products are batched products, which fill
    a GPU that one direction alone leaves idle.
    """
    turn = lambda steps: jnp.swapaxes(steps, 1, 2)
    y, state = _run(spec, weights, turn(x), None if real is None else turn(real), state)
    return turn(y), state


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _run(spec: LstmSpec, weights: LstmWeights, x: Array, real: Array | None, state: LstmState) -> tuple[Array, LstmState]:
    """As `side_by_side`, of [lstms, length, batch, ...]."""
    return _forward(spec, weights, x, real, state)[0]


def _forward(spec: LstmSpec, weights: LstmWeights, x: Array, real: Array | None, state: LstmState) -> tuple[tuple[Array, LstmState], tuple]:
    gates = jnp.einsum("dtbi,dig->dtbg", x, weights.input)
    stack = lambda leaf: jnp.zeros((*x.shape[:3], leaf.shape[-1]), x.dtype)

    def step(at: Array, carried: tuple) -> tuple:
        now, gates, cells, hiddens, y = carried
        own = _at(gates, at) + jnp.einsum("dbw,dwg->dbg", now.hidden, weights.recurrent).astype(jnp.float32) + weights.bias[:, None]
        cell, inner = _cell(spec, own, now.cell)
        inner = inner.astype(x.dtype)
        hidden = _clip(jnp.einsum("dbc,dcw->dbw", inner, weights.projection), spec.projection_clip)
        after, out = LstmState(cell.astype(x.dtype), hidden), hidden
        if real is not None:
            here = _at(real, at)[..., None]
            after, out = jax.tree.map(lambda new, old: jnp.where(here, new, old), after, now), jnp.where(here, hidden, 0)
        return after, _put(gates, own, at), _put(cells, now.cell, at), _put(hiddens, now.hidden, at), _put(y, out, at)

    carried = (state, gates, stack(state.cell), stack(state.hidden), stack(state.hidden))
    last, gates, cells, hiddens, y = _loop(x.shape[1], step, carried)
    return (y, last), (weights, x, real, gates, cells, hiddens, y)


def _backward(spec: LstmSpec, kept: tuple, slopes: tuple[Array, LstmState]) -> tuple:
    weights, x, real, gates, cells, hiddens, y = kept
    from_y, last = slopes
    length = x.shape[1]

    def step(turn: Array, carried: tuple) -> tuple:
        later, gates, inners, outs = carried
        at = length - 1 - turn
        seen = lambda slope, otherwise=0: slope if real is None else jnp.where(_at(real, at)[..., None], slope, otherwise)
        out = later.hidden + _at(from_y, at)
        if spec.projection_clip:
            out = jnp.where(jnp.abs(_at(y, at)) < spec.projection_clip, out, 0)
        out = seen(out)
        from_inner = jnp.einsum("dbw,dcw->dbc", out, weights.projection)
        wide = lambda *arrays: tuple(array.astype(jnp.float32) for array in arrays)
        (_, inner), pull = jax.vjp(functools.partial(_cell, spec), *wide(_at(gates, at), _at(cells, at)))
        gate, cell = pull(wide(later.cell, from_inner))
        gate = seen(gate).astype(x.dtype)
        hidden = seen(jnp.einsum("dbg,dwg->dbw", gate, weights.recurrent), later.hidden)
        earlier = LstmState(seen(cell, later.cell).astype(x.dtype), hidden)
        return earlier, _put(gates, gate, at), _put(inners, inner, at), _put(outs, out, at)

    carried = (last, gates, jnp.zeros_like(cells), jnp.zeros_like(y))
    first, gates, inners, outs = _loop(length, step, carried)
    from_weights = LstmWeights(
        input=jnp.einsum("dtbi,dtbg->dig", x, gates),
        recurrent=jnp.einsum("dtbw,dtbg->dwg", hiddens, gates),
        bias=jnp.sum(gates, axis=(1, 2), dtype=jnp.float32),
        projection=jnp.einsum("dtbc,dtbw->dcw", inners, outs),
    )
    return from_weights, jnp.einsum("dtbg,dig->dtbi", gates, weights.input), None, first


_run.defvjp(_forward, _backward)


def _cell(spec: LstmSpec, gates: Array, before: Array) -> tuple[Array, Array]:
    """(cell, what is projected), float32 [..., cells], from what goes into the gates [..., 4 cells] and the cell before."""
    i, j, f, o = jnp.split(gates, 4, axis=-1)
    cell = _clip(jax.nn.sigmoid(f + spec.forget_bias) * before + jax.nn.sigmoid(i) * jnp.tanh(j), spec.cell_clip)
    return cell, jax.nn.sigmoid(o) * jnp.tanh(cell)


def _clip(x: Array, limit: float) -> Array:
    return jnp.clip(x, -limit, limit) if limit else x


def _loop(length: int, step: Callable[[Array, tuple], tuple], carried: tuple) -> tuple:
    return jax.lax.fori_loop(0, length, step, carried, unroll=min(UNROLL, length))


def _at(stack: Array, at: Array) -> Array:
    """Step `at` of [lstms, length, ...]."""
    return jax.lax.dynamic_index_in_dim(stack, at, axis=1, keepdims=False)


def _put(stack: Array, new: Array, at: Array) -> Array:
    return jax.lax.dynamic_update_index_in_dim(stack, new.astype(stack.dtype), at, axis=1)
