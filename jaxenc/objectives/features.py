"""A language model of both directions without its softmax: what is left of one once it is published."""

import dataclasses
from collections.abc import Mapping
from typing import ClassVar

import jax.numpy as jnp
from jax import Array

from jaxenc import families, rng
from jaxenc.data.sources import DataConfig
from jaxenc.data.vocabulary import Vocabulary
from jaxenc.execution import Execution
from jaxenc.families.both_directions import BothDirections, TwoReaders
from jaxenc.families.contract import ModelConfig
from jaxenc.heads import BUILT_IN, Head
from jaxenc.objectives.base import Objective, ObjectiveConfig, Sums
from jaxenc.rng import Keys
from jaxenc.tree import Tree


@dataclasses.dataclass(frozen=True)
class FeaturesConfig(ObjectiveConfig[ModelConfig]):
    """Vectors of words and no loss. `bilm` trains such a model further, with a softmax that starts fresh."""

    kind: ClassVar[str] = "features"
    rows: ClassVar[DataConfig] = DataConfig(rows="sentences", length=20)

    def build(
        self,
        model: ModelConfig,
        vocabulary: Vocabulary,
        execution: Execution,
        data: DataConfig,
        max_predictions: int,
        heads: Mapping[str, Head] = BUILT_IN,
    ) -> "Features":
        """The objective; no number of it depends on the vocabulary, the data or the predictions. Raises UserError for another family."""
        needs = "objective.kind features takes a model that reads both ways (heads takes others)"
        return Features({}, families.able(model, BothDirections, needs).readers(execution))


@dataclasses.dataclass(frozen=True)
class Features(Objective):
    """The network alone: opened and asked, not trained."""

    coef: Mapping[str, float]
    readers: TwoReaders

    @property
    def reads(self) -> Mapping[str, int]:
        return self.readers.config.inputs

    def init(self, key: Array) -> Tree:
        return dict(self.readers.start(rng.part(key, "encoder")))

    def corrupt(self, key: Array, one: Mapping[str, Array], step: Array) -> dict[str, Array]:
        return dict(one)

    def weights(self, example: Mapping[str, Array]) -> dict[str, Array]:
        return {}

    def terms(
        self, params: Tree, carry: Tree, example: Mapping[str, Array], keys: Keys, train: bool
    ) -> tuple[dict[str, Array], Sums, Tree]:
        return {}, {}, carry

    def outputs(self, params: Tree, example: Mapping[str, Array]) -> dict[str, Array]:
        """`hidden` alone: each text begins without a state, and its padding is at its end."""
        hidden, _ = self.readers.text(params, example["tokens"], example.get("characters"), example["segments"])
        return {"hidden": hidden.astype(jnp.float32)}

    def flops(self, length: int) -> float:
        return 3 * self.readers.forward_flops(length)
