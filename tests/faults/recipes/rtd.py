"""Replaced tokens, of an ELECTRA."""

from pathlib import Path

from jaxenc.families.electra.model import ElectraConfig
from jaxenc.objectives.rtd import RtdConfig
from jaxenc.training.run import Run
from tests.faults.recipe import Recipe
from tests.training import test_loop


def run(data: Path) -> Run:
    sizes = {"generator_width": 8, "generator_layers": 1, "generator_heads": 2, "generator_feed_forward": 16, "embedding": 16}
    pair = ElectraConfig(width=16, layers=1, heads=2, feed_forward=32, positions=24, **sizes)
    return test_loop.recipe(data, objective=RtdConfig(), model=pair)


RECIPE = Recipe(run)
