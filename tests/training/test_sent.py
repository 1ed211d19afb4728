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

# One layer, products in bfloat16: its parameters have every shape and sharding, and a tied table.
MODEL = dataclasses.replace(tiny.MODEL, layers=1)
PARTS = 2
NAMES = "all-gather|all-reduce|reduce-scatter|all-to-all|collective-permute|collective-broadcast|ragged-all-to-all"
SENT = re.compile(rf"^\s*(?:ROOT )?%?[\w.\-]+ = (.*?) ({NAMES})(?:-start)?\(.*?(?:replica_groups=(\S+?),? |$)")
ARRAY = re.compile(r"([a-z]+[0-9]*)\[([0-9,]*)\]")
COMPUTATION = re.compile(r"^(?:ENTRY )?%?([\w.\-]+) \(.*\) -> .* \{$")
LOWERED = re.compile(
    r'"stablehlo\.(all_reduce|all_gather|reduce_scatter|all_to_all|collective_permute)".*?: \(tensor<(?:[0-9x]*)([a-z]+[0-9]+)>', re.DOTALL
)


@dataclasses.dataclass(frozen=True)
class Sent:
    """One array of one collective. inside: in a loop."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    inside: bool


def sent(hlo: str) -> list[Sent]:
    """Every array that a collective of the compiled text sends, and whether a loop's body does."""
    bodies, found, inside = set(re.findall(r"body=%?([\w.\-]+)", hlo)), [], False
    for line in hlo.splitlines():
        if begun := COMPUTATION.match(line):
            inside = begun[1] in bodies
        if one := SENT.match(line):
            for dtype, sizes in ARRAY.findall(one[1]):
                found.append(Sent(one[2], dtype, tuple(int(size) for size in sizes.split(",") if size), inside))
    return found


def step(preset: str) -> tuple[Layout, str, str]:
    """(layout, StableHLO, compiled HLO) of the step of eight devices in two microbatches, in bfloat16."""
    how = dataclasses.replace(tiny.execution(), policy=policy("bfloat16"))
    chosen, where = tiny.objective(MlmConfig(), MODEL, how=how), tiny.mesh(preset, 8)
    config = TrainConfig(batch=tiny.ROWS, microbatches=PARTS, precision="bfloat16")
    place, lowered = tiny.lower_for(chosen, OptimConfig(clip=0.0), config, tiny.phase(), where, preset)
    return place, lowered.as_text(), lowered.compile().as_text()


def test_the_reader_of_the_compiled_text() -> None:
    text = """
%inner (p: f32[4]) -> f32[4] {
  %ar = bf16[4,2]{1,0} all-reduce(%x), channel_id=1, replica_groups={{0,1}}, to_apply=%add
}
ENTRY %main (p: f32[4]) -> f32[4] {
  %loop = f32[4]{0} while(%t), condition=%cond, body=%inner
  ROOT %rs = (f32[4]{0}, s32[]) reduce-scatter-start(%p, %q), dimensions={0}, metadata={op_name="all-gather(x)"}
}
"""
    assert sent(text) == [
        Sent("all-reduce", "bf16", (4, 2), True),
        Sent("reduce-scatter", "f32", (4,), False),
        Sent("reduce-scatter", "s32", (), False),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("preset", ["dp", "fsdp"])
def test_every_gradient_is_sent_once_in_float32_after_the_last_part(preset: str) -> None:
    """By name and size: what `fsdp` splits is reduce-scattered, the rest all-reduced; nothing else but scalars, and nothing in a loop.

    The CPU's compiler widens bfloat16 collectives, so the dtypes are read before its passes.
    """
    place, lowered, compiled = step(preset)
    assert {dtype for _, dtype in LOWERED.findall(lowered)} <= {"f32", "i32"}
    found = sent(compiled)
    assert not [one for one in found if one.inside]
    large = collections.Counter((one.name, math.prod(one.shape)) for one in found if one.shape)
    expected: collections.Counter = collections.Counter()
    for leaf, sharding in zip(*map(jax.tree.leaves, (place.shapes.params, place.shardings.params)), strict=True):
        if "fsdp" in sharding.spec:
            expected["all-gather", leaf.size] += 1
            expected["reduce-scatter", leaf.size // 8] += 1
        else:
            expected["all-reduce", leaf.size] += 1
    assert large == expected and (preset == "fsdp") == any(name == "reduce-scatter" for name, _ in expected)
