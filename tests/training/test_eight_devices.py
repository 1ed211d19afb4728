"""The compiled step of every objective on eight devices, under every preset, whole and in parts: the numbers of one device.

Objectives that carry something from step to step have this beside their own tests (test_plm_step.py, test_bilm_step.py), as have those
with a teacher (test_distillation.py) and the tasks (test_choices.py, test_heads.py). In the short suite test_compiled.py stands for all,
with test_accumulate.py for what is carried and test_counts.py (tests/baseline) for two networks.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import pytest

from jaxenc.families.gpt.model import GptConfig
from jaxenc.objectives.base import Objective
from jaxenc.objectives.causal import CausalConfig
from jaxenc.objectives.mlm import MlmConfig
from jaxenc.objectives.replaced_mlm import ReplacedMlmConfig
from jaxenc.objectives.rtd import RtdConfig
from jaxenc.optim.optimizer import OptimConfig
from jaxenc.training.settings import TrainConfig
from jaxenc.training.state import State
from tests import tiny

ONE, PAIR = (dataclasses.replace(model, layers=1) for model in (tiny.MODEL, tiny.PAIR))
GPT = GptConfig(vocab_size=200, width=32, layers=1, heads=4, feed_forward=64, positions=64, dropout=0.1, attention_dropout=0.1)
OBJECTIVES: dict[str, Callable[[], Objective]] = {
    "pair": lambda: tiny.objective(model=ONE),
    "mlm": lambda: tiny.objective(MlmConfig(), ONE),
    "causal": lambda: tiny.objective(CausalConfig(), GPT),
    "rtd": lambda: tiny.objective(RtdConfig(), PAIR),
    "replaced_mlm": lambda: tiny.objective(ReplacedMlmConfig(), PAIR),
}
LAYOUTS = [("dp", 1), ("dp", 2), ("fsdp", 1), ("fsdp", 2), ("fsdp_tp", 1), ("fsdp_tp", 2)]
CASES = [(name, preset, parts) for name in OBJECTIVES for preset, parts in LAYOUTS]


@functools.cache
def stepped(name: str, preset: str, devices: int, parts: int) -> tuple[State, dict[str, Any]]:
    """(state, report) of the first step on 32 ragged rows, from random parameters, float32 and dropout on."""
    chosen, config = OBJECTIVES[name](), TrainConfig(batch=tiny.ROWS, microbatches=parts, precision="float32")
    ready = tiny.compile_for(chosen, OptimConfig(clip=0.0), config, tiny.phase(), tiny.mesh(preset, devices), preset)
    return ready.run(tiny.reads(tiny.batch(tiny.RAGGED), chosen))


@pytest.mark.full
@pytest.mark.parametrize("name, preset, parts", CASES)
def test_eight_devices_equal_one(name: str, preset: str, parts: int) -> None:
    """Loss, gradient and its norm <= 1e-5; weights of metrics, counts of predictions, equal."""
    (state, report), (one, want) = stepped(name, preset, 8, parts), stepped(name, "dp", 1, 1)
    assert abs(report["loss"] - want["loss"]) <= 1e-5 * want["loss"]
    assert abs(report["gradient_norm"] - want["gradient_norm"]) <= 1e-5 * want["gradient_norm"]
    tiny.assert_close(tiny.gradient(state), tiny.gradient(one), 1e-5)
    for metric, (_, weight) in want["metrics"].items():
        assert report["metrics"][metric][1] == weight, metric
