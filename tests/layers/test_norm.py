"""LayerNorm against float64."""

import jax.numpy as jnp
import numpy as np
import pytest

from jaxenc.execution import Execution
from jaxenc.layers.norm import LayerNorm
from jaxenc.precision import policy


def run(x, epsilon, precision="float32"):
    params = {"scale": jnp.linspace(0.5, 1.5, x.shape[-1]), "bias": jnp.linspace(-1, 1, x.shape[-1])}
    out = LayerNorm(epsilon, Execution(policy(precision), "xla", "none", False)).apply({"params": params}, x)
    wide = np.float64(x)
    centred = wide - wide.mean(-1, keepdims=True)
    expected = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + epsilon) * np.float64(params["scale"]) + np.float64(params["bias"])
    return out, expected


@pytest.mark.parametrize("mean", [0, 8, -8])
def test_error_on_shifted_inputs(mean):
    """<= 4e-6 where the one-pass variance errs by 3.7e-5."""
    x = np.random.default_rng(0).normal(mean, 1, (32, 768)).astype(np.float32)
    out, expected = run(x, 1e-12)
    np.testing.assert_allclose(out, expected, rtol=0, atol=4e-6)


@pytest.mark.parametrize("epsilon", [1e-12, 1e-6])
def test_epsilon_counts(epsilon):
    """Inputs whose variance is 1e-12: the epsilon decides the size of the output, and a constant row gives the bias."""
    x = np.random.default_rng(0).normal(0, 1e-6, (8, 256)).astype(np.float32)
    out, expected = run(x, epsilon)
    np.testing.assert_allclose(out, expected, rtol=0, atol=1e-5)
    constant, _ = run(np.full((2, 256), 3, np.float32), epsilon)
    np.testing.assert_allclose(constant, np.broadcast_to(np.linspace(-1, 1, 256), (2, 256)), rtol=0, atol=1e-6)


def test_statistics_are_float32_in_bfloat16():
    """Only the result is rounded: within one bfloat16 step (2^-8 relative) of float64 on the rounded inputs."""
    x = jnp.asarray(np.random.default_rng(0).normal(8, 1, (32, 768)), jnp.bfloat16)
    out, expected = run(x, 1e-12, "bfloat16")
    assert out.dtype == jnp.bfloat16
    np.testing.assert_allclose(np.float64(out), expected, rtol=2**-8, atol=1e-6)
