"""Losses that no objective's own tests cover: a mixture that is never NaN."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxenc import losses


def test_a_mixture_is_finite_however_sure_it_is() -> None:
    """Loss and gradient at D of 0, 1 and between, at flat and at steep softmaxes: <= 1e-5 of float64, which takes the same logarithms. A
    prediction is right where no token is likelier in the mixture."""
    copy = np.array([0, -3, 3, -1e4, 1e4, -1e30, 1e30], np.float32)
    scores = np.array([[0, 0, 0, -1e30], [9, -9, 1, -1e30], [1e4, -1e4, 0, -1e30]], np.float32)
    cases = [(c, s, given, label) for c in copy for s in scores for given in (0, 1) for label in (0, 1)]
    c, s, given, label = (np.array(column) for column in zip(*cases, strict=True))

    def each(c: Any, s: Any) -> Any:
        one = lambda *case: losses.copy_cross_entropy(*case, jnp.float32(1))
        return jax.vmap(jax.value_and_grad(one, (0, 1), has_aux=True))(s, c, given, label)

    (loss, hit), slopes = jax.device_get(jax.jit(each)(c, s))
    assert np.isfinite(loss).all() and all(np.isfinite(slope).all() for slope in slopes)
    c, s = np.float64(c), np.float64(s)
    log_p = s - np.logaddexp.reduce(s, axis=1, keepdims=True)
    keep, other, rows = -np.logaddexp(0, -c), -np.logaddexp(0, c), np.arange(len(c))
    want = -np.where(given == label, np.logaddexp(keep, other + log_p[rows, label]), other + log_p[rows, label])
    np.testing.assert_allclose(loss, want, rtol=1e-5, atol=1e-6)
    mixed = other[:, None] + log_p
    mixed[rows, given] = np.logaddexp(keep, mixed[rows, given])
    np.testing.assert_array_equal(hit, mixed[rows, label] >= mixed.max(axis=1))
    assert 0 < hit[given != label].sum() < (given != label).sum()


def test_the_gradient_of_the_logits_has_no_scatter() -> None:
    """It is softmax - [w = label], times the weight (<= 1e-6), in one pass over the logits."""
    draw = np.random.default_rng(0)
    logits, labels = draw.normal(size=(3, 5, 7)).astype(np.float32), draw.integers(0, 7, (3, 5)).astype(np.int32)
    weights = draw.random((3, 5)).astype(np.float32)
    gradient = jax.grad(lambda logits: losses.cross_entropy(logits, labels, weights)[0])
    expected = (jax.nn.softmax(logits) - np.eye(7)[labels]) * weights[..., None]
    np.testing.assert_allclose(gradient(logits), expected, rtol=0, atol=1e-6)
    assert "scatter" not in jax.jit(gradient).lower(logits).as_text()
