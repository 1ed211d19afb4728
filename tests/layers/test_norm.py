"""LayerNorm against float64."""

import jax
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


@pytest.mark.parametrize("use_bias", [True, False])
def test_gradients_in_bfloat16(use_bias):
    """Written out by hand in the layer; here beside those of the definition in float32, whose gradient of x is rounded once: scale and bias
    within 1e-5 of the largest, x within one bfloat16 step."""
    draw = np.random.default_rng(0)
    x, slope = (jnp.asarray(draw.normal(3, 2, (4, 16, 64)), jnp.bfloat16) for _ in range(2))
    params = {"scale": jnp.linspace(0.5, 1.5, 64)} | ({"bias": jnp.linspace(-1, 1, 64)} if use_bias else {})

    def defined(params, x):
        centred = x - jnp.mean(x, axis=-1, keepdims=True)
        normal = centred / jnp.sqrt(jnp.mean(centred**2, axis=-1, keepdims=True) + 1e-6)
        return normal * params["scale"] + params.get("bias", 0)

    layer = LayerNorm(1e-6, Execution(policy("bfloat16"), "xla", "none", False), use_bias)
    found, of_x = jax.vjp(lambda params, x: layer.apply({"params": params}, x), params, x)[1](slope)
    wanted, of_wide = jax.vjp(defined, params, x.astype(jnp.float32))[1](slope.astype(jnp.float32))
    for name, gradient in wanted.items():
        np.testing.assert_allclose(found[name], gradient, rtol=0, atol=1e-5 * np.abs(gradient).max())
    np.testing.assert_allclose(np.float32(of_x), of_wide, rtol=2**-8, atol=1e-6)
