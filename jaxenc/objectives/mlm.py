"""Masked language modelling (Devlin et al. 2018, section 3.1, task 1; Liu et al. 2019, section 4.1)."""

import dataclasses
import math
from collections.abc import Mapping
from typing import ClassVar

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxenc import losses
from jaxenc.config import at_least
from jaxenc.data.vocabulary import Vocabulary
from jaxenc.errors import UserError
from jaxenc.families.contract import Encoder, EncoderConfig, ModelConfig
from jaxenc.families.states import States
from jaxenc.heads.contract import Fitted
from jaxenc.heads.masked_lm import MASKED_LM
from jaxenc.objectives import encoder as encoders
from jaxenc.objectives.base import Objective, ObjectiveConfig, PhaseSetting, Sums
from jaxenc.objectives.corrupt import masking, rule, spans
from jaxenc.objectives.corrupt.rule import Masking
from jaxenc.rng import Keys
from jaxenc.tree import Tree

CHOICES = {
    "unit": tuple(masking.UNITS),
    "action": ("token", "span"),
    "rounding": ("half_even", "stochastic"),
    "candidates": ("text", "all"),
    "replacements": ("text", "all", "all_but_control"),
}


@dataclasses.dataclass(frozen=True)
class MlmConfig(ObjectiveConfig[EncoderConfig]):
    """Masked language modelling.

    BERT's code is google-research/bert:create_pretraining_data.py, RoBERTa's is
    facebookresearch/fairseq:fairseq/data/mask_tokens_dataset.py.

    rate: share of the tokens that are predicted, specials counted.
    final_rate: share that `rate` moves to over the first `rate_steps` steps; 0 = `rate` throughout. On a straight line in 256 equal moves,
        and it stays there (Ankner et al. 2023 go from 0.3 to 0.15). Held-out numbers are at final_rate.
    rate_steps: steps over which the share moves from `rate` to `final_rate`; 0 = it does not move.
    max_predictions: most predictions in a row; 0 = ceil(the largest rate · length), which holds any.
    rounding: of rate · n for a row of n tokens: `half_even` as BERT, `stochastic` as RoBERTa. `half_even` predicts at least one;
        `stochastic` is int(rate · n + U) with U uniform in [0, 1): rate · n on average, and none in some short rows.
    unit: what is masked together: `tokens`, whole `words`, `ngrams` of words or `spans` of words. `ngrams`: p(n) proportional to 1/n for n
        of 1 to 3 (ALBERT, section 4.1); `spans`: lengths Geometric(p), 10 at most (SpanBERT, section 3.1). See `corrupt/whole_words.py`.
    longest: most words of an n-gram or a span, up to 100; 0 = the papers' 3 and 10.
    geometric: p of the geometric law of the lengths of spans.
    action: whether each `token` or each `span` draws what becomes of it: [MASK], a random id or itself. `token` is BERT's, `span` is
        SpanBERT's (section 3.1).
    candidates: what may be predicted: `text` excludes [CLS] and [SEP], as BERT; `all` includes them, as RoBERTa. Padding never is.
    mask_share: share of the predicted tokens that become [MASK].
    random_share: share of the predicted tokens that become random ids; the rest stay as they are.
    replacements: the ids that random ones are drawn from: `text`, `all` or `all_but_control`. `text`: words and pieces. `all`: every id,
        specials and unused slots included, as BERT. `all_but_control`: every id but those of padding, unknown, start and end, <mask> and
        fillers included, as RoBERTa, where those four are the first ids.
    """

    kind: ClassVar[str] = "mlm"
    trains: ClassVar[tuple[str, ...]] = ("mlm",)
    rate: float = 0.15
    final_rate: float = 0.0
    rate_steps: int = 0
    max_predictions: int = 0
    rounding: str = "half_even"
    unit: str = "tokens"
    longest: int = 0
    geometric: float = 0.2
    action: str = "token"
    candidates: str = "text"
    mask_share: float = 0.8
    random_share: float = 0.1
    replacements: str = "text"

    def __post_init__(self) -> None:
        at_least(0, "objective", self, "rate_steps", "max_predictions", "longest")
        if not 0 < self.rate <= 1:
            raise UserError(f"objective.rate is {self.rate}", fix="it takes a share of the tokens, such as 0.15")
        if not 0 <= self.final_rate <= 1:
            raise UserError(f"objective.final_rate is {self.final_rate}", fix="it takes a share of the tokens, or 0 for a constant rate")
        if (self.final_rate > 0) != (self.rate_steps > 0):
            raise UserError(
                f"objective.final_rate is {self.final_rate} and objective.rate_steps is {self.rate_steps}", fix="set both or neither"
            )
        if self.rate_steps > rule.MOST_STEPS:
            raise UserError(f"objective.rate_steps is {self.rate_steps}", fix=f"it is at most {rule.MOST_STEPS}")
        if not (self.mask_share >= 0 and self.random_share >= 0 and self.mask_share + self.random_share <= 1):
            raise UserError(
                f"objective.mask_share is {self.mask_share} and objective.random_share {self.random_share}",
                fix="use shares from 0, of 1 together at most",
            )
        for name, choices in CHOICES.items():
            if getattr(self, name) not in choices:
                raise UserError(f"objective.{name} is {getattr(self, name)!r}", fix=f"use {' or '.join(choices)}")
        if self.longest > spans.MOST_WORDS:
            raise UserError(f"objective.longest is {self.longest}", fix=f"a span has {spans.MOST_WORDS} words at most")
        if self.longest and self.unit not in ("ngrams", "spans"):
            raise UserError(
                f"objective.longest is {self.longest} with objective.unit={self.unit}, which has no lengths",
                fix="set it to 0, or use ngrams or spans",
            )
        if not spans.LEAST_P <= self.geometric < 1:
            what = f"the chance that a span ends after a word, from {spans.LEAST_P} on, such as 0.2"
            raise UserError(f"objective.geometric is {self.geometric}", fix=f"it takes {what}")
        if self.unit != "tokens" and self.candidates == "all":
            raise UserError(
                "objective.candidates=all predicts specials, which are not words", fix=f"use text with objective.unit={self.unit}"
            )

    def unused(self, model: ModelConfig) -> dict[str, str]:
        """See `Run.unused`."""
        out = {} if self.unit == "spans" else {"objective.geometric": f"objective.unit={self.unit} has no spans"}
        if self.unit == "tokens":
            out["objective.action"] = "objective.unit=tokens chooses single tokens"
        return out if self.random_share else {**out, "objective.replacements": "objective.random_share is 0"}

    def predicted(self, length: int, max_predictions: int = 0) -> float:
        """The last rate, as far as the limit of predictions in a row allows it."""
        return min(self.final_rate or self.rate, self._limit(length, max_predictions) / length)

    def _limit(self, length: int, max_predictions: int) -> int:
        """The most predictions in a row of `length` tokens; max_predictions: 0 for the config's own."""
        return min(length, max_predictions or self.max_predictions or math.ceil(max(self.rate, self.final_rate) * length))

    def masking(self, vocabulary: Vocabulary, length: int, max_predictions: int) -> Masking:
        """The masking rule for rows of `length` tokens; max_predictions: 0 for the config's own.

        Raises UserError for a vocabulary without a mask, or without ids that `replacements` allows.
        """
        if vocabulary.mask < 0:
            raise UserError(
                "the tokenizer has no mask", f"objective.kind {self.kind}", "build the data with one of --type wordpiece or bpe"
            )
        control = (vocabulary.pad, vocabulary.unk, vocabulary.cls, vocabulary.sep)
        left_out = {"text": vocabulary.reserved, "all": (), "all_but_control": control}[self.replacements]
        replacements = np.setdiff1d(np.arange(vocabulary.size, dtype=np.int32), np.array(left_out, np.int32))
        if not replacements.size:
            raise UserError(
                f"objective.replacements={self.replacements}, which leaves no id of the vocabulary to draw",
                fix="use objective.replacements=all",
            )
        return Masking(
            rate=self.rate,
            final_rate=self.final_rate,
            rate_steps=self.rate_steps,
            predictions=self._limit(length, max_predictions),
            rounding=self.rounding,
            unit=self.unit,
            lengths=self.span_lengths(),
            mask_share=self.mask_share,
            random_share=self.random_share,
            action=self.action,
            mask_id=vocabulary.mask,
            never_masked=(vocabulary.pad, vocabulary.cls, vocabulary.sep) if self.candidates == "text" else (vocabulary.pad,),
            replacements=replacements,
        )

    def span_lengths(self) -> tuple[int, ...]:
        """The distribution of the number of words of a span, in the form of `corrupt/spans.py`; () for units of one token or word."""
        if self.unit == "ngrams":
            return spans.ngrams(self.longest or 3)
        return spans.geometric(self.geometric, self.longest or 10) if self.unit == "spans" else ()

    def build(self, model: EncoderConfig, setting: PhaseSetting) -> "Mlm":
        """The objective of one phase; for a pair of networks it trains the generator."""
        others = [name for name in self.trains if name != MASKED_LM.name]
        encoder = encoders.of(self.kind, model, (MASKED_LM.name,), setting.execution, beside=others)
        head = encoders.fit(encoder, (MASKED_LM,))[MASKED_LM.name]
        return Mlm(encoder, head, self.masking(setting.vocabulary, setting.data.length, setting.max_predictions))


