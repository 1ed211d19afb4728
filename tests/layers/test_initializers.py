"""The published initial distribution and the zero rows of a padded table."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxenc.errors import UserError
from jaxenc.execution import Execution
from jaxenc.heads.pooler import Pooler
from jaxenc.layers import initializers
from jaxenc.layers.initializers import Normal, TruncatedNormal, leading_rows
from jaxenc.precision import policy


def test_cut_at_two_sigma_and_not_rescaled():
    """10^6 draws against the moments of N(0, 0.02) cut at 2 sigma: standard deviation 0.87963 · 0.02, kurtosis 2.3657 (closed form)."""
    x = np.float64(TruncatedNormal(0.02)(jax.random.key(0), (1000, 1000), jnp.float32)) / 0.02
    assert 1.999 < np.abs(x).max() <= 2
    assert abs(x.mean()) <= 3 * 0.87963 / 1000
    assert abs(x.std() / 0.87963 - 1) <= 3 * np.sqrt((2.3657 - 1) / 4) / 1000


def test_padding_rows_are_zero_and_do_not_move_the_draws():
    init = leading_rows(TruncatedNormal(0.02), 10)
    small, large = init(jax.random.key(0), (16, 4), jnp.float32), init(jax.random.key(0), (128, 4), jnp.float32)
    assert not small[10:].any() and not large[10:].any() and small[:10].all()
    np.testing.assert_array_equal(small[:10], large[:10])


def test_the_plain_normal_is_not_cut():
    """10^6 draws: mean and deviation within 3 sigma (kurtosis 3), and 4.55 % of them beyond 2 sigma within 3 sigma."""
    x = np.float64(Normal(0.02)(jax.random.key(0), (1000, 1000), jnp.float32)) / 0.02
    assert abs(x.mean()) <= 3 / 1000
    assert abs(x.std() - 1) <= 3 * np.sqrt(2 / 4) / 1000
    assert abs((np.abs(x) > 2).mean() - 0.0455003) <= 3 * np.sqrt(0.0455 * 0.9545) / 1000


@pytest.mark.parametrize("name, kind", [("truncated_normal", TruncatedNormal), ("normal", Normal)])
def test_equal_initializers_make_equal_modules(name: str, kind: type):
    """Made twice they compare equal and hash alike, at another scale they do not; so do the heads that hold them."""
    one, two = initializers.BY_NAME[name](0.02), initializers.BY_NAME[name](0.02)
    assert one == two == kind(0.02) and hash(one) == hash(two) and one != kind(0.01)
    execution = Execution(policy("float32"), "xla", "none", False)
    first, second, other = (Pooler(8, "tanh", init, execution) for init in (one, two, kind(0.01)))
    assert first == second != other and hash(first) == hash(second)


def test_the_truncated_normal_draws_what_it_always_did():
    """Bitwise the draws of jax's initializer: runs that were started before are the same runs."""
    key, shape = jax.random.key(4), (64, 32)
    before = jax.nn.initializers.truncated_normal(0.02, lower=-2.0, upper=2.0)(key, shape, jnp.float32)
    assert np.asarray(TruncatedNormal(0.02)(key, shape, jnp.float32)).tobytes() == np.asarray(before).tobytes()


def test_an_unknown_name_is_one_line():
    with pytest.raises(UserError, match="model.init is 'uniform'; use one of truncated_normal, normal"):
        initializers.check("uniform", "model.init")
