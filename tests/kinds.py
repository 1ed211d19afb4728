"""Reads which kinds of model a message advises, to compare them with the registry instead of a list in the tests."""

import re
from collections.abc import Callable

from jaxenc.errors import UserError
from jaxenc.families import MODELS
from jaxenc.families.contract import ModelConfig

ADVICE = re.compile(r"(?:set model\.kind to|use a model of kind|use one of the kinds) (\w+(?:(?:, (?!not )| or )\w+)*)")


def advised(error: UserError) -> list[str]:
    """The kinds that a message names as the way out, in its order."""
    found = ADVICE.search(str(error))
    assert found, error
    return re.split(", | or ", found[1])


def fitting(build: Callable[[ModelConfig], object]) -> list[str]:
    """The built-in kinds whose default config `build` takes, in the order of the registry."""
    return [kind for kind, cls in MODELS.items() if _takes(build, cls())]


def _takes(build: Callable[[ModelConfig], object], model: ModelConfig) -> bool:
    try:
        build(model)
    except UserError:
        return False
    return True
