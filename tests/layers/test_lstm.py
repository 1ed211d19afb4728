"""LSTM steps against a loop in NumPy, and their backward pass against the one that JAX derives from a plain loop."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as nn

from jaxenc import tree
from jaxenc.execution import Execution
from jaxenc.layers import recurrence
from jaxenc.layers.lstm import Lstm
from jaxenc.layers.recurrence import LstmSpec, LstmState, LstmWeights, side_by_side
from jaxenc.precision import policy
from tests.families import reference_elmo as reference

SPEC = LstmSpec(cells=8, width=4, cell_clip=0.5, projection_clip=0.3, forget_bias=1.0)
FREE = dataclasses.replace(SPEC, cell_clip=0.0, projection_clip=0.0)
EXECUTION = Execution(policy("float32"), "xla", "none", False)


def drawn(length, masked, batch=3, inputs=3, dtype=np.float32):
    """(weights, x, real, state) of two LSTMs side by side."""
    rng = np.random.default_rng(length)
    n = lambda *shape: jnp.asarray(rng.normal(size=shape), dtype)
    weights = LstmWeights(n(2, inputs, 32), n(2, 4, 32), jnp.asarray(rng.normal(size=(2, 32)), jnp.float32), n(2, 8, 4))
    real = jnp.asarray(rng.random((2, batch, length)) < 0.6) if masked else None
    return weights, n(2, batch, length, inputs), real, LstmState(n(2, batch, 8) / 4, n(2, batch, 4) / 4)


@pytest.mark.parametrize("spec", [SPEC, FREE])
@pytest.mark.parametrize("length, masked, line", [(1, False, 1), (3, True, 3), (5, True, 2)])
def test_steps_are_those_of_a_loop(spec, length, masked, line):
    weights, x, real, state = drawn(length, masked)  # in one line, and in a loop with a remainder
    y, after = jax.jit(side_by_side, static_argnums=(0, 1))(spec, line, weights, x, real, state)
    for lstm in range(2):
        names = {field.name: np.float64(getattr(weights, field.name)[lstm]) for field in dataclasses.fields(weights)}
        for row in range(3):
            here = np.ones(length, bool) if real is None else np.asarray(real[lstm, row])
            start = np.float64(state.cell[lstm, row]), np.float64(state.hidden[lstm, row])
            out, cell, hidden = reference.lstm_row(names, spec, np.float64(x[lstm, row]), here, *start)
            for ours, theirs in ((y, out), (after.cell, cell), (after.hidden, hidden)):
                np.testing.assert_allclose(ours[lstm, row], theirs, atol=2e-6)
    if spec.cell_clip:
        assert np.abs(y).max() == np.float32(0.3) and (np.abs(after.cell) == 0.5).any()  # the clips were met


def plain(spec, weights, x, real, state):
    """The same in a few lines that JAX differentiates."""
    cell, hidden, out = state.cell, state.hidden, []
    clip = lambda x, limit: jnp.clip(x, -limit, limit) if limit else x
    for step in range(x.shape[2]):
        gates = jnp.einsum("dbi,dig->dbg", x[:, :, step], weights.input) + jnp.einsum("dbw,dwg->dbg", hidden, weights.recurrent)
        i, j, f, o = jnp.split(gates + weights.bias[:, None], 4, axis=-1)
        new = clip(jax.nn.sigmoid(f + spec.forget_bias) * cell + jax.nn.sigmoid(i) * jnp.tanh(j), spec.cell_clip)
        y = clip(jnp.einsum("dbc,dcw->dbw", jax.nn.sigmoid(o) * jnp.tanh(new), weights.projection), spec.projection_clip)
        here = True if real is None else real[:, :, step, None]
        cell, hidden = jnp.where(here, new, cell), jnp.where(here, y, hidden)
        out.append(jnp.where(here, y, 0))
    return jnp.stack(out, 2), LstmState(cell, hidden)


@pytest.mark.parametrize("spec", [SPEC, FREE])
@pytest.mark.parametrize("length, masked, line", [(3, False, 3), (5, True, 2)])
def test_gradients_are_those_that_jax_derives(spec, length, masked, line):
    """Of weights, inputs and the state before, from the output and the state behind; whole and leaf by leaf to 1e-5."""
    weights, x, real, state = drawn(length, masked)
    slopes = jax.tree.map(
        lambda leaf: jnp.cos(jnp.arange(leaf.size, dtype=jnp.float32)).reshape(leaf.shape), plain(spec, weights, x, real, state)
    )

    def slope(function):
        pulled = lambda *given: jax.vjp(lambda *given: function(spec, given[0], given[1], real, given[2]), *given)[1](slopes)
        return jax.jit(pulled)(weights, x, state)

    ours, theirs = jax.tree.leaves(slope(lambda spec, *given: side_by_side(spec, line, *given))), jax.tree.leaves(slope(plain))
    for mine, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(mine, other, atol=1e-5 * np.abs(other).max())


def test_a_step_that_is_not_real_keeps_the_state_bit_for_bit():
    weights, x, _, state = drawn(3, False)
    real = jnp.zeros((2, 3, 3), bool).at[:, 1].set(True)
    y, after = side_by_side(SPEC, 1, weights, x, real, state)
    for row in (0, 2):
        assert not np.asarray(y[:, row]).any()
        assert (after.cell[:, row] == state.cell[:, row]).all() and (after.hidden[:, row] == state.hidden[:, row]).all()
    assert (after.cell[:, 1] != state.cell[:, 1]).any()


def test_an_accelerator_has_the_published_segment_in_one_line():
    """And longer rows in lines that are about as long as each other, never longer than that; a CPU goes step by step."""
    assert {recurrence.at_once(length, recurrence.line_on("cpu")) for length in (1, 20, 64)} == {1}
    for platform in ("tpu", "gpu", "gpu of compute capability 7.5"):
        line = recurrence.line_on(platform)
        assert [recurrence.at_once(length, line) for length in (1, 20, 21, 32, 40, 64, 509)] == [1, 20, 11, 16, 20, 16, 20]


@pytest.mark.parametrize("platform, loops", [("cpu", 1), ("tpu", 0)])
def test_the_platform_of_the_run_decides_and_not_that_of_this_machine(platform, loops):
    """A program for a TPU, traced here, has no loop over the steps."""
    _, x, real, state = drawn(3, True)
    alone = (x[0], real[0], jax.tree.map(lambda leaf: leaf[0], state))
    lstm = Lstm(SPEC, dataclasses.replace(EXECUTION, platform=platform))
    traced = jax.make_jaxpr(lambda: lstm.init_with_output(jax.random.key(0), *alone)[0])()
    assert str(traced).count("scan[") == loops


def test_bfloat16_is_float32_rounded():
    """The state is held in bfloat16; outputs and gradients are within a few roundings of the same numbers in float32."""
    narrow = drawn(4, True, batch=16, dtype=jnp.bfloat16)
    wide = jax.tree.map(lambda leaf: leaf.astype(jnp.float32) if leaf.dtype == jnp.bfloat16 else leaf, narrow)

    @jax.jit
    def both(weights, x, real, state):
        run = lambda weights, x: side_by_side(SPEC, 1, weights, x, real, state)
        (y, after), pull = jax.vjp(run, weights, x)
        return y, after, pull((jnp.ones_like(y), jax.tree.map(jnp.zeros_like, after)))

    (y, after, slopes), wide = both(*narrow), both(*wide)
    assert y.dtype == after.cell.dtype == after.hidden.dtype == slopes[0].input.dtype == jnp.bfloat16
    assert slopes[0].bias.dtype == jnp.float32
    for ours, theirs in zip(jax.tree.leaves((y, slopes)), jax.tree.leaves((wide[0], wide[2])), strict=True):
        off = np.float32(ours) - theirs
        assert np.linalg.norm(off) < 0.03 * np.linalg.norm(theirs)


def test_module_reads_as_the_steps_do_and_starts_as_published():
    _, x, real, state = drawn(2, True)
    alone = (x[0], real[0], jax.tree.map(lambda leaf: leaf[0], state))
    lstm = Lstm(SPEC, EXECUTION)
    params = nn.meta.unbox(jax.jit(lstm.init)(jax.random.key(0), *alone)["params"])
    shapes = {path: leaf.shape for path, leaf in tree.leaves(params)}
    assert shapes == {"input": (3, 32), "recurrent": (4, 32), "bias": (32,), "projection": (8, 4)}
    y, after = jax.jit(lstm.apply)({"params": params}, *alone)
    weights = jax.tree.map(lambda leaf: leaf[None], LstmWeights(**params))
    first = jax.tree.map(lambda leaf: leaf[:1], (x, real, state))
    expected, behind = jax.jit(side_by_side, static_argnums=(0, 1))(SPEC, 1, weights, *first)
    assert (y == expected[0]).all() and (after.cell == behind.cell[0]).all() and (after.hidden == behind.hidden[0]).all()
    # Glorot's limit of [input; recurrent] as one matrix of 3 + 4 rows and 32 columns, and of the projection.
    for name, limit in (("input", (6 / 39) ** 0.5), ("recurrent", (6 / 39) ** 0.5), ("projection", (6 / 12) ** 0.5)):
        assert 0.8 * limit < np.abs(params[name]).max() <= limit
    assert not np.asarray(params["bias"]).any()
