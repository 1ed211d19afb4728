"""A rate of masks that moves: the counts against plain Python at any step, and what does not change with them."""

import dataclasses
import functools
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxenc import rng
from jaxenc.errors import UserError
from jaxenc.objectives.corrupt import rule as rules
from jaxenc.objectives.mlm import MlmConfig
from jaxenc.objectives.pair import PairConfig
from jaxenc.objectives.rtd import RtdConfig
from jaxenc.sharding import partition
from jaxenc.training.step import corrupt
from tests import tiny
from tests.selection import thinned
from tests.sent import sent

V = tiny.VOCABULARY
LENGTH, LAST = 40, 2**31 - 1
FALLING, RISING = {"rate": 0.3, "final_rate": 0.15}, {"rate": 0.15, "final_rate": 0.4}
LENGTHS = [40, 37, 20, 10, 3, 2, 1, 0]
CONFIGS = {
    "tokens": (MlmConfig, {}),
    "stochastic": (MlmConfig, {"rounding": "stochastic"}),
    "words": (MlmConfig, {"unit": "words"}),
    "ngrams": (MlmConfig, {"unit": "ngrams"}),
    "spans": (MlmConfig, {"unit": "spans", "action": "span"}),
    "pairs": (PairConfig, {}),
    "replacement": (RtdConfig, {"with_replacement": True, "mask_share": 0.85}),
}


@functools.cache
def compiled(name: str, steps: int, falling: bool) -> Any:
    """(rows, step) -> examples of the objective, jitted once for all steps."""
    kind, fields = CONFIGS[name]
    config = kind(**fields, **(FALLING if falling else RISING), rate_steps=steps)
    objective = tiny.objective(config, tiny.PAIR if kind is RtdConfig else tiny.MODEL, LENGTH)

    @jax.jit
    def run(rows: Mapping[str, jax.Array], step: jax.Array) -> tuple[jax.Array, dict]:
        keys = rng.training(0, jnp.int32(5), len(LENGTHS)).per_row("corrupt", "mask")
        rounding = jax.vmap(lambda key: rules.draws(masking, key, LENGTH, step).rounding)(keys)
        return rounding, jax.vmap(objective.corrupt, in_axes=(0, 0, None))(keys, rows, step)

    masking = objective.generator.masking if kind is RtdConfig else (objective.mlm if kind is PairConfig else objective).masking
    return lambda step: jax.device_get(run(tiny.reads(tiny.batch(LENGTHS, LENGTH), objective), jnp.int32(step)))


