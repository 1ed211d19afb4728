"""Every objective fills the contract that the trainer calls."""

import importlib
import inspect
import pkgutil

import pytest

from jaxenc import objectives
from jaxenc.objectives.base import Objective


def all_objectives() -> list[type[Objective]]:
    for module in pkgutil.iter_modules(objectives.__path__, "jaxenc.objectives."):
        importlib.import_module(module.name)
    return [kind for kind in Objective.__subclasses__() if kind.__module__.startswith("jaxenc.")]


@pytest.mark.parametrize("kind", all_objectives(), ids=lambda kind: kind.__name__)
def test_methods_take_what_the_contract_says(kind: type[Objective]) -> None:
    """A method of the contract's name with other arguments would be called with the wrong ones."""
    methods = [name for name, value in vars(Objective).items() if inspect.isfunction(value) and not name.startswith("_")]
    assert {"corrupt", "terms", "predict"} <= set(methods)
    for name in methods:
        got, want = (list(inspect.signature(getattr(owner, name)).parameters) for owner in (kind, Objective))
        assert got == want, f"{kind.__name__}.{name}"
