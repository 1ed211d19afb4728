"""Matrix products with a float32 result and a backward pass in the compute dtype."""

import functools

import jax
import jax.numpy as jnp
from jax import Array


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def wide_product(equation: str, a: Array, b: Array) -> Array:
    """einsum(equation, a, b) as float32, for scores and logits; a and b share one dtype.

    The gradient is rounded to that dtype before it meets a and b. Left float32, it would turn both products of the backward pass
    into float32 products, at half the speed or less on a GPU, for digits that the bfloat16 operands do not have.
    """
    return jnp.einsum(equation, a, b, preferred_element_type=jnp.float32)


def _forward(equation: str, a: Array, b: Array) -> tuple[Array, tuple[Array, Array]]:
    return wide_product(equation, a, b), (a, b)


def _backward(equation: str, operands: tuple[Array, Array], slope: Array) -> tuple[Array, Array]:
    a, b = operands
    slope = slope.astype(a.dtype)
    (left,) = jax.linear_transpose(lambda a: jnp.einsum(equation, a, b), a)(slope)
    (right,) = jax.linear_transpose(lambda b: jnp.einsum(equation, a, b), b)(slope)
    return left, right


wide_product.defvjp(_forward, _backward)
