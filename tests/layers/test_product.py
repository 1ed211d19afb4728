"""Products with a float32 result: values, gradients, and the dtypes that a GPU would multiply in."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxenc.layers.product import wide_product

EQUATION = "bqhd,bkhd->bhqk"


def operands(dtype):
    return [jnp.asarray(x, dtype) for x in np.random.default_rng(0).normal(size=(2, 2, 5, 3, 64))]


@pytest.mark.parametrize("dtype, bound", [("float32", 1e-5), ("bfloat16", 2**-7)])
def test_value_and_gradient(dtype, bound):
    """The value is exact to float32 for either dtype; gradients within the rounding of theirs (relative to the largest)."""
    a, b = operands(dtype)
    wide = [np.float64(x) for x in (a, b)]
    out, pull = jax.vjp(lambda a, b: wide_product(EQUATION, a, b), a, b)
    assert out.dtype == jnp.float32
    np.testing.assert_allclose(out, np.einsum(EQUATION, *wide), rtol=0, atol=2e-5)
    slope = np.random.default_rng(1).normal(size=out.shape).astype(np.float32)
    expected = np.einsum("bhqk,bkhd->bqhd", slope, wide[1]), np.einsum("bhqk,bqhd->bkhd", slope, wide[0])
    for actual, truth in zip(pull(jnp.asarray(slope)), expected, strict=True):
        assert actual.dtype == dtype
        np.testing.assert_allclose(np.float64(actual), truth, rtol=0, atol=bound * np.abs(truth).max())


def test_every_product_takes_bfloat16_operands():
    """Forward and backward: no float32 array enters a dot_general."""
    step = jax.jit(jax.value_and_grad(lambda a, b: jnp.square(wide_product(EQUATION, a, b)).sum(), argnums=(0, 1)))
    text = step.lower(*operands("bfloat16")).as_text()
    products = re.findall(r"dot_general .* : \((.*)\) -> tensor<[\dx]*(\w+)>", text)
    assert [result for _, result in products] == ["f32", "bf16", "bf16"]
    assert all(re.findall("(f32|bf16)", inputs) == ["bf16", "bf16"] for inputs, _ in products)
