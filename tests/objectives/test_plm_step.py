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

# One layer: compiling is what takes the time.
MODEL = dataclasses.replace(streams.MODEL, layers=1)
LAYOUTS = [("fsdp", 8, 2), ("dp", 8, 1), ("fsdp_tp", 8, 4)]
# fsdp is that of the test above.
MORE = [("fsdp_tp", 8, 4), ("dp", 8, 1), ("dp", 8, 4), ("fsdp", 8, 1)]


@functools.cache
def stepped(preset: str, devices: int, parts: int) -> tuple[State, dict, dict]:
    """(state, report, the examples in slot order) of the first step of 32 streams, from random parameters."""
    compiled = ready(preset, devices, parts)
    state = jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), compiled.layout.shapes)
    state = dataclasses.replace(state, params=jax.device_get(streams.drawn(model=MODEL)))
    placed = jax.device_put(state, compiled.layout.shardings)
    after, report = compiled.run(tiny.reads(streams.batch_at(0), streams.objective()), placed)
    seen = {name.removeprefix("seen_"): total for name, (total, _) in report["metrics"].items() if name.startswith("seen_")}
    return after, report, seen


@functools.cache
def ready(preset: str, devices: int, parts: int, kind: type[Plm] = Plm) -> tiny.Compiled:
    config = TrainConfig(batch=tiny.ROWS, microbatches=parts, precision="float32")
    whole = streams.objective(model=MODEL)
    probe = tiny.Probe(kind(**{field.name: getattr(whole, field.name) for field in dataclasses.fields(Plm)}), tiny.ROWS)
    one = tiny.phase(length=streams.LENGTH)
    return tiny.compile_for(probe, OptimConfig(clip=0.0), config, one, tiny.mesh(preset, devices), preset)


@pytest.mark.full
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
    """(the examples of the second step of 32 streams, what the slots remember of both), in slot order."""
    compiled, report = ready(preset, devices, parts, Unread), {}
    state = jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), compiled.layout.shapes)
    for step in range(2):
        placed = jax.device_put(state, compiled.layout.shardings)
        state, report = compiled.run(tiny.reads(streams.batch_at(step), streams.objective()), placed)
    return {name: total for name, (total, _) in report["metrics"].items()}, state.carry


@pytest.mark.parametrize("layout", [("dp", 8, 2), *(pytest.param(one, marks=pytest.mark.full) for one in MORE)], ids=str)
def test_permutations_are_those_of_one_device_and_one_part(layout: tuple[str, int, int]) -> None:
    """Bitwise in every field and slot, and what a slot remembers stays with it from step to step."""
    (seen, carry), (expected, remembered) = unread(*layout), unread("dp", 1, 1)
    tiny.assert_bitwise(seen, expected)
    tiny.assert_bitwise(carry, remembered)
    assert carry["filled"].tolist() == list(range(2, 65, 2)) and len(np.unique(seen["seen_rank"], axis=0)) == 32


@functools.cache
def alone() -> Any:
    """Compiled: what the layers read of the reused part of one row, [layers, 16, width], of (params, carry, example, keys) of that row."""
    chosen = streams.objective()

    def run(params: Any, before: Any, row: Any, keys: Any) -> jax.Array:
        return chosen.read(params, chosen.remembered(before, row["fresh"]), row, keys).inputs[0, :, :16]

    return jax.jit(run)


def recomputed(params: Any, before: Any, example: Any, slot: int, step: int) -> np.ndarray:
    """What the layers read of the reused part of one slot's row, [layers, 16, width], computed alone."""
    own = slice(slot, slot + 1)
    keys = dataclasses.replace(rng.training(0, jnp.int32(step), tiny.ROWS), rows=np.arange(slot, slot + 1, dtype=np.uint32))
    of_slot = lambda held: jax.tree.map(lambda leaf: leaf[own], held)
    return np.asarray(alone()(params, of_slot(before), of_slot(example), keys))


def test_memory_holds_what_the_layers_read_of_the_slots_last_rows() -> None:
    """After three steps' losses, to 1e-5 and with dropout: the 16 last states of a slot are those of its row of that step, computed alone,
    and the 8 before them the last of its row before. Those of the next slots are not: shuffled slots would show."""
    chosen, params = streams.objective(), streams.drawn()
    losses = jax.jit(lambda params, carry, example, keys: chosen.terms(params, carry, example, keys, True)[2])
    carries, example = [jax.device_get(chosen.carry(tiny.ROWS))], {}
    for step in range(3):
        example, keys = jax.device_get(streams.corrupted(chosen, streams.batch_at(step), step))
        carries.append(jax.device_get(losses(params, carries[-1], example, keys)))
    _, first, second, third = carries
    held = third["states"]
    np.testing.assert_array_equal(held[:, :, :8], second["states"][:, :, 16:])
    for slot in (0, 1, 2, 3, 30):
        own = recomputed(params, second, example, slot, 2)
        np.testing.assert_allclose(held[slot, :, 8:], own, atol=1e-5)
        assert np.abs(held[(slot + 2) % 32, :, 8:] - own).max() > 0.1
    shuffled = jax.tree.map(lambda leaf: np.roll(leaf, 2, axis=0), second)
    assert not example["fresh"][0] and np.abs(recomputed(params, shuffled, example, 0, 2)[1] - held[0, 1, 8:]).max() > 1e-3
    assert example["fresh"][1]
    started = [recomputed(params, carry, example, 1, 2) for carry in (shuffled, second)]
    np.testing.assert_array_equal(*started)
    fresh = np.stack([streams.batch_at(step)["fresh"] for step in range(3)])
    assert (third["filled"] == np.where(fresh[2], 16, 24)).all() and (first["filled"] == 16).all()
