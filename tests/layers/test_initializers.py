"""The published initial distribution and the zero rows of a padded table."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxenc.layers.initializers import leading_rows, truncated_normal


def test_cut_at_two_sigma_and_not_rescaled():
    """10^6 draws against the moments of N(0, 0.02) cut at 2 sigma: standard deviation 0.87963 · 0.02, kurtosis 2.3657 (closed form)."""
    x = np.float64(truncated_normal(0.02)(jax.random.key(0), (1000, 1000), jnp.float32)) / 0.02
    assert 1.999 < np.abs(x).max() <= 2
    assert abs(x.mean()) <= 3 * 0.87963 / 1000
    assert abs(x.std() / 0.87963 - 1) <= 3 * np.sqrt((2.3657 - 1) / 4) / 1000


def test_padding_rows_are_zero_and_do_not_move_the_draws():
    init = leading_rows(truncated_normal(0.02), 10)
    small, large = init(jax.random.key(0), (16, 4), jnp.float32), init(jax.random.key(0), (128, 4), jnp.float32)
    assert not small[10:].any() and not large[10:].any() and small[:10].all()
    np.testing.assert_array_equal(small[:10], large[:10])
