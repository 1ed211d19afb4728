"""Both directions with their states, of an ELMo."""

from tests.faults.recipe import Recipe
from tests.training import test_states

RECIPE = Recipe(test_states.recipe, "characters")
