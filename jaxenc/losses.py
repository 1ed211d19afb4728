"""Losses as sums over predictions; the trainer divides by the weights of the whole global batch."""

import functools

import jax
import jax.numpy as jnp
from jax import Array


def cross_entropy(logits: Array, labels: Array, weights: Array) -> tuple[Array, Array]:
    """(sum of weighted negative log-likelihoods, weighted number of correct predictions), float32 scalars.

    logits: float32 [..., classes]; labels: i32 [...], each below the number of classes; weights: i32 or f32 [...].
    A prediction is correct when no logit is above the label's.
    """
    label_logits = _at(logits, labels)
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
    softmax = lambda classes: _at(logits, classes) - scale
    of_given = jnp.logaddexp(keep, other + softmax(given))
    of_label = jnp.where(labels == given, of_given, other + softmax(labels))
    best = jnp.maximum(of_given, other + jnp.max(logits, axis=-1) - scale)
    weights = weights.astype(jnp.float32)
    return jnp.sum(-of_label * weights), jnp.sum((of_label >= best) * weights)


def entropy(logits: Array, weights: Array) -> Array:
    """Weighted sum of the entropies, in nats, of softmax(logits) float32 [..., classes]; a float32 scalar without a gradient."""
    log_p = jax.nn.log_softmax(jax.lax.stop_gradient(logits), axis=-1)
    return jnp.sum(-jnp.sum(jnp.exp(log_p) * log_p, axis=-1) * weights.astype(jnp.float32))


def divergence(logits: Array, target: Array, weights: Array, temperature: float) -> Array:
    """Weighted sum of T² · KL(softmax(target / T) ‖ softmax(logits / T)), in nats; a float32 scalar. T² keeps the size of the gradient at
    any temperature T (Hinton et al. 2015, section 2).

    logits, target: float32 [..., classes], finite; weights: i32 or f32 [...]. There is no gradient with respect to `target`.
    """
    log_q = jax.nn.log_softmax(logits / temperature, axis=-1)
    log_p = jax.nn.log_softmax(jax.lax.stop_gradient(target) / temperature, axis=-1)
    return temperature**2 * jnp.sum(jnp.sum(jnp.exp(log_p) * (log_p - log_q), axis=-1) * weights.astype(jnp.float32))


def cosine_distance(left: Array, right: Array, weights: Array) -> Array:
    """Weighted sum of 1 - cosine of pairs of vectors [..., width]; a float32 scalar. weights: i32 or f32 [...]. 1e-12 is added to both
    squared norms, as torch's CosineEmbeddingLoss adds it, so vectors of zeros have a distance of 1 and a finite gradient."""
    left, right = left.astype(jnp.float32), right.astype(jnp.float32)
    norms = jnp.sqrt((jnp.sum(left**2, axis=-1) + 1e-12) * (jnp.sum(right**2, axis=-1) + 1e-12))
    return jnp.sum((1 - jnp.sum(left * right, axis=-1) / norms) * weights.astype(jnp.float32))


def _at(logits: Array, classes: Array) -> Array:
    """The logit of one class: [..., classes] and i32 [...] to [...]."""
    return _pick(logits.shape[-1], logits, jnp.asarray(classes))


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _pick(count: int, logits: Array, classes: Array) -> Array:
    return jnp.take_along_axis(logits, classes[..., None], axis=-1)[..., 0]


def _pick_forward(count: int, logits: Array, classes: Array) -> tuple[Array, Array]:
    return jnp.take_along_axis(logits, classes[..., None], axis=-1)[..., 0], classes


def _pick_backward(count: int, classes: Array, slope: Array) -> tuple[Array, None]:
    # A comparison instead of a scatter: XLA fuses it with the gradient of the softmax instead of writing all logits twice more.
    return jnp.where(jnp.arange(count) == classes[..., None], slope[..., None], 0), None


_pick.defvjp(_pick_forward, _pick_backward)
