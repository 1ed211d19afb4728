"""Dropout on the tables themselves: one draw a step, the same for tokens, for positions and for what else reads the table; and embeddings
without a norm."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as nn

from jaxenc import rng
from jaxenc.execution import Execution
from jaxenc.layers.embeddings import Embeddings, EmbeddingsSpec
from jaxenc.layers.initializers import Normal
from jaxenc.precision import policy
from tests.layers.reference_block import layer_norm

EXACT = Execution(policy("float32"), "xla", "none", False)
SPEC = EmbeddingsSpec(200, 16, 12, 0, 2, 1e-5, 0.0, Normal(1.0), table_dropout=0.25)
RANDOM = np.random.default_rng(0)
TOKENS = RANDOM.integers(0, 200, (8, 12)).astype(np.int32)
TYPES = RANDOM.integers(0, 2, (8, 12)).astype(np.int32)
POSITIONS = np.tile(np.arange(12, dtype=np.int32), (8, 1))
PARAMS = nn.meta.unbox(Embeddings(SPEC, EXACT).init(jax.random.key(0), TOKENS, TYPES, POSITIONS, None)["params"])


def run(tokens=TOKENS, types=TYPES, positions=POSITIONS, step=3, rows=slice(None), spec=SPEC, noise=True):
    keys = rng.training(0, jnp.int32(step), 8)
    keys = dataclasses.replace(keys, rows=keys.rows[rows]) if noise else None
    return jax.jit(Embeddings(spec, EXACT).apply)({"params": PARAMS}, tokens[rows], types[rows], positions[rows], keys)


def test_a_quarter_of_the_table_is_dropped_and_the_rest_grows():
    """Elements are 0 or divided by 0.75; the share of zeros among 3,200 within 4 sigma of the rate; padding rows stay 0."""
    table, before = np.asarray(run()[1]), np.asarray(PARAMS["token"]["table"])
    kept = table != 0
    np.testing.assert_allclose(table[kept], before[kept] / 0.75, rtol=1e-6)
    assert abs((~kept[:200]).mean() - 0.25) <= 4 * np.sqrt(0.25 * 0.75 / 3200)
    assert table.shape == (256, 16) and table.dtype == np.float32 and not table[200:].any()
    columns, rows = kept[:200].mean(axis=0), kept[:200].mean(axis=1)
    assert 0 < columns.min() < columns.max() < 1 and rows.min() < rows.max()


def test_tokens_and_the_softmax_see_one_table():
    """All positions and types that there are, read where the token's row is known: the sum of rows of three dropped tables (<= 1e-5). Each
    table has a mask of its own."""
    hidden, token = (np.asarray(part, np.float64) for part in run())
    first = jax.jit(Embeddings(SPEC, EXACT).apply)
    tables = {"token": token}
    for name in ("position", "type"):
        # With the other tables at 0, a row of this one is what is normalised: its zeros are those of the lowest level.
        alone = {**jax.tree.map(jnp.zeros_like, PARAMS), name: jax.tree.map(jnp.ones_like, PARAMS[name]), "norm": PARAMS["norm"]}
        rows = np.asarray(first({"params": alone}, TOKENS, TYPES, POSITIONS, rng.training(0, jnp.int32(3), 8))[0])
        ids = POSITIONS if name == "position" else TYPES
        mask = np.stack([rows[ids == row][0] > 0 for row in range(ids.max() + 1)])
        assert all((rows[ids == row] == rows[ids == row][0]).all() for row in range(len(mask)))
        tables[name] = np.where(mask, np.float64(PARAMS[name]["table"]) / 0.75, 0)
        assert 0.05 < (~mask).mean() < 0.6 and not np.array_equal(mask, token[: len(mask)] != 0)
    total = tables["token"][TOKENS] + tables["position"][POSITIONS] + tables["type"][TYPES]
    np.testing.assert_allclose(hidden, layer_norm(total, jax.tree.map(np.float64, PARAMS["norm"]), 1e-5), rtol=0, atol=1e-5)


def test_the_draw_follows_the_step_and_no_row():
    """Half of the batch alone, as a microbatch or a device has it, sees the table of the whole batch; another step, another."""
    hidden, table = run()
    for half in (slice(0, 8, 2), slice(1, 8, 2)):
        part, same = run(rows=half)
        np.testing.assert_array_equal(same, table)
        np.testing.assert_array_equal(part, hidden[half])
    assert not np.array_equal(run(step=4)[1], table)


@pytest.mark.parametrize("spec, noise", [(SPEC, False), (dataclasses.replace(SPEC, table_dropout=0.0), True)], ids=["evaluation", "rate 0"])
def test_without_dropout_the_table_is_the_parameter(spec, noise):
    np.testing.assert_array_equal(run(spec=spec, noise=noise)[1], PARAMS["token"]["table"])


@pytest.mark.parametrize("compute", ["float32", "bfloat16"])
def test_without_a_norm_it_is_the_sum(compute):
    """The float32 sum of the three rows, rounded once to the compute dtype; there is no parameter of a norm."""
    layer = Embeddings(dataclasses.replace(SPEC, norm=False), Execution(policy(compute), "xla", "none", False))
    shapes = jax.eval_shape(layer.init, jax.random.key(0), TOKENS, TYPES, POSITIONS, None)["params"]
    assert set(shapes) == {"token", "position", "type"}
    params = {name: PARAMS[name] for name in shapes}
    hidden, _ = layer.apply({"params": params}, TOKENS, TYPES, POSITIONS, None)
    tables = {name: np.asarray(params[name]["table"]) for name in params}
    total = tables["token"][TOKENS] + tables["position"][POSITIONS] + tables["type"][TYPES]
    assert hidden.dtype == jnp.dtype(compute)
    np.testing.assert_array_equal(hidden, total.astype(hidden.dtype))
