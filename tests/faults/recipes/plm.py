"""Permuted tokens with a memory, of an XLNet."""

import dataclasses
from pathlib import Path

from jaxenc.data.sources import DataConfig
from jaxenc.families.xlnet.model import XlnetConfig
from jaxenc.objectives.plm import PlmConfig
from jaxenc.training.run import Run
from tests.faults.recipe import Recipe
from tests.training import test_loop


def run(data: Path) -> Run:
    model = XlnetConfig(width=16, layers=1, heads=2, feed_forward=32)
    objective = PlmConfig(predictions=6, permutation=8, memory=12)
    streams = DataConfig(path=str(data), rows="streams", length=24, reuse=8)
    return dataclasses.replace(test_loop.recipe(data, objective=objective, model=model), data=streams)


RECIPE = Recipe(run, "unigram")
