"""Layer normalisation."""

import functools

import jax
import jax.numpy as jnp
from flax import linen as nn
from jax import Array

from jaxenc.execution import Execution
from jaxenc.layers import initializers


class LayerNorm(nn.Module):
    """(x - mean) / sqrt(variance + epsilon) · scale + bias over the last axis (Ba et al. 2016).

    Computed in float32, in which BERT's epsilon of 1e-12 is not lost, with the variance around the mean: the shortcut E[x²] - E[x]² loses
    the digits that parity at 1e-5 needs as soon as the mean is larger than the spread. use_bias: False for no bias.
    """

    epsilon: float
    execution: Execution
    use_bias: bool = True

    @nn.compact
    def __call__(self, x: Array) -> Array:
        """[..., features] of any float dtype to the same shape in the compute dtype."""
        policy = self.execution.policy
        scale = self.param("scale", nn.with_logical_partitioning(initializers.ones, ("norm",)), x.shape[-1:], policy.params)
        bias = None
        if self.use_bias:
            bias = self.param("bias", nn.with_logical_partitioning(initializers.zeros, ("norm",)), x.shape[-1:], policy.params)
        if policy.compute != policy.params:
            return _narrow(self.epsilon, x, scale, jnp.zeros_like(scale) if bias is None else bias).astype(policy.compute)
        x = x.astype(policy.params)
        centred = x - jnp.mean(x, axis=-1, keepdims=True)
        variance = jnp.mean(jnp.square(centred), axis=-1, keepdims=True)
        scaled = centred * jax.lax.rsqrt(variance + self.epsilon) * scale
        return (scaled if bias is None else scaled + bias).astype(policy.compute)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _narrow(epsilon: float, x: Array, scale: Array, bias: Array) -> Array:
    """The norm in the dtype of `scale`, for a result that is rounded to a narrower one. Its backward pass keeps each row's mean and inverse
    deviation, so that the gradients of scale and bias are one pass over x and the slope. Otherwise XLA computes the mean again, which it
    cannot fuse with sums over rows, and writes a float32 array as large as x first."""
    return _forward(epsilon, x, scale, bias)[0]


def _forward(epsilon: float, x: Array, scale: Array, bias: Array) -> tuple[Array, tuple[Array, ...]]:
    wide = x.astype(scale.dtype)
    mean = jnp.mean(wide, axis=-1, keepdims=True)
    centred = wide - mean
    inverse = jax.lax.rsqrt(jnp.mean(jnp.square(centred), axis=-1, keepdims=True) + epsilon)
    return centred * inverse * scale + bias, (x, scale, mean, inverse)


def _backward(epsilon: float, kept: tuple[Array, ...], slope: Array) -> tuple[Array, Array, Array]:
    x, scale, mean, inverse = kept
    mean, inverse = jax.lax.optimization_barrier((mean, inverse))
    normal, rows = (x.astype(scale.dtype) - mean) * inverse, tuple(range(x.ndim - 1))
    of_normal = slope * scale
    shared = jnp.mean(of_normal, axis=-1, keepdims=True) + normal * jnp.mean(of_normal * normal, axis=-1, keepdims=True)
    of_x = (inverse * (of_normal - shared)).astype(x.dtype)
    return of_x, jnp.sum(slope * normal, axis=rows), jnp.sum(slope, axis=rows)


_narrow.defvjp(_forward, _backward)
