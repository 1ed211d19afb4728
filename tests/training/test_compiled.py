"""The compiled step on eight devices: the numbers of one device; no row of the batch and no parameter but split ones is sent."""

import dataclasses
import functools
import math

import jax
import jax.numpy as jnp
import pytest

from jaxenc import rng
from jaxenc.sharding import partition
from jaxenc.training.step import corrupt
from tests import tiny
from tests.selection import thinned
from tests.sent import sent

# One layer: its parameters have every shape and every sharding, and compiling is what takes the time.
MODEL = dataclasses.replace(tiny.MODEL, layers=1)


@functools.cache
def on_eight(preset: str, parts: int) -> tiny.Compiled:
    """The step on eight devices, compiled here: both tests below look at the same program."""
    with tiny.compiling():
        return tiny.compiled(preset, 8, parts, probe=False, model=MODEL)


@pytest.mark.slow
@pytest.mark.parametrize("preset, parts", thinned(tiny.MESHES, "fsdp_tp"))
def test_only_split_parameters_move(preset: str, parts: int) -> None:
    """Under dp nothing does. Elsewhere every array that moves is a float32 parameter which `fsdp` splits, gathered over `fsdp` alone,
    each once; no integer moves at all, so no token, mask, segment or label. The compiler has no resharding to complain of."""
    ready = on_eight(preset, parts)
    found = [one for one in sent(ready.step.as_text()) if one.kind not in ("all-reduce", "reduce-scatter")]
    assert "rematerialization" not in ready.stderr and ready.stderr == ""
    assert {(one.kind, one.dtype) for one in found} <= {("all-gather", "f32")}
    expected: dict[int, int] = {}
    for leaf, sharding in zip(*map(jax.tree.leaves, (ready.layout.shapes.params, ready.layout.shardings.params)), strict=True):
        parts_of = {axis: ready.mesh.shape[axis] for axes in sharding.spec if axes for axis in ((axes,) if isinstance(axes, str) else axes)}
        if parts_of.get("fsdp", 1) > 1:
            size = math.prod(leaf.shape) // parts_of.get("tensor", 1)
            expected[size] = expected.get(size, 0) + 1
    sizes = [math.prod(one.shape) for one in found]
    assert {size: sizes.count(size) for size in sorted(set(sizes))} == dict(sorted(expected.items()))
    assert bool(expected) == (preset != "dp")


@pytest.mark.slow
@pytest.mark.parametrize("preset, parts", thinned(tiny.MESHES, "fsdp_tp"))
def test_eight_devices_equal_one(preset: str, parts: int) -> None:
    """Masks bitwise; loss and gradient <= 1e-5, float32, dropout on."""
    batch, where = tiny.reads(tiny.batch(tiny.RAGGED), tiny.objective()), tiny.mesh(preset, 8)
    one, expected = tiny.compiled("dp", 1, model=MODEL).run(batch)
    with jax.set_mesh(where):
        masked = jax.jit(lambda rows: corrupt(tiny.objective(), rng.training(0, jnp.int32(0), tiny.ROWS), rows, where))
        example = jax.device_get(masked(partition.place(batch, where)))
    seen = {name: total for name, (total, _) in expected["metrics"].items() if name.startswith("seen_")}
    tiny.assert_bitwise({f"seen_{name}": array for name, array in example.items()}, seen)
    state, report = on_eight(preset, parts).run(batch)
    assert abs(report["loss"] - expected["loss"]) <= 1e-5 * expected["loss"]
    tiny.assert_close(tiny.gradient(state), tiny.gradient(one), 1e-5)
