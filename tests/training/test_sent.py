"""What the compiled step sends from device to device: gradients in float32, each once, after the last microbatch."""

import collections
import dataclasses
import math
import re

import jax
import pytest

from jaxenc.objectives.mlm import MlmConfig
from jaxenc.optim.optimizer import OptimConfig
from jaxenc.precision import policy
from jaxenc.training.settings import TrainConfig
from jaxenc.training.state import Layout
from tests import tiny
from tests.selection import thinned
from tests.sent import sent

# One layer, products in bfloat16: its parameters have every shape and sharding, and a tied table.
MODEL = dataclasses.replace(tiny.MODEL, layers=1)
PARTS = 2
LOWERED = re.compile(
    r'"stablehlo\.(all_reduce|all_gather|reduce_scatter|all_to_all|collective_permute)".*?: \(tensor<(?:[0-9x]*)([a-z]+[0-9]+)>', re.DOTALL
)


def step(preset: str) -> tuple[Layout, str, str]:
    """(layout, StableHLO, compiled HLO) of the step of eight devices in two microbatches, in bfloat16."""
    how = dataclasses.replace(tiny.execution(), policy=policy("bfloat16"))
    chosen, where = tiny.objective(MlmConfig(), MODEL, how=how), tiny.mesh(preset, 8)
    config = TrainConfig(batch=tiny.ROWS, microbatches=PARTS, precision="bfloat16")
    place, lowered = tiny.lower_for(chosen, OptimConfig(clip=0.0), config, tiny.phase(), where, preset)
    return place, lowered.as_text(), lowered.compile().as_text()


@pytest.mark.slow
@pytest.mark.parametrize("preset", thinned(["dp", "fsdp"], "dp"))
def test_every_gradient_is_sent_once_in_float32_after_the_last_part(preset: str) -> None:
    """By name and size: what `fsdp` splits is reduce-scattered, the rest all-reduced; nothing else but scalars, and nothing in a loop.

    The CPU's compiler widens bfloat16 collectives, so the dtypes are read before its passes.
    """
    place, lowered, compiled = step(preset)
    assert {dtype for _, dtype in LOWERED.findall(lowered)} <= {"f32", "i32"}
    found = sent(compiled)
    assert not [one for one in found if one.inside]
    large = collections.Counter((one.kind, math.prod(one.shape)) for one in found if one.shape)
    expected: collections.Counter = collections.Counter()
    for leaf, sharding in zip(*map(jax.tree.leaves, (place.shapes.params, place.shardings.params)), strict=True):
        if "fsdp" in sharding.spec:
            expected["all-gather", leaf.size] += 1
            expected["reduce-scatter", leaf.size // 8] += 1
        else:
            expected["all-reduce", leaf.size] += 1
    assert large == expected and (preset == "fsdp") == any(name == "reduce-scatter" for name, _ in expected)