def wanted(n: int, step: int, steps: int, falling: bool, bits: int | None) -> int:
    """By hand: the line in 256 moves, in decimals; rounded half to even and at least one, or down with the chance of one more."""
    first, last = (Fraction(30, 100), Fraction(15, 100)) if falling else (Fraction(15, 100), Fraction(40, 100))
    rate = first + (last - first) * Fraction(256 * min(step, steps) // steps, 256)
    if bits is not None:
        return int(rate * n + Fraction(2**32 - 1 - bits, 2**32))
    return max(1, round(n * float(rate))) if n else 0


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("steps, falling", thinned([(4_000_000, True), (7, False)], (4_000_000, True)))
def test_counts_at_every_step_are_those_of_plain_python(name: str, steps: int, falling: bool) -> None:
    """Equal in rows of 0 to 40 tokens from the first step to the end of int32; words count by the budget that they fill."""
    run, candidates = compiled(name, steps, falling), [max(n - (2 if n > 2 else 1), 0) for n in LENGTHS]
    for step in (0, 1, steps // 3, steps // 2, steps - 1, steps, steps + 1, LAST):
        rounding, example = run(step)
        bits = [int(b) if name == "stochastic" else None for b in rounding]
        want = [wanted(n, step, steps, falling, b) for n, b in zip(LENGTHS, bits, strict=True)]
        most = [want[i] if name == "replacement" and c else min(want[i], c) for i, c in enumerate(candidates)]
        got = example["masked"].sum(1)
        assert example.get("budget", got).tolist() == most, step
        assert (got <= most).all() and (got[:3] > 0).all() and example["masked"].shape[1] == 12 + 4 * (not falling)


@pytest.mark.parametrize("steps", [1, 7, 1000, 4_000_000, rules.MOST_STEPS])
def test_a_move_comes_at_its_step_exactly(steps: int) -> None:
    """The level against Python's integers, on both sides of every move and where int32 ends."""
    rule = MlmConfig(**FALLING, rate_steps=steps).masking(V, LENGTH, 0)
    turns = [-(-level * steps // 256) for level in range(257)]
    at = sorted({0, LAST, *turns, *(max(turn - 1, 0) for turn in turns)})
    levels = rule.level(jnp.array(at, jnp.int32))
    assert levels.dtype == jnp.int32 and levels.tolist() == [256 * min(step, steps) // steps for step in at]


@pytest.mark.parametrize("rounding", ["half_even", "stochastic"])
@pytest.mark.parametrize("fields", [FALLING, RISING], ids=["falling", "rising"])
def test_counts_move_one_way_and_keep_to_the_line(rounding: str, fields: dict) -> None:
    """For each n of 1 to 512, over all levels: monotone, from the constant rule's to the constant rule's, within 1/2 of the line (with
    one at least), 2^-32 where the rounding is drawn."""
    moving = MlmConfig(rounding=rounding, **fields, rate_steps=1000).masking(V, 512, 0)
    sure, odds = moving.budget(512)
    expected = sure + odds / 2**32
    assert sure.shape == odds.shape == (257, 513)
    turn = np.diff(expected, axis=0) * np.sign(fields["final_rate"] - fields["rate"])
    assert (turn >= 0).all() and (turn[:, 512] > 0).sum() > 70
    line = np.linspace(fields["rate"], fields["final_rate"], 257)[:, None] * np.arange(513)
    off = np.abs(expected - line)[:, 1:] if rounding == "stochastic" else np.where(expected > 1, np.abs(expected - line), 0)
    assert off.max() <= (1e-9 if rounding == "stochastic" else 0.5 + 1e-9)
    for level, rate in ((0, fields["rate"]), (-1, fields["final_rate"])):
        constant = MlmConfig(rounding=rounding, rate=rate).masking(V, 512, 0).budget(512)
        np.testing.assert_array_equal((sure[level], odds[level]), [table[0] for table in constant])
    assert moving.predictions == np.ceil(512 * max(fields["rate"], fields["final_rate"]))


def test_a_phase_with_less_room_cuts_the_count() -> None:
    """As of a constant rate: `max_predictions` of the phase is the most, before and after the rate has come down to it."""
    moving = MlmConfig(**FALLING, rate_steps=10).masking(V, LENGTH, 9)
    segments, bits = jnp.ones(LENGTH, jnp.int32), jax.random.key(0)
    counts = [int(moving.count(rules.draws(moving, bits, LENGTH, jnp.int32(step)), segments, segments)) for step in (0, 5, 10, LAST)]
    assert counts == [9, 9, 6, 6] and moving.predictions == 9


def test_the_step_reaches_every_device() -> None:
    """Masks of a step that is traced, on eight devices and on one: bitwise, and nothing is sent between them. Counts by hand."""
    objective = tiny.objective(MlmConfig(**FALLING, rate_steps=9), length=LENGTH)
    rows, steps = tiny.reads(tiny.batch([LENGTH] * 8, LENGTH), objective), (0, 4, 9)

    def masks(preset: str, devices: int) -> list[dict[str, np.ndarray]]:
        where = tiny.mesh(preset, devices)
        with jax.set_mesh(where):
            run = jax.jit(lambda rows, step: corrupt(objective, rng.training(0, step, 8), rows, where))
            done = run.lower(partition.place(rows, where), jnp.int32(0)).compile()
            assert not sent(done.as_text())
            return [jax.device_get(done(partition.place(rows, where), jnp.int32(step))) for step in steps]

    one = masks("dp", 1)
    tiny.assert_bitwise(masks("fsdp_tp", 8), one)
    assert [int(example["masked"].sum()) for example in one] == [8 * wanted(LENGTH, step, 9, True, None) for step in steps] == [96, 72, 48]


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"final_rate": 0.15}, "objective.final_rate is 0.15 and objective.rate_steps is 0; set both or neither"),
        ({"rate_steps": 10}, "objective.final_rate is 0.0 and objective.rate_steps is 10; set both or neither"),
        ({"final_rate": 1.5, "rate_steps": 10}, "objective.final_rate is 1.5"),
        ({"final_rate": -0.1, "rate_steps": 10}, "objective.final_rate is -0.1"),
        ({"final_rate": 0.1, "rate_steps": -1}, "objective.rate_steps is -1"),
        ({"longest": 4, "unit": "words"}, "objective.longest is 4 with objective.unit=words, which has no lengths; set it to 0"),
        ({"final_rate": 0.1, "rate_steps": 8_388_608}, "objective.rate_steps is 8388608; it is at most 8388607"),
    ],
)
def test_refusals_name_the_field(changes: dict, message: str) -> None:
    with pytest.raises(UserError, match=message) as error:
        dataclasses.replace(MlmConfig(), **changes)
    assert "\n" not in str(error.value)
