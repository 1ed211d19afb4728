"""Look-ups and their gradient."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxenc.data.vocabulary import padded
from jaxenc.execution import Execution
from jaxenc.layers.embed import Embed
from jaxenc.layers.initializers import TruncatedNormal
from jaxenc.precision import policy


@pytest.mark.parametrize("size, rows", [(1, 128), (128, 128), (129, 256), (30522, 30592), (50265, 50304)])
def test_padded(size, rows):
    assert padded(size) == rows


def test_rows_and_gradient_in_bfloat16_compute():
    """Rows come from the float32 table, and 1000 look-ups of one row add up to exactly 1000: a bfloat16 sum would stop at 256."""
    embed = Embed(8, 4, (None, "table_embed"), TruncatedNormal(1.0), Execution(policy("bfloat16"), "xla", "none", False))
    table = jnp.linspace(0, 1, 32).reshape(8, 4)
    ids = jnp.full((1000,), 5, jnp.int32)
    np.testing.assert_array_equal(embed.apply({"params": {"table": table}}, ids[:2]), table[ids[:2]])
    gradient = jax.grad(lambda table: embed.apply({"params": {"table": table}}, ids).astype(jnp.bfloat16).astype(jnp.float32).sum())(table)
    np.testing.assert_array_equal(gradient, np.where(np.arange(8)[:, None] == 5, 1000.0, 0.0) * np.ones((8, 4)))
