"""A bidirectional language model without its softmax, as it is published."""

import dataclasses
from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar

import jax.numpy as jnp
from jax import Array

from jaxenc import families, rng
from jaxenc.data.sources import DataConfig
from jaxenc.families.both_directions import BothDirections, TwoReaders
from jaxenc.families.contract import ModelConfig
from jaxenc.objectives.base import Objective, ObjectiveConfig, PhaseSetting, Sums
from jaxenc.rng import Keys
from jaxenc.tree import Tree


@dataclasses.dataclass(frozen=True)
class FeaturesConfig(ObjectiveConfig[ModelConfig]):
    """Contextual vectors of words, without a loss. The objective `bilm` can train such a model further, with a fresh softmax."""

    kind: ClassVar[str] = "features"
    rows: ClassVar[DataConfig] = DataConfig(rows="sentences", length=20)

    def build(self, model: ModelConfig, setting: PhaseSetting) -> "Features":
        """The objective, whatever the vocabulary, the data and the predictions. Raises UserError for a model that does not read both
        ways."""
        needs = "objective.kind features takes a model that reads both ways (heads takes others)"
        return Features(families.able(model, BothDirections, needs).readers(setting.execution))


@dataclasses.dataclass(frozen=True)
class Features(Objective):
    """The network alone: it can be loaded and used, not trained."""

    readers: TwoReaders
    coef: ClassVar[Mapping[str, float]] = MappingProxyType({})

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
        """`hidden` only; each text starts from a state of zeros."""
        hidden, _ = self.readers.text(params, example["tokens"], example.get("characters"), example["segments"])
        return {"hidden": hidden.astype(jnp.float32)}

    def flops(self, length: int) -> float:
        return 3 * self.readers.forward_flops(length)
