"""An objective that refuses a kind of model names exactly the kinds of the registry that it takes."""

import dataclasses
from collections.abc import Callable

import pytest

from jaxenc.errors import UserError
from jaxenc.families import MODELS
from jaxenc.families.contract import ModelConfig
from jaxenc.objectives.base import ObjectiveConfig
from jaxenc.objectives.causal import CausalConfig
from jaxenc.objectives.mlm import MlmConfig
from jaxenc.objectives.pair import PairConfig, SentenceOrderConfig
from jaxenc.objectives.rtd import RtdConfig
from tests import tiny
from tests.kinds import advised, fitting


def causal(model: ModelConfig) -> ModelConfig:
    """`model` with causal attention, if it can have that; of a pair, both networks."""
    if "causal" not in model.attentions:
        return model
    nested = {field.name: causal(one) for field in dataclasses.fields(model) if isinstance(one := getattr(model, field.name), ModelConfig)}
    return dataclasses.replace(model, **(nested or {"attention": "causal"}))


def building(config: ObjectiveConfig) -> Callable[[ModelConfig], object]:
    prepared = causal if isinstance(config, CausalConfig) else lambda model: model
    return lambda model: tiny.objective(config, prepared(model))


@pytest.mark.parametrize(
    "config, refused",
    [
        *((config, "elmo") for config in (MlmConfig(), PairConfig(), SentenceOrderConfig(), RtdConfig(), CausalConfig())),
        *((config, "gpt") for config in (MlmConfig(), PairConfig(), SentenceOrderConfig())),
        (PairConfig(), "distilbert"),
        (RtdConfig(), "bert"),
        (CausalConfig(), "xlnet"),
    ],
    ids=lambda value: getattr(value, "kind", value),
)
def test_the_kinds_that_are_named_are_those_that_can_be_built(config: ObjectiveConfig, refused: str) -> None:
    with pytest.raises(UserError) as error:
        building(config)(MODELS[refused]())
    assert advised(error.value) == fitting(building(config))
