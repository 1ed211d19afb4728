import numpy as np
import optax
import pytest

from jaxenc.optim.clip import clip_by_global_norm


@pytest.mark.parametrize("scale, limit", [(10.0, 1.0), (0.01, 1.0), (10.0, 0.0), (10.0, 0.25), (0.05, 0.1), (1.0, 100.0), (0.0, 1.0)])
def test_the_norm_over_all_leaves_ends_at_the_limit_or_stays(scale: float, limit: float) -> None:
    rng = np.random.default_rng(0)
    grads = {"a": (scale * rng.normal(size=(3, 4))).astype(np.float32), "b": {"c": (scale * rng.normal(size=5)).astype(np.float32)}}
    norm = np.sqrt(sum(np.sum(np.float64(leaf) ** 2) for leaf in (grads["a"], grads["b"]["c"])))
    factor = min(1.0, limit / norm) if limit and norm else 1.0
    out = clip_by_global_norm(grads, optax.tree.norm(grads), limit)
    assert out["a"].dtype == np.float32
    np.testing.assert_allclose(out["a"], factor * np.float64(grads["a"]), rtol=1e-6)
    np.testing.assert_allclose(out["b"]["c"], factor * np.float64(grads["b"]["c"]), rtol=1e-6)
