"""The next token, of a GPT."""

import dataclasses
from pathlib import Path

from jaxenc.data.sources import DataConfig
from jaxenc.families.gpt.model import GptConfig
from jaxenc.objectives.causal import CausalConfig
from jaxenc.training.run import Run
from tests.faults.recipe import Recipe
from tests.training import test_loop


def run(data: Path) -> Run:
    model = GptConfig(width=16, layers=1, heads=2, feed_forward=32, positions=24)
    return dataclasses.replace(test_loop.recipe(data, objective=CausalConfig(), model=model), data=DataConfig(str(data), 24))


RECIPE = Recipe(run)
