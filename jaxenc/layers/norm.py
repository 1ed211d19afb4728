"""Layer normalisation."""

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
        x = x.astype(policy.params)
        centred = x - jnp.mean(x, axis=-1, keepdims=True)
        variance = jnp.mean(jnp.square(centred), axis=-1, keepdims=True)
        scaled = centred * jax.lax.rsqrt(variance + self.epsilon) * scale
        return (scaled if bias is None else scaled + bias).astype(policy.compute)
