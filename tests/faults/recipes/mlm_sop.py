"""Masked tokens and the order of sentences, of an ALBERT."""

import dataclasses
from pathlib import Path

from jaxenc.data.sources import DataConfig
from jaxenc.families.albert.model import AlbertConfig
from jaxenc.objectives.pair import SentenceOrderConfig
from jaxenc.training.run import Run
from tests.faults.recipe import Recipe
from tests.training import test_loop


def run(data: Path) -> Run:
    pairs = DataConfig(path=str(data), rows="swapped_pairs", length=24)
    model = AlbertConfig(width=16, layers=2, heads=2, feed_forward=32, embedding=8, positions=24, dropout=0.1)
    return dataclasses.replace(test_loop.recipe(data, objective=SentenceOrderConfig(), model=model), data=pairs)


RECIPE = Recipe(run)
