"""The scalar mix: one vector a token from all layers of a model (Peters et al. 2018, equation 1)."""

import jax
import jax.numpy as jnp
from flax import linen as nn
from jax import Array

from jaxenc.layers import initializers
from jaxenc.tree import Tree

EPSILON = 1e-12


class ScalarMix(nn.Module):
    """gamma · sum over layers of softmax(weights) · hidden.

    Parameters: `weights` [layers], from 0, so that training starts at the average, and `gamma` [], from 1. layer_norm: each layer is
    normalised first (`normalised`). Works on the hidden states of any model, such as `Objective.outputs` gives.
    """

    layer_norm: bool = False

    @nn.compact
    def __call__(self, hidden: Array, mask: Array) -> Array:
        """float32 [..., width] of hidden [layers, ..., width]. mask: [...], 0 = a token that does not count in the norm's statistics."""
        weights = self.param("weights", nn.with_logical_partitioning(initializers.zeros, (None,)), hidden.shape[:1], jnp.float32)
        gamma = self.param("gamma", nn.with_logical_partitioning(initializers.ones, ()), (), jnp.float32)
        return mixed(weights, gamma, hidden, mask, self.layer_norm)


def mixed(weights: Array, gamma: Array, hidden: Array, mask: Array, layer_norm: bool) -> Array:
    """What `ScalarMix` computes with these parameters."""
    hidden = hidden.astype(jnp.float32)
    layers = normalised(hidden, mask) if layer_norm else hidden
    return gamma * jnp.tensordot(jax.nn.softmax(weights), layers, axes=1, precision="highest")


def normalised(hidden: Array, mask: Array) -> Array:
    """Each layer minus its mean, over its deviation: one mean and one variance of all dimensions of all tokens that `mask` counts.

    As published (allenai/bilm-tf bilm/elmo.py; allennlp modules/scalar_mix.py): no scale and no bias to learn. A masked token is
    normalised with the others' statistics; where no token counts, values stay as they are but for the factor 1 / sqrt(EPSILON).
    """
    counted = (mask > 0)[..., None].astype(hidden.dtype)
    axes = tuple(range(1, hidden.ndim))
    count = jnp.maximum(jnp.sum(counted) * hidden.shape[-1], 1.0)
    centred = hidden - jnp.sum(hidden * counted, axis=axes, keepdims=True) / count
    variance = jnp.sum(jnp.square(centred * counted), axis=axes, keepdims=True) / count
    return centred * jax.lax.rsqrt(variance + EPSILON)


def regulariser(params: Tree, strength: float) -> Array:
    """strength · sum of squares of the weights before their softmax (Peters et al. 2018, section 3.4): 1 holds the mix at the average,
    0.001 lets the layers' shares move. gamma is free. params: of one `ScalarMix`."""
    return strength * jnp.sum(jnp.square(params["weights"]))
