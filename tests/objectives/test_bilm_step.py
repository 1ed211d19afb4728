"""The compiled step of bidirectional language modelling: the same on one device and on eight, whole and in parts, state included."""

import dataclasses
import functools
from typing import Any

import jax
import numpy as np
import pytest

from jaxenc.optim.optimizer import OptimConfig
from jaxenc.training.settings import TrainConfig
from jaxenc.training.state import State
from tests import tiny
from tests.objectives import sentences

OPTIM = OptimConfig(clip=0.0, weight_decay=0.0, decay_exclude=())
MORE = [("dp", 1, 4), ("dp", 8, 1), ("fsdp_tp", 8, 2)]


@functools.cache
def stepped(preset: str, devices: int, parts: int) -> tuple[State, dict[str, Any]]:
    """(state, report) of the second step of 32 slots, of a state that has been read, at random parameters; dropout on. Their moments are
    means of both steps' gradients."""
    config = TrainConfig(batch=tiny.ROWS, microbatches=parts, precision="float32")
    one = tiny.phase(length=sentences.LENGTH, lr=0.0)
    compiled = tiny.compile_for(sentences.objective(), OPTIM, config, one, tiny.mesh(preset, devices), preset)
    state = jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), compiled.layout.shapes)
    state = dataclasses.replace(state, params=jax.device_get(sentences.drawn()))
    for step in range(2):
        placed = jax.device_put(state, compiled.layout.shardings)
        state, report = compiled.run(tiny.reads(sentences.batch_at(step), sentences.objective()), placed)
    return state, report


@pytest.mark.full
@pytest.mark.slow
@pytest.mark.parametrize("layout", [("fsdp", 8, 2), *MORE], ids=str)
def test_the_step_is_that_of_one_device_and_one_part(layout: tuple[str, int, int]) -> None:
    """Losses with the negatives of the step, gradients and both directions' states <= 1e-6 in four parts, and 1e-5 on eight devices."""
    bound = 1e-6 if layout[1] == 1 else 1e-5
    (state, report), (one, want) = stepped(*layout), stepped("dp", 1, 1)
    assert report["bad"] == 0 and abs(report["loss"] - want["loss"]) <= bound * want["loss"]
    for name, (total, weight) in want["metrics"].items():
        assert report["metrics"][name][1] == weight and abs(report["metrics"][name][0] - total) <= bound * total, name
    tiny.assert_close(state.moments["adam"].mu, one.moments["adam"].mu, bound)
    tiny.assert_close(state.carry, one.carry, bound)
    assert all(np.abs(leaf).max() > 0.01 for leaf in jax.tree.leaves(one.carry))


def test_a_padded_slot_keeps_its_state_through_a_step() -> None:
    """Slots 6, 13, 20 and 27 are padding in both steps, and start from zeros."""
    carry = jax.device_get(stepped("dp", 1, 1)[0].carry)
    assert all(not leaf[6::7].any() and np.abs(leaf[:6]).max(axis=(1, 2)).min() > 0 for leaf in jax.tree.leaves(carry))
