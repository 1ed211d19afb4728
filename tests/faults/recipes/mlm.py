"""Masked tokens, of a BERT."""

from tests.faults.recipe import Recipe
from tests.training import test_loop

RECIPE = Recipe(test_loop.recipe)
