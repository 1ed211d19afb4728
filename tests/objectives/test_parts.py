"""Sums over places a part at a time."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxenc.objectives import parts


@pytest.mark.parametrize("size", [1, 3, 7, 9])
def test_parts_of_any_size_are_the_whole(size: int) -> None:
    """Sum and gradient, <= 1e-6; the places that fill up the last part add nothing, and a row stays the row that it is."""
    random = np.random.default_rng(0)
    x, weights = random.normal(size=(2, 7, 3)).astype(np.float32), random.integers(0, 2, (2, 7)).astype(np.int32)
    function = lambda x, weights: {"sum": jnp.sum(jnp.cos(x).sum(-1) * weights * jnp.array([[1], [3]])), "count": jnp.sum(weights)}
    whole = jax.value_and_grad(lambda x: function(x, weights)["sum"])(x)
    got = jax.value_and_grad(lambda x: parts.summed(function, size, (x, weights))["sum"])(x)
    for a, b in zip(got, whole, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6)
    assert parts.summed(function, size, (x, weights))["count"] == weights.sum()
