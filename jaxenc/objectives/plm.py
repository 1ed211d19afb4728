"""Permutation language modelling (Yang et al. 2019, XLNet, section 2)."""

import dataclasses
from collections.abc import Mapping
from typing import ClassVar

import jax
import jax.numpy as jnp
from jax import Array

from jaxenc import families, losses
from jaxenc.config import at_least
from jaxenc.data.sources import DataConfig
from jaxenc.data.vocabulary import Vocabulary
from jaxenc.errors import UserError
from jaxenc.families.contract import ModelConfig
from jaxenc.families.two_stream import Memory, Query, Rows, TwoStream, TwoStreamEncoder, TwoStreams
from jaxenc.heads.contract import Fitted
from jaxenc.heads.lm import LM
from jaxenc.objectives import encoder as encoders
from jaxenc.objectives.base import Objective, ObjectiveConfig, PhaseSetting, Sums
from jaxenc.objectives.corrupt import masking, permute, spans
from jaxenc.objectives.corrupt.permute import Permutation
from jaxenc.rng import Keys
from jaxenc.tree import Tree

CHOICES = {"unit": ("words", "tokens"), "candidates": ("text", "all"), "shuffle": ("own", "shared")}
# SEP, SEP and CLS of a row, all in its second half.
SPECIALS = 3
# A row's length times alpha is an i32, and so is the number of remembered places.
LARGEST_ALPHA = 1000
LARGEST_MEMORY = 2**31 - 1


