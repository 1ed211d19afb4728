"""An encoder with the heads of fine-tuned models: classes of texts and of tokens, spans of answers (Devlin et al. 2018, section 4)."""

import dataclasses
import math
from collections.abc import Mapping
from typing import ClassVar

import jax.numpy as jnp
from jax import Array

from jaxenc.config import at_least
from jaxenc.data.batch import FIELDS, Field
from jaxenc.errors import UserError
from jaxenc.families.contract import Encoder, EncoderConfig
from jaxenc.heads import Head
from jaxenc.heads.contract import Fitted
from jaxenc.heads.pooler import TANH
from jaxenc.layers import activation
from jaxenc.objectives import choices
from jaxenc.objectives import encoder as encoders
from jaxenc.objectives.base import Objective, ObjectiveConfig, PhaseSetting, Sums
from jaxenc.rng import Keys
from jaxenc.tree import Tree


@dataclasses.dataclass(frozen=True)
class HeadsConfig(ObjectiveConfig[EncoderConfig]):
    """An encoder with any heads, such as those of a fine-tuned model.

    In a pair of networks it uses the one that has these heads: the generator for `mlm`, which cannot be combined with others, and the
    discriminator for all others. Raises UserError for repeated names; `build`, which knows the heads, for heads that do not fit together.

    heads: names of heads, those of `jaxenc.heads` or your own. `classifier`, `regressor`, `multilabel`, `choice` and `next_sentence` read a
        text's vector and need `pooler`, or what the model has in its place (`ModelConfig.pools`): `summary` for XLNet, `last_token` for
        GPT, `first_token` for ELECTRA. RoBERTa's classification head (dense, tanh, out_proj on the first token) is `pooler` and
        `classifier`. `spans` finds both ends of an answer independently; `joint_spans` (google-research/electra) and `beam_spans`
        (zihangdai/xlnet) find the end given the start, and say whether there is an answer. `next_token` is trained too, on the tokens of
        the texts: GPT's auxiliary objective.
    labels: names of the classes, for `classifier`, `multilabel` and `tags`.
    pooler_activation: `tanh` is BERT's and RoBERTa's, `relu` DistilBERT's, `gelu_erf` that of the head that transformers gives ELECTRA.
        That head is dense, GELU, out_proj; google-research/electra has no such layer (`first_token`).
    choices: number of texts in a row, for a head whose label has the bound `choices`; 0 for rows of one text.
    weights: the factor of each head's loss, in the order of `heads`; () for 1 each. With 0 a head is not trained. The number of a head
        without a loss, such as `pooler`, does nothing. GPT's fine-tuning has 0.5 for `next_token` (openai/finetune-transformer-lm train.py,
        lm_coef); there it weighs the mean over texts of their means, here, as in transformers, the mean over tokens.
    dropout: the dropout rate on the input of each head, in the order of `heads`; () for those of the family. `EncoderConfig.head_dropout`
        has them.
    """

    kind: ClassVar[str] = "heads"
    heads: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    pooler_activation: str = TANH
    choices: int = 0
    weights: tuple[float, ...] = ()
    dropout: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if len(set(self.heads)) < len(self.heads):
            raise UserError(f"objective.heads is {', '.join(self.heads)}", fix="name each head once")
        if len(set(self.labels)) < len(self.labels):
            raise UserError("objective.labels names a class twice", fix="give every class a name of its own")
        at_least(0, "objective", self, "choices")
        if self.choices == 1:
            raise UserError(
                "objective.choices is 1, which leaves nothing to choose", fix="set it to 0 for rows of one text, or to 2 or more"
            )
        activation.check(self.pooler_activation, "objective.pooler_activation")
        for name in ("weights", "dropout"):
            if (given := getattr(self, name)) and len(given) != len(self.heads):
                counts = f"objective.{name} has {len(given)} numbers, and objective.heads names {len(self.heads)}"
                raise UserError(counts, fix="give a number for each head, in the order of objective.heads, or none: ()")
        if wrong := [weight for weight in self.weights if not 0 <= weight < math.inf]:
            raise UserError(f"objective.weights holds {wrong[0]}", fix="use finite numbers that are not negative")
        if wrong := [rate for rate in self.dropout if not 0 <= rate < 1]:
            raise UserError(f"objective.dropout holds {wrong[0]}", fix="use rates from 0 up to but not including 1")

    @property
    def classes(self) -> tuple[str, ...]:
        """See `ObjectiveConfig.classes`: `labels`."""
        return self.labels

    def build(self, model: EncoderConfig, setting: PhaseSetting) -> "Heads":
        """The objective, whatever the vocabulary, the data and the predictions. Raises UserError for a name that is not in `heads` and for
        heads that do not fit together."""
        chosen = self.chosen(setting.heads)
        encoder = encoders.of(self.kind, model, [head.name for head in chosen], setting.execution, chosen=True)
        coef = self._coef(chosen)
        for head in chosen:
            if head.name in coef and head.targets and encoder.config.attention != "causal":
                sees = f"model.attention is {encoder.config.attention} and the head {head.name} learns to predict tokens that it then sees"
                raise UserError(sees, fix="set model.attention to causal, or leave the head out")
        rates = dict(zip(self.heads, self.dropout or map(encoder.config.head_dropout, self.heads), strict=True))
        fitted = encoders.fit(encoder, chosen, self.labels, self.pooler_activation, rates)
        return Heads(encoder, fitted, len(self.labels), coef, self.choices)

    def _coef(self, chosen: list[Head]) -> dict[str, float]:
        """{name: factor} of the heads among `chosen` that are trained."""
        weights = dict(zip(self.heads, self.weights or (1.0,) * len(self.heads), strict=True))
        # A softmax over one class is always 1, so such a head has nothing to learn.
        idle = {head.name for head in chosen if len(self.labels) == 1 and any(label.bound == "classes" for label in head.labels)}
        trains = lambda head: (head.loss or head.targets) and weights[head.name] > 0 and head.name not in idle
        return {head.name: weights[head.name] for head in chosen if trains(head)}

    def chosen(self, heads: Mapping[str, Head]) -> list[Head]:
        """The heads that the config names, in the order of `heads`. Raises UserError as `build`."""
        for name in self.heads:
            if name not in heads:
                own = "or a head of your own, where it is passed: load(DIR, heads=...)"
                raise UserError(f"objective.heads holds {name!r}", fix=f"it takes {', '.join(heads)}, {own}")
        chosen = [head for name, head in heads.items() if name in self.heads]
        pools = [head.name for head in chosen if head.role == "pools"]
        if len(pools) > 1:
            raise UserError(f"objective.heads holds {' and '.join(pools)}, and a text has one vector", fix="keep one of them")
        for head in chosen:
            if head.role == "text" and not pools:
                known = " or ".join(name for name, one in heads.items() if one.role == "pools")
                raise UserError(
                    f"objective.heads holds {head.name} without {known}, whose vector it reads", fix="add the one that the model has"
                )
            if head.chooses and not self.choices:
                raise UserError("objective.choices is 0", fix=f"set it to the number of texts of a row, between which {head.name} chooses")
            if self.choices and not head.chooses and (head.loss or head.role in ("tokens", "search")):
                both = f"objective.choices is {self.choices} and objective.heads holds {head.name}"
                raise UserError(f"{both}, which does not choose between texts", fix="set objective.choices to 0, or leave the head out")
        if not self.labels and (classify := [head.name for head in chosen if head.classifies]):
            raise UserError("objective.labels is empty", fix=f"name the classes of {' and '.join(classify)}")
        return chosen


