"""Regression: one number for a text. Other heads that give a text a number use the same module."""

from collections.abc import Mapping

import jax.numpy as jnp
from flax import linen as nn
from jax import Array

from jaxenc.execution import Execution
from jaxenc.heads.contract import Head, Label
from jaxenc.layers.dense import Dense
from jaxenc.layers.initializers import Initializer


class Score(nn.Module):
    """One dense layer to a single number."""

    init_kernel: Initializer
    execution: Execution

    @nn.compact
    def __call__(self, pooled: Array) -> Array:
        """[..., width] to [...] in the logits dtype (float32)."""
        dense = Dense(1, ("embed", None), self.init_kernel, self.execution, name="dense")
        return dense(pooled)[..., 0].astype(self.execution.policy.logits)


def loss(values: Array, labels: Mapping[str, Array], counted: Array) -> tuple[Array, Mapping[str, Array]]:
    """The squared error, whose mean is torch's MSELoss, which transformers trains on. values: float32 [batch].

    Raises ValueError for values of another shape than the scores, such as [batch, 1]: their difference would be a matrix.
    """
    score = labels["score"]
    if values.shape != score.shape:
        raise ValueError(f"the predictions have the shape {values.shape} and the scores {score.shape}")
    return jnp.sum((values - score) ** 2 * counted.astype(jnp.float32)), {}


# Its prediction is the value itself, float32 [batch]. Scaling scores, as google-research/electra does, is up to the task.
REGRESSOR = Head(
    name="regressor",
    role="text",
    site=57,
    module=lambda setting: Score(setting.initializer, setting.execution),
    labels=(Label("score", "float32"),),
    loss=loss,
)