@dataclasses.dataclass(frozen=True)
class PlmConfig(ObjectiveConfig[ModelConfig]):
    """Permutation language modelling (XLNet) on rows of streams (`data.rows=streams`). The numbers are those of zihangdai/xlnet README.md.

    Four lengths are related. A row has `data.length` tokens (512 as published) in two parts, called halves. The first half has `data.reuse`
    tokens, and the next row of the slot starts after it and has it in its memory. The second half is the rest. The first half never sees
    the second, since as memory it must not reveal tokens that are still to be predicted. Each half is split into blocks of `permutation`
    tokens, whose order is shuffled, so `permutation` divides both halves. The memory of all slots has batch · layers · memory · width
    numbers.

    predictions: tokens predicted in a row, split over its halves; an odd one goes to the first half.
    alpha: a chosen n-gram of t tokens has t · alpha / beta context tokens around it. So about beta in alpha + beta tokens are predicted;
        single tokens at random places fill up the rest of `predictions`.
    beta: see alpha: about beta in alpha + beta tokens are predicted.
    longest: the largest n of a chosen n-gram; p(n) is proportional to 1/n.
    unit: what an n-gram consists of: n whole `words`, or n `tokens`. The latter is what data_utils.py computes because of a bug.
    candidates: `text` never chooses SEP or CLS; `all` may choose them, which wastes these predictions, as published.
    permutation: tokens in a block whose order is shuffled; it divides both halves of a row.
    shuffle: each block has its `own` order, or the blocks of a half have a `shared` one, as published.
    memory: tokens before the row that every layer also reads; 0 = none. More than `data.reuse` tokens span several rows.
    """

    kind: ClassVar[str] = "plm"
    trains: ClassVar[tuple[str, ...]] = ("lm",)
    rows: ClassVar[DataConfig] = DataConfig(rows="streams", length=512, reuse=256)
    carried: ClassVar[tuple[str, ...]] = ("memory",)
    predictions: int = 85
    alpha: int = 6
    beta: int = 1
    longest: int = 5
    unit: str = "words"
    candidates: str = "text"
    permutation: int = 256
    shuffle: str = "own"
    memory: int = 384

    def __post_init__(self) -> None:
        at_least(2, "objective", self, "predictions")
        at_least(1, "objective", self, "beta", "longest", "permutation")
        at_least(0, "objective", self, "memory")
        if self.memory > LARGEST_MEMORY:
            raise UserError(f"objective.memory is {self.memory}", fix="it is at most 2^31 - 1, and a few rows are usual, such as 384")
        if not self.beta <= self.alpha <= LARGEST_ALPHA:
            raise UserError(
                f"objective.alpha is {self.alpha} and objective.beta {self.beta}", fix=f"alpha is from beta to {LARGEST_ALPHA:,}"
            )
        if self.longest > spans.MOST_WORDS:
            raise UserError(f"objective.longest is {self.longest}", fix=f"an n-gram has {spans.MOST_WORDS} words or tokens at most")
        for name, choices in CHOICES.items():
            if getattr(self, name) not in choices:
                raise UserError(f"objective.{name} is {getattr(self, name)!r}", fix=f"use {' or '.join(choices)}")

    def predicted(self, length: int, max_predictions: int = 0) -> float:
        """The number of predictions in a row by its length."""
        return min(1.0, (max_predictions or self.predictions) / length)

    def rule(self, vocabulary: Vocabulary, data: DataConfig, max_predictions: int) -> Permutation:
        """The permutation rule for the rows of `data`; max_predictions: 0 for the config's own.

        Raises UserError where row length, reused part, permutation and predictions do not fit together.
        """
        first, second, predictions = data.reuse, data.length - data.reuse, max_predictions or self.predictions
        if predictions < 2:
            raise UserError(f"phases.max_predictions is {predictions}, and each half of a row has one or more", fix="use 2 or more")
        if not 0 < first < data.length:
            raise UserError(
                f"data.reuse is {first} and data.length {data.length}", fix="make data.reuse a part of data.length, such as 256 of 512"
            )
        if first % self.permutation or second % self.permutation:
            halves = f"the parts of a row, data.reuse {first} and the other {second} of data.length {data.length}"
            raise UserError(f"objective.permutation is {self.permutation}, which does not divide {halves}", fix="use a divisor of both")
        rule = Permutation(
            reuse=data.reuse,
            predictions=predictions,
            lengths=spans.ngrams(self.longest),
            alpha=self.alpha,
            beta=self.beta,
            unit=self.unit,
            candidates=self.candidates,
            size=self.permutation,
            shuffle=self.shuffle,
            specials=(vocabulary.sep, vocabulary.cls),
        )
        for budget, room in zip(rule.budgets(), (first, second - SPECIALS), strict=True):
            if budget > room:
                what = f"{rule.predictions} predictions a row, but a half of a row has {room} tokens besides its specials"
                field = "phases.max_predictions" if max_predictions else "objective.predictions"
                raise UserError(what, fix=f"lower {field}, or lengthen data.length and data.reuse")
        return rule

    def build(self, model: ModelConfig, setting: PhaseSetting) -> "Plm":
        """The objective of one phase. Raises UserError as `rule`, for a model without a query stream, and for a tokenizer without <eod>,
        which ends each document of a stream."""
        encoder = families.able(model, TwoStream, "objective.kind plm takes a model with two streams").two_streams(setting.execution)
        if setting.vocabulary.fingerprint and setting.vocabulary.eod < 0:
            advice = "make one with `jaxenc tokenizer --type unigram` and build the data with it"
            raise UserError("the tokenizer has no <eod>, which ends a document", f"data {setting.data.path}", advice)
        head = encoders.fit(encoder, (LM,))[LM.name]
        return Plm(encoder, head, self.rule(setting.vocabulary, setting.data, setting.max_predictions), self.memory)


