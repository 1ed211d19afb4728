"""Losses as sums over predictions; the trainer divides by the weights of the whole global batch."""

import jax
import jax.numpy as jnp
from jax import Array


def cross_entropy(logits: Array, labels: Array, weights: Array) -> tuple[Array, Array]:
    """(sum of weighted negative log-likelihoods, weighted number of correct predictions), float32 scalars.

    logits: float32 [..., classes]; labels: i32 [...], each below the number of classes; weights: i32 or f32 [...].
    A prediction is correct when no logit is above the label's.
    """
    label_logits = jnp.take_along_axis(logits, labels[..., None], axis=-1)[..., 0]
    losses = jax.nn.logsumexp(logits, axis=-1) - label_logits
    correct = label_logits >= jnp.max(logits, axis=-1)
    weights = weights.astype(jnp.float32)
    return jnp.sum(losses * weights), jnp.sum(correct * weights)
