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


def binary_cross_entropy(logits: Array, labels: Array, weights: Array) -> Array:
    """Sum of weighted negative log-likelihoods of `labels`, 0 or 1, under sigmoid(logits); a float32 scalar.

    logits: float32 [...]; labels: i32 [...]; weights: i32 or f32 [...]. Finite for any finite logit.
    """
    losses = jax.nn.softplus(logits) - labels * logits
    return jnp.sum(losses * weights.astype(jnp.float32))


def copy_cross_entropy(logits: Array, copy: Array, given: Array, labels: Array, weights: Array) -> tuple[Array, Array]:
    """As `cross_entropy`, for the mixture in which class w has the probability D · [w = given] + (1 - D) · softmax(logits)[w], with
    D = sigmoid(copy) (Clark et al. 2020, section 3.4).

    logits: float32 [..., classes]; copy: float32 [...]; given, labels: i32 [...]; weights: i32 or f32 [...]. Computed in logarithms:
    loss and gradient are finite for any finite logits, also where D is 0 or 1 in float32.
    """
    scale, keep, other = jax.nn.logsumexp(logits, axis=-1), jax.nn.log_sigmoid(copy), jax.nn.log_sigmoid(-copy)
    softmax = lambda classes: jnp.take_along_axis(logits, classes[..., None], axis=-1)[..., 0] - scale
    of_given = jnp.logaddexp(keep, other + softmax(given))
    of_label = jnp.where(labels == given, of_given, other + softmax(labels))
    best = jnp.maximum(of_given, other + jnp.max(logits, axis=-1) - scale)
    weights = weights.astype(jnp.float32)
    return jnp.sum(-of_label * weights), jnp.sum((of_label >= best) * weights)


def entropy(logits: Array, weights: Array) -> Array:
    """Weighted sum of the entropies, in nats, of softmax(logits) float32 [..., classes]; a float32 scalar without a gradient."""
    log_p = jax.nn.log_softmax(jax.lax.stop_gradient(logits), axis=-1)
    return jnp.sum(-jnp.sum(jnp.exp(log_p) * log_p, axis=-1) * weights.astype(jnp.float32))
