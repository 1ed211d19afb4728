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
    largest and no overflow at a small T. An id whose logit is `layers.heads.NEVER` is not drawn.
    """
    return jnp.argmax(jax.lax.stop_gradient(logits) + temperature * noise, axis=-1).astype(jnp.int32)


def replaced(original: Array, at: Array, chosen: Array, samples: Array) -> Array:
    """The rows with the samples at their places, i32 [batch, length].

    original: i32 [batch, length]; at, chosen, samples: i32 [batch, predictions]; where chosen is 0, nothing changes. Of the draws that
    fell on one place the first gives the sample. google-research/electra takes the mean of all their ids there, rounded down
    (pretrain/pretrain_helpers.py, scatter_update), which is the id of no draw.
    """
    slots = jnp.arange(at.shape[1])
    same = (at[:, :, None] == at[:, None, :]) & (chosen[:, None, :] > 0) & (slots[None, :] < slots[:, None])
    first = (chosen > 0) & ~jnp.any(same, axis=2)
    put = lambda row, places, ids: row.at[places].set(ids, mode="drop")
    return jax.vmap(put)(original, jnp.where(first, at, original.shape[1]), samples)
