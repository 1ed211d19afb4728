"""Masked language modelling on rows of a generator (Clark et al. 2020, section 3.4): Replace MLM and All-Tokens MLM."""

import dataclasses
from collections.abc import Mapping
from typing import ClassVar

import jax.numpy as jnp
from jax import Array

from jaxenc import losses, rng
from jaxenc.errors import UserError
from jaxenc.families.contract import Encoder, ModelConfig
from jaxenc.families.states import States
from jaxenc.heads.masked_lm import MASKED_LM
from jaxenc.heads.replaced import REPLACED
from jaxenc.objectives import encoder as encoders
from jaxenc.objectives import parts
from jaxenc.objectives.base import Objective, PhaseSetting, Sums
from jaxenc.objectives.corrupt import sample
from jaxenc.objectives.generator import LearnedGenerator, ReplacingConfig
from jaxenc.objectives.mlm import head_flops
from jaxenc.rng import Keys
from jaxenc.tree import Tree

PREDICTS = ("chosen", "all")
# Two heads that only this objective has, with the modules of others: the softmax, and the logit of the copy probability D.
SOFTMAX = dataclasses.replace(MASKED_LM, name="replaced_mlm", site=rng.SITES["replaced_mlm"])
COPY = dataclasses.replace(REPLACED, name="copy", site=rng.SITES["copy"])


@dataclasses.dataclass(frozen=True)
class ReplacedMlmConfig(ReplacingConfig):
    """Masked language modelling on rows of a generator. Replaced tokens are as ReplacingConfig says.

    The code of the two variants in the paper was not published; details that the paper leaves open are decided here.

    predicts: the original token of the `chosen` places (Replace MLM), or of `all` real tokens with a copy mechanism (All-Tokens MLM).
    replaced_mlm_coef: weight of that loss. The paper names none; 1 is the weight of the generator's softmax.
    """

    kind: ClassVar[str] = "replaced_mlm"
    trains: ClassVar[tuple[str, ...]] = ()
    predicts: str = "chosen"
    replaced_mlm_coef: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.predicts not in PREDICTS:
            raise UserError(f"objective.predicts is {self.predicts!r}", fix=f"use {' or '.join(PREDICTS)}")

    def build(self, model: ModelConfig, setting: PhaseSetting) -> "ReplacedMlm":
        """The objective of one phase. Raises UserError for a model that is not a pair."""
        networks = self.networks(model, setting.execution)
        encoder = networks.discriminator
        generator = self.learned(networks.generator, setting.vocabulary, setting.data.length, setting.max_predictions)
        own = encoders.fit(encoder, (SOFTMAX, COPY) if self.predicts == "all" else (SOFTMAX,))
        return ReplacedMlm(generator, encoder, own, {"mlm": self.mlm_coef, "replaced_mlm": self.replaced_mlm_coef})


