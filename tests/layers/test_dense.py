"""A matrix product with a bias: values, dtypes, logical axes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxenc.execution import Execution
from jaxenc.layers.dense import Dense
from jaxenc.layers.initializers import TruncatedNormal
from jaxenc.precision import policy


def dense(names, precision="float32"):
    return Dense(3, names, TruncatedNormal(0.02), Execution(policy(precision), "xla", "none", False))


@pytest.mark.parametrize("names, bias", [(("embed", "mlp"), "mlp"), (("mlp", "embed"), "norm"), (("embed", None), None)])
def test_axes_of_the_bias(names, bias):
    params = dense(names).init(jax.random.key(0), jnp.ones((1, 2)))["params"]
    assert params["kernel"].names == names and params["bias"].names == (bias,)


@pytest.mark.parametrize("precision, bound", [("float32", 1e-6), ("bfloat16", 0.05)])
def test_product(precision, bound):
    """Within the rounding of the compute dtype, which the result has; parameters stay float32."""
    draw = np.random.default_rng(0)
    params = {"kernel": draw.normal(size=(2, 3)).astype(np.float32), "bias": draw.normal(size=3).astype(np.float32)}
    x = draw.normal(size=(4, 5, 2)).astype(np.float32)
    out = dense(("embed", "mlp"), precision).apply({"params": jax.tree.map(jnp.asarray, params)}, jnp.asarray(x))
    assert out.dtype == precision
    np.testing.assert_allclose(np.float32(out), x @ params["kernel"] + params["bias"], rtol=0, atol=bound)
