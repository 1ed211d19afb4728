"""A DistilBERT from a BERT."""

from pathlib import Path

from jaxenc.training.run import Run
from tests.faults.recipe import Recipe
from tests.training import test_teacher


def run(data: Path) -> Run:
    return test_teacher.recipe(data, data.parent / "teacher")


RECIPE = Recipe(run, prepare=lambda data: test_teacher.make_teacher(data.parent / "teacher", data))