@dataclasses.dataclass(frozen=True)
class Plm(Objective):
    """Predicts the chosen tokens of a row, each from the tokens before it in a random order. Parameters: the model's and `lm`.

    memory: number of tokens before a row that it reads. Their hidden states are the carry: `states` [batch, layers, memory, width] in the
    compute dtype, the input of each layer, and `filled` i32 [batch], the number of valid places, at the end. No gradient flows into it.
    """

    encoder: TwoStreamEncoder
    head: Fitted
    permutation: Permutation
    memory: int
    coef: Mapping[str, float] = dataclasses.field(default_factory=lambda: {"plm": 1.0})

    @property
    def heads(self) -> encoders.FittedHeads:
        """The head by its name in the parameter tree."""
        return {"lm": self.head}

    @property
    def reads(self) -> Mapping[str, int]:
        flags = {"word_starts": 2, "direction": 2, "fresh": 2}
        return {"tokens": self.encoder.config.vocab_size, "types": 0, "segments": 0, "index": 0, **flags}

    def init(self, key: Array) -> Tree:
        return encoders.init(self.encoder, self.heads, key)

    def carry(self, batch: int) -> Tree:
        if not self.memory:
            return {}
        shape = (batch, self.encoder.config.layers, self.memory, self.encoder.width)
        return {"states": jnp.zeros(shape, self.encoder.execution.policy.compute), "filled": jnp.zeros(batch, jnp.int32)}

    def corrupt(self, key: Array, one: Mapping[str, Array], step: Array) -> dict[str, Array]:
        drawn = permute.draws(self.permutation, key, one["tokens"].shape[0])
        return {**one, **permute.apply(self.permutation, drawn, one)}

    def weights(self, example: Mapping[str, Array]) -> dict[str, Array]:
        return {"plm": jnp.sum(example["masked"])}

    def terms(
        self, params: Tree, carry: Tree, example: Mapping[str, Array], keys: Keys, train: bool
    ) -> tuple[dict[str, Array], Sums, Tree]:
        memory = self.remembered(carry, example["fresh"])
        streams = self.read(params, memory, example, keys if train else None)
        logits = encoders.apply(self.head, params, streams.query, streams.table)
        labels = jnp.take_along_axis(example["tokens"], example["predicted_at"], axis=1)
        loss, correct = losses.cross_entropy(logits, labels, example["masked"])
        count = jnp.sum(example["masked"]).astype(jnp.float32)
        metrics = {"plm_loss": (loss, count), "plm_accuracy": (correct, count), **masking.statistics(example)}
        return {"plm": loss}, metrics, self.kept(memory, streams)

    def outputs(self, params: Tree, example: Mapping[str, Array]) -> dict[str, Array]:
        return encoders.outputs(self.encoder, self.heads, params, example)

    def attentions(self, params: Tree, example: Mapping[str, Array]) -> Array:
        return encoders.attentions(self.encoder, params, example)

    def flops(self, length: int) -> float:
        predictions = self.permutation.predictions
        head = 2.0 * predictions * self.encoder.width * self.encoder.config.vocab_size
        return 3 * (self.encoder.streams_flops(length, self.memory, predictions) + head)

    def remembered(self, carry: Tree, fresh: Array) -> Memory | None:
        """The memory of rows: the carry, none of which is valid for a row that starts a stream (`fresh`, i32 [batch], is 1)."""
        return Memory(carry["states"], jnp.where(fresh > 0, 0, carry["filled"])) if self.memory else None

    def read(self, params: Tree, memory: Memory | None, example: Mapping[str, Array], noise: Keys | None) -> TwoStreams:
        """Runs both streams on permuted rows; every place of a row sees all valid memory."""
        content, query = permute.visible(example["rank"], example["predicted_at"])
        before = lambda sees: jnp.pad(sees, ((0, 0), (0, 0), (self.memory, 0)), constant_values=True)
        asked = Query(example["predicted_at"], before(query))
        rows = Rows(example["tokens"], example["types"], before(content), example["direction"], memory, asked)
        return self.encoder.streams(params, rows, noise)

    def kept(self, memory: Memory | None, streams: TwoStreams) -> Tree:
        """The next carry: the last `memory` of the old states and the states of the reused part (zihangdai/xlnet modeling.py,
        _cache_mem)."""
        if memory is None:
            return {}
        reuse = self.permutation.reuse
        states = jnp.concatenate([memory.states, streams.inputs[:, :, :reuse]], axis=2)[:, :, -self.memory :]
        return {"states": jax.lax.stop_gradient(states), "filled": jnp.minimum(memory.filled + reuse, self.memory)}
