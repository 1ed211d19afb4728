"""Classification of a text by any number of labels: each is there or not, whatever the others are."""

from collections.abc import Mapping

import jax
import jax.numpy as jnp
from jax import Array

from jaxenc import losses
from jaxenc.heads.classifier import Classifier
from jaxenc.heads.contract import Head, Label


def loss(logits: Array, labels: Mapping[str, Array], counted: Array) -> tuple[Array, Mapping[str, Array]]:
    """The binary cross-entropy of each pair of a row and a class, whose mean over pairs is torch's BCEWithLogitsLoss; transformers trains
    on it for `multi_label_classification`. The metric `accuracy` is over pairs. logits: float32 [batch, classes]."""
    there = labels["classes"]
    correct = jnp.sum(((logits > 0) == (there > 0)) * counted.astype(jnp.float32))
    return losses.binary_cross_entropy(logits, there, counted), {"accuracy": correct}


# Its prediction is the probability of each class, float32 [batch, classes].
MULTILABEL = Head(
    name="multilabel",
    role="text",
    site=58,
    module=lambda setting: Classifier(len(setting.labels), setting.initializer, setting.execution),
    labels=(Label("classes", axis="classes", bound=2),),
    loss=loss,
    prediction=jax.nn.sigmoid,
)
