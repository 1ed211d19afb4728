"""An encoder with the heads that fine-tuned models have: classes of texts, of tokens, spans of answers (Devlin et al. 2018, section 4)."""

import dataclasses
from collections.abc import Mapping
from typing import ClassVar

import jax.numpy as jnp
from jax import Array

from jaxenc.data.sources import DataConfig
from jaxenc.data.vocabulary import Vocabulary
from jaxenc.errors import UserError
from jaxenc.execution import Execution
from jaxenc.families.contract import Encoder, EncoderConfig
from jaxenc.layers import activation
from jaxenc.objectives import encoder as encoders
from jaxenc.objectives import losses
from jaxenc.objectives.base import Objective, ObjectiveConfig, Sums
from jaxenc.rng import Keys
from jaxenc.tree import Tree

NAMES = tuple(encoders.ROLES)

# The batch fields that hold what a head should have said. The other heads have no loss here.
LABELS = {"classifier": ("label",), "tags": ("tags",), "spans": ("start", "end")}


@dataclasses.dataclass(frozen=True)
class HeadsConfig(ObjectiveConfig[EncoderConfig]):
    """heads: any of NAMES. `classifier` and `next_sentence` read a text's vector and need `pooler`, or `summary`, which XLNet has in its
    place; RoBERTa's classification head (dense, tanh, out_proj on the first token) is `pooler` and `classifier`.

    labels: the names of the classes, for `classifier` and `tags`. pooler_activation: `tanh` is BERT's and RoBERTa's, `gelu_erf` that of
    the classification head that transformers gives ELECTRA (dense, GELU, out_proj); google-research/electra has no such layer.
    An ELECTRA is the network that has these heads: the generator for `mlm`, which stands alone, the discriminator for all others.
    Raises UserError for heads that do not go together.
    """

    kind: ClassVar[str] = "heads"
    heads: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    pooler_activation: str = encoders.POOLER

    def __post_init__(self) -> None:
        for name in self.heads:
            if name not in NAMES:
                raise UserError(f"objective.heads holds {name!r}: it takes {', '.join(NAMES)}")
            if encoders.ROLES[name] == "text" and not encoders.having("pools", self.heads):
                raise UserError(f"objective.heads holds {name} without pooler, or XLNet's summary, whose vector it reads: add it")
        if len(set(self.heads)) < len(self.heads):
            raise UserError(f"objective.heads is {', '.join(self.heads)}: name each head once")
        if len(set(self.labels)) < len(self.labels):
            raise UserError("objective.labels names a class twice: every class has a name of its own")
        if not self.labels and {"classifier", "tags"} & set(self.heads):
            raise UserError("objective.labels is empty: name the classes of the classifier or the tags")
        activation.check(self.pooler_activation, "objective.pooler_activation")

    def build(self, model: EncoderConfig, vocabulary: Vocabulary, execution: Execution, data: DataConfig, max_predictions: int) -> "Heads":
        """The objective; no number of it depends on the vocabulary, the data or the predictions."""
        names = [name for name in NAMES if name in self.heads]
        encoder = encoders.of(self.kind, model, names, execution)
        heads = encoders.made(names, encoder, len(self.labels), self.pooler_activation)
        # A softmax over one class is 1 whatever the model says: that head has nothing to learn.
        coef = {name: 1.0 for name in heads if name in LABELS and heads[name].classes > 1}
        return Heads(encoder, heads, coef)


@dataclasses.dataclass(frozen=True)
class Heads(Objective):
    """The sum of the losses of its classifiers, each a mean over its own labels, on rows that nothing corrupts.

    `label` i32 [batch] and `tags` i32 [batch, length] are classes, -1 = not counted; padded places and rows never count. `start` and
    `end` i32 [batch] are positions in the row; a row whose answer lies outside of it (-1, or past its end) is not counted. The loss of a
    span is the mean of both cross-entropies over all positions of the row, as in transformers' BertForQuestionAnswering.
    Parameters: the encoder's own, and each head's under its name.
    """

    encoder: Encoder
    heads: encoders.Heads = dataclasses.field()  # must be given: without this it would have the contract's {} as its default
    coef: Mapping[str, float]

    @property
    def reads(self) -> Mapping[str, int]:
        config = self.encoder.config
        inputs = {"tokens": config.vocab_size, "types": config.types, "positions": config.positions, "segments": 0}
        classes = lambda name: config.positions if name == "spans" else self.heads[name].classes
        return {**inputs, **{field: classes(name) for name in self.coef for field in LABELS[name]}}

    def init(self, key: Array) -> Tree:
        return encoders.init(self.encoder, self.heads, key)

    def corrupt(self, key: Array, one: Mapping[str, Array], step: Array) -> dict[str, Array]:
        return dict(one)

    def weights(self, example: Mapping[str, Array]) -> dict[str, Array]:
        return {name: jnp.sum(_counted(name, example)) for name in self.coef}

    def terms(
        self, params: Tree, carry: Tree, example: Mapping[str, Array], keys: Keys, train: bool
    ) -> tuple[dict[str, Array], Sums, Tree]:
        noise = keys if train else None
        hidden = encoders.hidden(self.encoder, params, example, noise)
        trained = {name: head for name, head in self.heads.items() if encoders.ROLES[name] == "pools" or name in self.coef}
        given = encoders.pool_and_classify(self.encoder.config, trained, params, hidden, example["segments"], noise)
        terms, metrics = {}, {}
        for name in self.coef:
            counted = _counted(name, example)
            terms[name], correct = _loss(name, given[name], example, counted)
            count = jnp.sum(counted).astype(jnp.float32)
            metrics |= {f"{name}_loss": (terms[name], count), f"{name}_accuracy": (correct, count)}
        return terms, metrics, carry

    def outputs(self, params: Tree, example: Mapping[str, Array]) -> dict[str, Array]:
        return encoders.outputs(self.encoder, self.heads, params, example)

    def flops(self, length: int) -> float:
        width = self.encoder.width
        heads = 2.0 * width * width * len(encoders.having("pools", self.heads))
        heads += sum(2.0 * width * self.heads[name].classes * (1 if encoders.ROLES[name] == "text" else length) for name in self.coef)
        return 3 * (self.encoder.forward_flops(length) + heads)


def _counted(name: str, example: Mapping[str, Array]) -> Array:
    """i32, 1 for each label of a head that its loss averages over: [batch], or [batch, length] for tags."""
    real = example["segments"] > 0
    counted = real if name == "tags" else real.any(axis=1)
    for field in LABELS[name]:
        counted &= example[field] >= 0
        if name == "spans":
            counted &= example[field] < real.shape[1]
    return counted.astype(jnp.int32)


def _loss(name: str, logits: Array, example: Mapping[str, Array], counted: Array) -> tuple[Array, Array]:
    """(sum of losses, number of right answers) of one head; a span is as right as both its ends are on average."""
    labels = [jnp.where(counted > 0, example[field], 0) for field in LABELS[name]]
    parts = [logits] if len(labels) == 1 else [logits[..., i] for i in range(len(labels))]
    pairs = [losses.cross_entropy(part, label, counted) for part, label in zip(parts, labels, strict=True)]
    return tuple(sum(values) / len(pairs) for values in zip(*pairs, strict=True))
