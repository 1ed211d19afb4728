"""Activations against their definitions in float64."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxenc.errors import UserError
from jaxenc.layers.activation import ACTIVATIONS, activate, check

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
    with pytest.raises(UserError, match=r"model.activation is 'gelu'; use one of gelu_tanh, gelu_erf"):
        check("gelu", "model.activation")


@pytest.mark.parametrize("name", sorted(ACTIVATIONS))
def test_the_gradient_in_bfloat16_is_that_of_float32_rounded(name):
    """Bit for bit; X has no number where two rules of relu differ but 0."""
    x, slope = jnp.asarray(X, jnp.bfloat16), jnp.asarray(np.random.default_rng(0).normal(size=X.shape), jnp.bfloat16)
    (found,) = jax.vjp(lambda x: activate(name, x), x)[1](slope)
    (wide,) = jax.vjp(ACTIVATIONS[name], x.astype(jnp.float32))[1](slope.astype(jnp.float32))
    np.testing.assert_array_equal(found, wide.astype(jnp.bfloat16))


def test_the_backward_pass_in_bfloat16_computes_the_tanh_again():
    """Its compiled program has two: XLA did not keep the first, which is float32 and so twice as wide as x."""
    step = jax.grad(lambda x: jnp.sum(activate("gelu_tanh", x).astype(jnp.float32) ** 2))
    program = jax.jit(step).lower(jax.ShapeDtypeStruct((64, 64), jnp.bfloat16)).compile().as_text()
    assert program.count(" tanh(") == 2
