"""Activations against their definitions in float64."""

import math

import jax.numpy as jnp
import numpy as np
import pytest

from jaxenc.errors import UserError
from jaxenc.layers.activation import activate, check

X = np.linspace(-8, 8, 4001).astype(np.float32)
ERF = np.array([0.5 * v * (1 + math.erf(v / math.sqrt(2))) for v in np.float64(X)])
TANH = 0.5 * np.float64(X) * (1 + np.tanh(math.sqrt(2 / math.pi) * (np.float64(X) + 0.044715 * np.float64(X) ** 3)))


@pytest.mark.parametrize("name, expected", [("gelu_erf", ERF), ("gelu_tanh", TANH), ("relu", np.maximum(X, 0)), ("tanh", np.tanh(X))])
def test_float32_accuracy(name, expected):
    """<= 2e-6 up to |x| = 8; the two GELUs are 4.7e-4 apart, so neither passes for the other."""
    np.testing.assert_allclose(activate(name, jnp.asarray(X)), expected, rtol=0, atol=2e-6)
    assert 4e-4 < np.abs(ERF - TANH).max() < 5e-4


def test_bfloat16_rounds_the_result_only():
    x = jnp.asarray(X, jnp.bfloat16)
    out = activate("gelu_erf", x)
    assert out.dtype == jnp.bfloat16
    exact = activate("gelu_erf", x.astype(jnp.float32))
    np.testing.assert_array_equal(out, exact.astype(jnp.bfloat16))


def test_unknown_name_lists_the_known():
    with pytest.raises(UserError, match=r"model.activation is 'gelu': use one of gelu_tanh, gelu_erf"):
        check("gelu", "model.activation")
