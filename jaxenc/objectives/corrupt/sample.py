"""What a generator puts in place of the tokens that it predicts: draws from its own distribution (Clark et al. 2020, section 2)."""

import jax
import jax.numpy as jnp
from jax import Array


def gumbel(keys: Array, predictions: int, vocab: int) -> Array:
    """Standard Gumbel noise float32 [batch, predictions, vocab]; keys: one typed key a row, and a row's noise depends on its key alone."""
    return jax.vmap(lambda key: jax.random.gumbel(key, (predictions, vocab), jnp.float32))(keys)


def draw(logits: Array, noise: Array, temperature: float) -> Array:
    """i32 [...], one id of each softmax(logits / temperature), without a gradient; logits, noise: float32 [..., vocab].

    The largest of logits / T + noise has that distribution (Gumbel 1954). It is written as logits + T · noise, which has the same
    largest and no overflow at a small T. An id whose logit is `layers.softmax.NEVER` is not drawn.
    """
    return jnp.argmax(jax.lax.stop_gradient(logits) + temperature * noise, axis=-1).astype(jnp.int32)


def uniform(keys: Array, predictions: int, vocab: int) -> Array:
    """Ids i32 [batch, predictions], each of 0 .. vocab - 1 alike; keys: one typed key a row, and a row's ids depend on its key alone."""
    return jax.vmap(lambda key: jax.random.randint(key, (predictions,), 0, vocab, jnp.int32))(keys)


def first(at: Array, chosen: Array) -> Array:
    """bool [batch, predictions]: the first draw of each place that was chosen; at, chosen: i32 [batch, predictions]."""
    slots = jnp.arange(at.shape[1])
    same = (at[:, :, None] == at[:, None, :]) & (chosen[:, None, :] > 0) & (slots[None, :] < slots[:, None])
    return (chosen > 0) & ~jnp.any(same, axis=2)


def places(at: Array, chosen: Array, length: int) -> Array:
    """i32 [batch, length], 1 at the places that were chosen, however often; at, chosen: i32 [batch, predictions]."""
    mark = lambda row: jnp.zeros(length, jnp.int32).at[row].set(1, mode="drop")
    return jax.vmap(mark)(jnp.where(chosen > 0, at, length))


def replaced(original: Array, at: Array, chosen: Array, samples: Array) -> Array:
    """The rows with the samples at their places, i32 [batch, length].

    original: i32 [batch, length]; at, chosen, samples: i32 [batch, predictions]; where chosen is 0, nothing changes. Of the draws that
    fell on one place the first gives the sample. google-research/electra takes the mean of all their ids there, rounded down
    (pretrain/pretrain_helpers.py, scatter_update), which is the id of no draw.
    """
    put = lambda row, places, ids: row.at[places].set(ids, mode="drop")
    return jax.vmap(put)(original, jnp.where(first(at, chosen), at, original.shape[1]), samples)