@dataclasses.dataclass(frozen=True)
class Mlm(Objective):
    """Predicts the masked tokens of one text. Parameters: the encoder's own, and `mlm` for the head."""

    encoder: Encoder
    head: Fitted
    masking: Masking
    coef: Mapping[str, float] = dataclasses.field(default_factory=lambda: {"mlm": 1.0})

    @property
    def heads(self) -> encoders.FittedHeads:
        """The head by its name in the parameter tree."""
        return {"mlm": self.head}

    @property
    def reads(self) -> Mapping[str, int]:
        return reads(self.encoder.config, self.masking)

    def init(self, key: Array) -> Tree:
        return encoders.init(self.encoder, self.heads, key)

    def corrupt(self, key: Array, one: Mapping[str, Array], step: Array) -> dict[str, Array]:
        drawn = rule.draws(self.masking, key, one["tokens"].shape[0], step)
        return {**one, **masking.apply(self.masking, drawn, one)}

    def weights(self, example: Mapping[str, Array]) -> dict[str, Array]:
        return {"mlm": jnp.sum(example["masked"])}

    def terms(
        self, params: Tree, carry: Tree, example: Mapping[str, Array], keys: Keys, train: bool
    ) -> tuple[dict[str, Array], Sums, Tree]:
        states = encoders.read(self.encoder, params, example, keys if train else None)
        loss, metrics = self.at_masks(params, states, example)
        return {"mlm": loss}, metrics, carry

    def outputs(self, params: Tree, example: Mapping[str, Array]) -> dict[str, Array]:
        return encoders.outputs(self.encoder, self.heads, params, example)

    def attentions(self, params: Tree, example: Mapping[str, Array]) -> Array:
        return encoders.attentions(self.encoder, params, example)

    def flops(self, length: int) -> float:
        head = head_flops(self.encoder.width, self.encoder.table_width, self.encoder.config.vocab_size, self.masking.predictions)
        return 3 * (self.encoder.forward_flops(length) + head)

    def logits(self, params: Tree, states: States, at: Array) -> Array:
        """float32 [batch, predictions, padded vocabulary] at the positions `at`, i32 [batch, predictions]."""
        chosen = jnp.take_along_axis(states.last, at[..., None], axis=1)
        return encoders.apply(self.head, params, chosen, states.table)

    def at_masks(self, params: Tree, states: States, example: Mapping[str, Array]) -> tuple[Array, Sums]:
        """(sum of losses, metrics) at the predicted positions; logits are computed only there."""
        return self.score(self.logits(params, states, example["masked_at"]), example)

    def score(self, logits: Array, example: Mapping[str, Array]) -> tuple[Array, Sums]:
        """(sum of losses, metrics) from the logits at the predicted positions."""
        loss, correct = losses.cross_entropy(logits, example["masked_ids"], example["masked"])
        count = jnp.sum(example["masked"]).astype(jnp.float32)
        return loss, {"mlm_loss": (loss, count), "mlm_accuracy": (correct, count), **masking.statistics(example)}


def reads(config: EncoderConfig, masking: Masking) -> Mapping[str, int]:
    """`Objective.reads` of an objective that masks rows for a model."""
    words = {} if masking.unit == "tokens" else {"word_starts": 2}
    return {**config.inputs, "index": 0, **words}


def head_flops(width: int, table_width: int, vocab_size: int, predictions: int) -> float:
    """FLOPs of the dense layer and the vocabulary projection of one row's predictions, forward; a multiply-add counts as two."""
    return 2.0 * predictions * table_width * (width + vocab_size)
