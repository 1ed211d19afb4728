"""The scalar mix against slow loops."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax.core import meta

from jaxenc.layers.scalar_mix import ScalarMix, regulariser

LAYERS, BATCH, LENGTH, WIDTH = 3, 2, 4, 5


def hidden(mean: float = 3.0) -> np.ndarray:
    return np.random.default_rng(0).normal(mean, 2.0, (LAYERS, BATCH, LENGTH, WIDTH)).astype(np.float32)


def params(weights: list[float], gamma: float) -> dict:
    return {"weights": jnp.array(weights, jnp.float32), "gamma": jnp.float32(gamma)}


def slow(weights: list[float], gamma: float, states: np.ndarray, mask: np.ndarray, layer_norm: bool) -> np.ndarray:
    """One number at a time, in float64."""
    shares = [np.exp(w) for w in weights]
    out = np.zeros(states.shape[1:])
    for layer, share in zip(states.astype(np.float64), shares, strict=True):
        tokens = zip(layer.reshape(-1, WIDTH), mask.reshape(-1), strict=True)
        counted = [value for token, on in tokens if on for value in token]
        mean = sum(counted) / len(counted)
        variance = sum((value - mean) ** 2 for value in counted) / len(counted)
        out += share / sum(shares) * ((layer - mean) / np.sqrt(variance + 1e-12) if layer_norm else layer)
    return gamma * out


@pytest.mark.parametrize("layer_norm", [False, True])
def test_it_is_the_slow_loop(layer_norm: bool) -> None:
    """Within 1e-5; the masked tokens, which hold large numbers, count in no statistic."""
    weights, gamma = [0.5, -1.0, 2.0], 1.7
    mask = np.array([[1, 1, 1, 0], [1, 0, 0, 0]])
    states = np.where(mask[..., None] > 0, hidden(), 1000 * hidden())
    found = ScalarMix(layer_norm).apply({"params": params(weights, gamma)}, states, mask)
    wanted = slow(weights, gamma, states, mask, layer_norm)
    seen = mask > 0
    np.testing.assert_allclose(np.asarray(found)[seen], wanted[seen], rtol=1e-5, atol=1e-5)
    assert found.dtype == jnp.float32


def test_it_starts_as_the_average() -> None:
    """Layers in bfloat16 are summed in float32."""
    states, mask = jnp.asarray(hidden(), jnp.bfloat16), np.ones((BATCH, LENGTH))
    start = meta.unbox(ScalarMix().init(jax.random.key(0), states, mask))
    assert {name: leaf.shape for name, leaf in start["params"].items()} == {"weights": (LAYERS,), "gamma": ()}
    np.testing.assert_allclose(ScalarMix().apply(start, states, mask), np.asarray(states, np.float32).mean(0), rtol=1e-6, atol=1e-6)


def test_a_batch_without_a_token_stays_finite() -> None:
    found = ScalarMix(True).apply({"params": params([0.0] * LAYERS, 1.0)}, hidden() * 0, np.zeros((BATCH, LENGTH)))
    assert np.isfinite(found).all()


def test_the_regulariser() -> None:
    """Value and gradient: the weights before the softmax, and not gamma."""
    given = params([1.0, -2.0, 0.5], 3.0)
    value, gradient = jax.value_and_grad(regulariser)(given, 0.1)
    assert value == pytest.approx(0.1 * 5.25) and gradient["gamma"] == 0
    np.testing.assert_allclose(gradient["weights"], 0.2 * np.array([1.0, -2.0, 0.5]), rtol=1e-6)
