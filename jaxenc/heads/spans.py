"""The start and the end of an answer in the text (Devlin et al. 2018, section 4.2)."""

from collections.abc import Mapping

from jax import Array

from jaxenc import losses
from jaxenc.heads.classifier import Classifier
from jaxenc.heads.contract import Head, Label

ENDS = ("start", "end")


def loss(logits: Array, labels: Mapping[str, Array], counted: Array) -> tuple[Array, Mapping[str, Array]]:
    """The mean of the two cross-entropies over all places of the row, as in transformers' BertForQuestionAnswering, and the mean of the two
    accuracies. logits: float32 [batch, length, 2]."""
    pairs = [losses.cross_entropy(logits[..., i], labels[name], counted) for i, name in enumerate(ENDS)]
    total, correct = (sum(values) / len(ENDS) for values in zip(*pairs, strict=True))
    return total, {"accuracy": correct}


# Its prediction is the logits of both ends, which the search for the best span needs.
SPANS = Head(
    name="spans",
    role="tokens",
    site=38,
    module=lambda setting: Classifier(len(ENDS), setting.initializer, setting.execution),
    labels=tuple(Label(name, bound="length") for name in ENDS),
    loss=loss,
)