@dataclasses.dataclass(frozen=True)
class ReplacedMlm(Objective):
    """The generator learns to predict the masked tokens, the other network to predict the original tokens of rows with its samples.

    With the head `copy` it predicts every token but padding, also [CLS] and [SEP]: the head, which has the layers of the replaced-token
    head, outputs the probability D that a token is the original one, and the model's probability of w is D · [w = the input token] + (1 -
    D) · softmax(w). Without it, it predicts the chosen places, each once even if drawn twice. Parameters: the generator's, the other
    network's, `replaced_mlm` and `copy`.
    """

    generator: LearnedGenerator
    encoder: Encoder
    own_heads: encoders.FittedHeads
    coef: Mapping[str, float]

    @property
    def predicts_all(self) -> bool:
        """Whether every token but padding is predicted, not only the chosen places."""
        return "copy" in self.own_heads

    @property
    def heads(self) -> encoders.FittedHeads:
        """The heads of both networks by their names in the parameter tree."""
        return {**self.generator.heads, **self.own_heads}

    @property
    def scaffold(self) -> tuple[str, ...]:
        """The generator and its head."""
        return ("generator", *self.generator.heads)

    @property
    def reads(self) -> Mapping[str, int]:
        return self.generator.reads

    def init(self, key: Array) -> Tree:
        return {**self.generator.init(key), **encoders.init(self.encoder, self.own_heads, key, "discriminator")}

    def corrupt(self, key: Array, one: Mapping[str, Array], step: Array) -> dict[str, Array]:
        return self.generator.corrupt(key, one, step)

    def weights(self, example: Mapping[str, Array]) -> dict[str, Array]:
        return {**self.generator.weights(example), "replaced_mlm": jnp.sum(self.counted(example))}

    def counted(self, example: Mapping[str, Array]) -> Array:
        """i32 [batch, length], 1 for a token whose original is predicted."""
        if self.predicts_all:
            return (example["segments"] > 0).astype(jnp.int32)
        return sample.places(example["masked_at"], example["masked"], example["segments"].shape[1])

    def terms(
        self, params: Tree, carry: Tree, example: Mapping[str, Array], keys: Keys, train: bool
    ) -> tuple[dict[str, Array], Sums, Tree]:
        tokens, terms, metrics = self.generator.replace(params, example, keys, train)
        states = encoders.read(self.encoder, params, {**example, "tokens": tokens}, keys if train else None)
        loss, correct = (self.of_all if self.predicts_all else self.of_chosen)(params, states, tokens, example)
        counted = self.counted(example)
        count, wrong = (jnp.sum(which).astype(jnp.float32) for which in (counted, counted * (tokens != example["original"])))
        own = {"replaced": (wrong, count), "replaced_mlm_loss": (loss, count), "replaced_mlm_accuracy": (correct, count)}
        return {**terms, "replaced_mlm": loss}, {**metrics, **own}, carry

    def of_chosen(self, params: Tree, states: States, tokens: Array, example: Mapping[str, Array]) -> tuple[Array, Array]:
        """(sum of losses, number of correct predictions) of the softmax at the chosen places."""
        at = example["masked_at"]
        logits = self.softmax_logits(params, jnp.take_along_axis(states.last, at[..., None], axis=1), states.table)
        return losses.cross_entropy(logits, example["masked_ids"], sample.first(at, example["masked"]))

    def of_all(self, params: Tree, states: States, tokens: Array, example: Mapping[str, Array]) -> tuple[Array, Array]:
        """As `of_chosen`, for the mixture at all tokens but padding. Places are processed in parts of as many as the generator predicts in
        a row, so the logits take no more memory than the generator's."""

        def some(hidden: Array, tokens: Array, original: Array, counted: Array) -> tuple[Array, Array]:
            copy = encoders.apply(self.own_heads["copy"], params, hidden)
            return losses.copy_cross_entropy(self.softmax_logits(params, hidden, states.table), copy, tokens, original, counted)

        rows = (states.last, tokens, example["original"], self.counted(example))
        return parts.summed(some, self.generator.masking.predictions, rows)

    def softmax_logits(self, params: Tree, hidden: Array, table: Array) -> Array:
        """float32 [..., padded vocabulary] for hidden states [..., width]; the head is tied to the encoder's token table."""
        return encoders.apply(self.own_heads["replaced_mlm"], params, hidden, table)

    def outputs(self, params: Tree, example: Mapping[str, Array]) -> dict[str, Array]:
        """`hidden` of the encoder, its logits `replaced_mlm` [batch, length, vocab_size] and `copy` [batch, length], the logit of D; and
        `mlm` of the generator."""
        return {**encoders.outputs(self.encoder, self.own_heads, params, example), **self.generator.outputs(params, example)}

    def attentions(self, params: Tree, example: Mapping[str, Array]) -> Array:
        return encoders.attentions(self.encoder, params, example)

    def flops(self, length: int) -> float:
        encoder, predictions = self.encoder, length if self.predicts_all else self.generator.masking.predictions
        softmax = head_flops(encoder.width, encoder.table_width, encoder.config.vocab_size, predictions)
        copy = 2.0 * length * encoder.width * (encoder.width + 1) if self.predicts_all else 0.0
        return self.generator.flops(length) + 3 * (encoder.forward_flops(length) + softmax + copy)
