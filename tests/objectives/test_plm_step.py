"""The compiled step of permutation language modelling: the same on one device and on eight, whole and in parts; what its memory holds."""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxenc import rng
from jaxenc.objectives.plm import Plm
from jaxenc.optim.optimizer import OptimConfig
from jaxenc.training.settings import TrainConfig
from jaxenc.training.state import State
from tests import tiny
from tests.objectives import streams

LAYOUTS = [("fsdp_tp", 8, 4)]
MORE = [("dp", 8, 1), ("dp", 8, 4), ("fsdp", 8, 1)]


@functools.cache
def stepped(preset: str, devices: int, parts: int, steps: int = 1) -> tuple[State, dict, dict]:
    """(state, report, the examples in slot order) of the last of the first steps of 32 streams, from random parameters."""
    if steps > 1:
        compiled, state = ready(preset, devices, parts), stepped(preset, devices, parts, steps - 1)[0]
    else:
        compiled = ready(preset, devices, parts)
        state = jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), compiled.layout.shapes)
        state = dataclasses.replace(state, params=jax.device_get(streams.drawn()))
    placed = jax.device_put(state, compiled.layout.shardings)
    after, report = compiled.run(tiny.reads(streams.batch_at(steps - 1), streams.objective()), placed)
    seen = {name.removeprefix("seen_"): total for name, (total, _) in report["metrics"].items() if name.startswith("seen_")}
    return after, report, seen


@functools.cache
def ready(preset: str, devices: int, parts: int, kind: type[Plm] = Plm) -> tiny.Compiled:
    config = TrainConfig(batch=tiny.ROWS, microbatches=parts, precision="float32")
    whole = streams.objective()
    probe = tiny.Probe(kind(**{field.name: getattr(whole, field.name) for field in dataclasses.fields(Plm)}), tiny.ROWS)
    one = tiny.phase(length=streams.LENGTH)
    return tiny.compile_for(probe, OptimConfig(clip=0.0), config, one, tiny.mesh(preset, devices), preset)


@pytest.mark.slow
@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_the_step_is_that_of_one_device_and_one_part(layout: tuple[str, int, int]) -> None:
    """Permutations bitwise, in every field and slot; loss, gradient and memory <= 1e-5, float32, dropout on."""
    (state, report, seen), (one, want, expected) = stepped(*layout), stepped("dp", 1, 1)
    tiny.assert_bitwise(seen, expected)
    assert abs(report["loss"] - want["loss"]) <= 1e-5 * want["loss"] and report["bad"] == 0
    tiny.assert_close(tiny.gradient(state), tiny.gradient(one), 1e-5)
    np.testing.assert_allclose(state.carry["states"], one.carry["states"], atol=1e-5)
    assert (state.carry["filled"] == 16).all()


class Unread(Plm):
    """Chooses and permutes rows as its parent, and reads no network, which is what compiling takes its time for. Slot s remembers s + 1."""

    def terms(self, params: Any, carry: Any, example: Any, keys: Any, train: bool) -> Any:
        slots = keys.rows.astype(jnp.int32) + 1
        loss = jnp.sum(params["lm"]["bias"]) * jnp.sum(example["masked"])
        return {"plm": loss}, {}, {"states": carry["states"] + slots[:, None, None, None], "filled": carry["filled"] + slots}


@functools.cache
def unread(preset: str, devices: int, parts: int) -> tuple[dict, Any]:
    """(the examples, what the slots remember) of the second step of 32 streams, in slot order."""
    compiled = ready(preset, devices, parts, Unread)
    state = jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), compiled.layout.shapes)
    placed = jax.device_put(dataclasses.replace(state, step=np.int32(1)), compiled.layout.shardings)
    after, report = compiled.run(tiny.reads(streams.batch_at(1), streams.objective()), placed)
    return {name: total for name, (total, _) in report["metrics"].items()}, after.carry


@pytest.mark.parametrize("layout", [("dp", 8, 2), ("fsdp_tp", 8, 4), *(pytest.param(one, marks=pytest.mark.full) for one in MORE)], ids=str)
def test_permutations_are_those_of_one_device_and_one_part(layout: tuple[str, int, int]) -> None:
    """Bitwise in every field and slot, and what a slot remembers stays with it."""
    (seen, carry), (expected, remembered) = unread(*layout), unread("dp", 1, 1)
    tiny.assert_bitwise(seen, expected)
    tiny.assert_bitwise(carry, remembered)
    assert carry["filled"].tolist() == list(range(1, 33)) and len(np.unique(seen["seen_rank"], axis=0)) == 32


def recomputed(params: Any, before: Any, example: Any, slot: int, step: int) -> np.ndarray:
    """What the layers read of the reused part of one slot's row, [layers, 16, width], computed alone."""
    chosen, own = streams.objective(), slice(slot, slot + 1)
    keys = dataclasses.replace(rng.training(0, jnp.int32(step), tiny.ROWS), rows=jnp.arange(slot, slot + 1, dtype=jnp.uint32))
    row = {name: leaf[own] for name, leaf in example.items()}
    memory = chosen.remembered(jax.tree.map(lambda leaf: leaf[own], before), row["fresh"])
    return np.asarray(chosen.read(params, memory, row, keys).inputs)[0, :, :16]


def test_memory_holds_what_the_layers_read_of_the_slots_last_rows() -> None:
    """After three steps, to 1e-5 and with dropout: the 16 last states of a slot are those of its row of that step, computed alone, and
    the 8 before them the last of its row before. Those of the next slots are not: shuffled slots would show."""
    (first, *_), (second, *_), (third, _, example) = (stepped("dp", 1, 1, steps) for steps in (1, 2, 3))
    held = third.carry["states"]
    np.testing.assert_array_equal(held[:, :, :8], second.carry["states"][:, :, 16:])
    for slot in (0, 1, 2, 3, 30):
        alone = recomputed(second.params, second.carry, example, slot, 2)
        np.testing.assert_allclose(held[slot, :, 8:], alone, atol=1e-5)
        assert np.abs(held[(slot + 2) % 32, :, 8:] - alone).max() > 0.1
    shuffled = jax.tree.map(lambda leaf: np.roll(leaf, 2, axis=0), second.carry)
    assert not example["fresh"][0] and np.abs(recomputed(second.params, shuffled, example, 0, 2)[1] - held[0, 1, 8:]).max() > 1e-3
    assert example["fresh"][1]
    started = [recomputed(second.params, carry, example, 1, 2) for carry in (shuffled, second.carry)]
    np.testing.assert_array_equal(*started)
    fresh = np.stack([streams.batch_at(step)["fresh"] for step in range(3)])
    assert (third.carry["filled"] == np.where(fresh[2], 16, 24)).all() and (first.carry["filled"] == 16).all()