@dataclasses.dataclass(frozen=True)
class Heads(Objective):
    """The weighted sum of the losses of its heads, each a mean over its own labels, on uncorrupted rows.

    `heads.contract.Label` says which labels are ignored; so are padding places and rows, and for a head with several labels the rows or
    tokens where any of them is ignored. A head with `Head.targets` learns from the tokens of all texts. classes: the number of
    `objective.labels`. Parameters: the encoder's, and each head's under its name.

    choices: of a row, 0 for rows of one text (`objectives.choices`). An empty choice is never chosen.
    """

    encoder: Encoder
    heads: encoders.FittedHeads = dataclasses.field()  # must be given: without this it would have the contract's {} as its default
    classes: int
    coef: Mapping[str, float]
    choices: int = 0

    @property
    def trained(self) -> Mapping[str, Fitted]:
        """The heads that have a term in the loss."""
        return {name: one for name, one in self.heads.items() if name in self.coef}

    @property
    def computed(self) -> Mapping[str, Fitted]:
        """The heads that the loss needs: those with a term, and the pooler."""
        return {**encoders.having("pools", self.heads), **self.trained}

    @property
    def fields(self) -> Mapping[str, Field]:
        """The standard fields and the labels of all heads. With choices, the fields of a text have an axis of choices."""
        labels = {label.name: label.field.sized("classes", self.classes) for one in self.heads.values() for label in one.head.fields}
        return {**labels, **FIELDS, **choices.fields(self.choices)}

    @property
    def reads(self) -> Mapping[str, int]:
        config = self.encoder.config
        bounds = {"classes": self.classes, "length": config.positions, "choices": self.choices}
        labels = [label for one in self.trained.values() for label in one.head.labels]
        inputs = [field for one in self.heads.values() for field in one.head.inputs]
        return {**config.inputs, **{field.name: bounds.get(field.bound, field.bound) for field in (*labels, *inputs)}}

    def init(self, key: Array) -> Tree:
        return encoders.init(self.encoder, self.heads, key)

    def corrupt(self, key: Array, one: Mapping[str, Array], step: Array) -> dict[str, Array]:
        return dict(one)

    def weights(self, example: Mapping[str, Array]) -> dict[str, Array]:
        texts = choices.texts(example, self.choices)
        own = lambda head: head.targets(texts["tokens"], texts["segments"])[1]
        counted = lambda head: own(head) if head.targets else counted_labels(head, example)
        return {name: jnp.sum(counted(one.head)) for name, one in self.trained.items()}

    def terms(
        self, params: Tree, carry: Tree, example: Mapping[str, Array], keys: Keys, train: bool
    ) -> tuple[dict[str, Array], Sums, Tree]:
        noise = choices.text_keys(keys, self.choices) if train else None
        texts = choices.texts(example, self.choices)
        states = encoders.read(self.encoder, params, texts, noise)
        labelled = {name: one for name, one in self.computed.items() if not one.head.targets}
        given = encoders.logits(labelled, params, states, texts["segments"], noise)
        terms, metrics = {}, {}
        for name, one in self.trained.items():
            if one.head.targets:
                terms[name], correct, count = encoders.own_tokens(self.encoder, one, params, states, texts)
                metrics |= {f"{name}_loss": (terms[name], count), f"{name}_accuracy": (correct, count)}
                continue
            counted = counted_labels(one.head, example)
            labels = {label.name: jnp.where(counted > 0, example[label.name], 0) for label in one.head.labels}
            if one.head.role == "search":
                logits = encoders.apply(one, params, states.last, example, labels, noise)
            else:
                logits = given["pooled" if one.head.role == "pools" else name].astype(jnp.float32)
                logits = choices.by_row(logits, example, self.choices)
            terms[name], sums = one.head.loss(logits, labels, counted)
            count = jnp.sum(counted).astype(jnp.float32)
            metrics |= {f"{name}_{metric}": (value, count) for metric, value in {"loss": terms[name], **sums}.items()}
        return terms, metrics, carry

    def outputs(self, params: Tree, example: Mapping[str, Array]) -> dict[str, Array]:
        """As the contract says, for single texts: rows with choices are passed as one text a row."""
        return encoders.outputs(self.encoder, self.heads, params, example)

    def attentions(self, params: Tree, example: Mapping[str, Array]) -> Array:
        return encoders.attentions(self.encoder, params, example)

    def predict(self, params: Tree, example: Mapping[str, Array], keys: Keys) -> dict[str, Array]:
        """The predictions of all heads on a text or on tokens and of those that search, trained or not; labels are not read."""
        given = encoders.row_logits(self.encoder, self.heads, params, choices.texts(example, self.choices))
        rows = {name: choices.by_row(logits, example, self.choices) for name, logits in given.items()}
        return encoders.flat({name: self.heads[name].head.prediction(logits) for name, logits in rows.items()})

    def flops(self, length: int) -> float:
        heads = sum(encoders.forward_flops(self.encoder, one, length) for one in self.computed.values())
        return 3 * (self.encoder.forward_flops(length) + heads) * (self.choices or 1)


def counted_labels(head: Head, example: Mapping[str, Array]) -> Array:
    """i32, 1 for each row [batch], token [batch, length] or class [batch, classes] that the head's loss averages over, else 0.

    example: rows with the labels of the head, `segments` among them."""
    real, axis = example["segments"] > 0, head.labels[0].axis
    counted = real if axis == "length" else real.any(axis=tuple(range(1, real.ndim)))
    if axis == "classes":
        counted = counted[:, None]
    for label in head.labels:
        values = example[label.name]
        counted = counted & (~jnp.isnan(values) if label.dtype == "float32" else values >= 0)
        if label.bound == "length":
            counted &= values < real.shape[1]
    return counted.astype(jnp.int32)
