"""Masked language modelling and how the two parts of a row are related: next-sentence prediction (Devlin et al. 2018, section 3.1, tasks 1
and 2), sentence order (Lan et al. 2019, section 3.1)."""

import dataclasses
from collections.abc import Mapping
from typing import ClassVar

import jax.numpy as jnp
from jax import Array

from jaxenc import losses
from jaxenc.data.sources import DataConfig
from jaxenc.families.contract import EncoderConfig
from jaxenc.heads import Head
from jaxenc.heads.masked_lm import MASKED_LM
from jaxenc.heads.next_sentence import NEXT_SENTENCE
from jaxenc.heads.pooler import POOLER
from jaxenc.heads.sentence_order import SENTENCE_ORDER
from jaxenc.objectives import encoder as encoders
from jaxenc.objectives.base import Objective, PhaseSetting, Sums
from jaxenc.objectives.mlm import Mlm, MlmConfig
from jaxenc.rng import Keys
from jaxenc.tree import Tree


@dataclasses.dataclass(frozen=True)
class PairConfig(MlmConfig):
    """Masked language modelling with next-sentence prediction, on rows of two parts (`data.rows=pairs`). Masking is as MlmConfig says."""

    kind: ClassVar[str] = "mlm_nsp"
    trains: ClassVar[tuple[str, ...]] = ("pooler", "mlm", "next_sentence")
    rows: ClassVar[DataConfig] = DataConfig(rows="pairs")
    relation: ClassVar[Head] = NEXT_SENTENCE

    def build(self, model: EncoderConfig, setting: PhaseSetting) -> "Pair":
        mlm = super().build(model, setting)
        encoders.of(self.kind, model, (POOLER.name, self.relation.name), setting.execution, beside=(MASKED_LM.name,))
        return Pair(mlm, encoders.fit(mlm.encoder, (POOLER, self.relation)), self.relation.name)


@dataclasses.dataclass(frozen=True)
class SentenceOrderConfig(PairConfig):
    """Masked language modelling with sentence-order prediction, on rows of two parts (`data.rows=swapped_pairs`). Masking is as MlmConfig
    says."""

    kind: ClassVar[str] = "mlm_sop"
    trains: ClassVar[tuple[str, ...]] = ("pooler", "mlm", "sentence_order")
    rows: ClassVar[DataConfig] = DataConfig(rows="swapped_pairs")
    relation: ClassVar[Head] = SENTENCE_ORDER


@dataclasses.dataclass(frozen=True)
class Pair(Objective):
    """The sum of both losses, each a mean over its own predictions (google-research/bert run_pretraining.py).
    Label 1 means that the second part does not follow the first.

    of_texts: the heads `pooler` and `relation`. Parameters: those of Mlm and of these heads.
    """

    mlm: Mlm
    of_texts: encoders.FittedHeads
    relation: str

    @property
    def coef(self) -> Mapping[str, float]:
        """1 for each of the two losses."""
        return {"mlm": 1.0, self.relation: 1.0}

    @property
    def heads(self) -> encoders.FittedHeads:
        """The heads by their names in the parameter tree."""
        return {**self.mlm.heads, **self.of_texts}

    @property
    def reads(self) -> Mapping[str, int]:
        return {**self.mlm.reads, "is_random": 2}

    def init(self, key: Array) -> Tree:
        return encoders.init(self.mlm.encoder, self.heads, key)

    def corrupt(self, key: Array, one: Mapping[str, Array], step: Array) -> dict[str, Array]:
        return self.mlm.corrupt(key, one, step)

    def weights(self, example: Mapping[str, Array]) -> dict[str, Array]:
        return {**self.mlm.weights(example), self.relation: jnp.sum(_real_rows(example))}

    def terms(
        self, params: Tree, carry: Tree, example: Mapping[str, Array], keys: Keys, train: bool
    ) -> tuple[dict[str, Array], Sums, Tree]:
        states = encoders.read(self.mlm.encoder, params, example, keys if train else None)
        mlm, metrics = self.mlm.at_masks(params, states, example)
        logits = encoders.logits(self.of_texts, params, states, example["segments"], None)[self.relation]
        rows = _real_rows(example)
        loss, correct = losses.cross_entropy(logits, example["is_random"], rows)
        count = jnp.sum(rows).astype(jnp.float32)
        pair_metrics = {f"{self.relation}_loss": (loss, count), f"{self.relation}_accuracy": (correct, count)}
        return {"mlm": mlm, self.relation: loss}, {**metrics, **pair_metrics}, carry

    def outputs(self, params: Tree, example: Mapping[str, Array]) -> dict[str, Array]:
        return encoders.outputs(self.mlm.encoder, self.heads, params, example)

    def predict(self, params: Tree, example: Mapping[str, Array], keys: Keys) -> dict[str, Array]:
        """The probabilities of both relations under the head's name, float32 [rows, 2], for the masked row that the evaluation scores."""
        given = encoders.row_logits(self.mlm.encoder, self.of_texts, params, example)
        return {name: self.of_texts[name].head.prediction(logits) for name, logits in given.items()}

    def attentions(self, params: Tree, example: Mapping[str, Array]) -> Array:
        return self.mlm.attentions(params, example)

    def flops(self, length: int) -> float:
        width = self.mlm.encoder.width
        return self.mlm.flops(length) + 3 * 2.0 * width * (width + 2)


def _real_rows(example: Mapping[str, Array]) -> Array:
    """i32 [batch]: 0 for the padding rows that fill up the last batch, else 1."""
    return jnp.any(example["segments"] > 0, axis=1).astype(jnp.int32)
