"""Classification of a text: one dense layer on its vector. Other heads that classify use the same module and loss."""

from collections.abc import Mapping

import jax
from flax import linen as nn
from jax import Array

from jaxenc import losses
from jaxenc.execution import Execution
from jaxenc.heads.contract import Head, Label, Loss
from jaxenc.layers.dense import Dense
from jaxenc.layers.initializers import Initializer


class Classifier(nn.Module):
    """One dense layer to `classes` logits. With 2 classes, 0 = next and 1 = random, it is the next-sentence head (Devlin et al. 2018)."""

    classes: int
    init_kernel: Initializer
    execution: Execution

    @nn.compact
    def __call__(self, pooled: Array) -> Array:
        """[..., width] to logits [..., classes] in the logits dtype (float32)."""
        dense = Dense(self.classes, ("embed", None), self.init_kernel, self.execution, name="dense")
        return dense(pooled).astype(self.execution.policy.logits)


def loss_of(field: str) -> Loss:
    """The cross-entropy of the label `field`, with the metric `accuracy`."""

    def loss(logits: Array, labels: Mapping[str, Array], counted: Array) -> tuple[Array, Mapping[str, Array]]:
        total, correct = losses.cross_entropy(logits, labels[field], counted)
        return total, {"accuracy": correct}

    return loss


# Its prediction is the probability of each class, float32 [batch, classes].
CLASSIFIER = Head(
    name="classifier",
    role="text",
    site=36,
    module=lambda setting: Classifier(len(setting.labels), setting.initializer, setting.execution),
    labels=(Label("label", bound="classes"),),
    loss=loss_of("label"),
    prediction=jax.nn.softmax,
)
