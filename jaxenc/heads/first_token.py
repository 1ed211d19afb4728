"""The hidden state of the first token of a text, without a layer of its own."""

from flax import linen as nn
from jax import Array

from jaxenc.heads.contract import Head


class FirstToken(nn.Module):
    """hidden[:, 0]: the vector of a text in google-research/electra (model/modeling.py, get_pooled_output), whose classifier is one dense
    layer on it. It has no parameters."""

    def __call__(self, hidden: Array, segments: Array) -> Array:
        """[batch, length, width] to [batch, width]. The first token is never padding, so `segments` is not read."""
        return hidden[:, 0]


FIRST_TOKEN = Head(name="first_token", role="pools", site=56, module=lambda setting: FirstToken(), reads_first=True)
