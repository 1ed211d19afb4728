"""The hidden state of the last token of a text, without a layer of its own."""

import jax.numpy as jnp
from flax import linen as nn
from jax import Array

from jaxenc.heads.contract import Head


class LastToken(nn.Module):
    """The hidden state of a text's last token: the vector that a causal model has of a text, since only that token sees all of it
    (openai/finetune-transformer-lm train.py, model, where the last token is _classify_). It has no parameters."""

    def __call__(self, hidden: Array, segments: Array) -> Array:
        """[batch, length, width] to [batch, width]. segments: i32 [batch, length], 0 = padding."""
        return jnp.take_along_axis(hidden, last_places(segments)[:, None, None], axis=1)[:, 0]


def last_places(segments: Array) -> Array:
    """i32 [batch], the place of the last token that is not padding, 0 in a row of padding alone. segments: i32 [batch, length]."""
    return jnp.max(jnp.where(segments > 0, jnp.arange(segments.shape[1]), 0), axis=1)


LAST_TOKEN = Head(name="last_token", role="pools", site=51, module=lambda setting: LastToken())
