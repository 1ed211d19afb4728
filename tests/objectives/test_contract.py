"""Every objective fills the contract that the trainer calls."""

import importlib
import inspect
import pkgutil

import pytest

from jaxenc import objectives
from jaxenc.objectives.base import Objective
from jaxenc.objectives.bilm import BilmConfig
from jaxenc.objectives.causal import CausalConfig
from jaxenc.objectives.mlm import MlmConfig
from jaxenc.objectives.pair import SentenceOrderConfig
from jaxenc.objectives.plm import PlmConfig
from jaxenc.objectives.rtd import RtdConfig


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


@pytest.mark.parametrize(
    ("config", "length", "limit", "share"),
    [
        (MlmConfig(), 128, 0, 0.15),
        (MlmConfig(rate=0.3), 128, 0, 0.3),
        (MlmConfig(rate=0.3, final_rate=0.15, rate_steps=9), 128, 0, 0.15),
        (MlmConfig(rate=0.3, max_predictions=16), 128, 0, 0.125),
        (MlmConfig(rate=0.3, max_predictions=16), 128, 32, 0.25),
        (SentenceOrderConfig(), 512, 0, 0.15),
        (RtdConfig(rate=0.25), 128, 0, 0.25),
        (RtdConfig(rate=0.25, generator="uniform"), 128, 0, 1.0),
        (RtdConfig(rate=0.25, generator="uniform", detects="chosen"), 128, 0, 0.25),
        (PlmConfig(), 512, 0, 85 / 512),
        (PlmConfig(), 512, 64, 0.125),
        (CausalConfig(), 128, 0, 1.0),
        (BilmConfig(), 128, 0, 1.0),
    ],
)
def test_the_share_of_the_tokens_that_is_predicted(config, length, limit, share) -> None:
    """Held-out numbers are at the last rate; a limit of a phase replaces the config's own."""
    assert config.predicted(length, limit) == pytest.approx(share)
