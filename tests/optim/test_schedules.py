"""Whole horizons against transcriptions of the originals in float64."""

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxenc.optim.optimizer import OptimConfig
from jaxenc.optim.schedules import learning_rate


def decay(left: float, power: float | str) -> float:
    """left^power, or half a period of a cosine, from 1 down to 0."""
    return 0.5 * (1 + math.cos(math.pi * (1 - left))) if power == "cosine" else left**power


def bert(step: int, lr: float, warmup: int, steps: int, power: float | str) -> float:
    """google-research/bert:optimization.py, with tf.train.polynomial_decay written out; with a cosine, warmup_cosine of
    openai/finetune-transformer-lm:opt.py."""
    decayed = lr * decay(1 - min(step, steps) / steps, power)
    return lr * step / warmup if step < warmup else decayed


def fairseq(step: int, lr: float, warmup: int, steps: int, power: float | str) -> float:
    """fairseq's PolynomialDecayLRSchedule.step_update with end_learning_rate 0."""
    if warmup > 0 and step <= warmup:
        return step / warmup * lr
    if step >= steps:
        return 0.0
    return lr * decay(1 - (step - warmup) / (steps - warmup), power)


def electra(step: int, lr: float, warmup: int, steps: int, power: float | str) -> float:
    """google-research/electra:model/optimization.py; without a warm-up it divides by zero, and here there is no ramp."""
    decayed = lr * decay(1 - min(step, steps) / steps, power)
    return decayed * min(1.0, step / warmup) if warmup else decayed


def rates(config: OptimConfig, lr: float, warmup: int, steps: int, upto: int) -> np.ndarray:
    rate = learning_rate(config.schedule, config.origin, lr, warmup, steps, config.slanted_ratio)
    return np.asarray(jax.jit(rate)(jnp.arange(upto, dtype=jnp.int32)))


@pytest.mark.parametrize("warmup, steps", [(10, 100), (0, 7), (100, 100), (2843, 10_000), (1, 3)])
@pytest.mark.parametrize("schedule, power", [("linear", 1.0), ("square_root", 0.5), ("cosine", "cosine")])
@pytest.mark.parametrize("origin, rule", [("step_zero", bert), ("step_zero_ramp", electra), ("warmup_end", fairseq)])
def test_every_step_equals_the_original(
    origin: str, rule: Callable[..., float], schedule: str, power: float | str, warmup: int, steps: int
) -> None:
    got = rates(OptimConfig(schedule=schedule, origin=origin), 6e-3, warmup, steps, steps + 20)
    expected = np.array([rule(step, 6e-3, warmup, steps, power) for step in range(steps + 20)])
    # With warmup = steps, fairseq gives the full rate at step `steps`, which a phase never reaches; jaxenc gives 0.
    asked = np.arange(steps + 20) != (steps if warmup == steps else -1)
    assert got.dtype == np.float32
    # The float64 cosine itself loses digits near the last step, where 1 + cos is next to nothing.
    np.testing.assert_allclose(got[asked], expected[asked], rtol=1e-6, atol=6e-3 * 1e-15 if schedule == "cosine" else 0)
    assert (got[steps + 1 :] == 0).all()


def test_the_last_steps_of_a_million_keep_their_digits() -> None:
    steps = np.array([0, 1, 9_999, 10_000, 999_998, 999_999, 1_000_000, 1_000_001], np.int32)
    got = learning_rate("linear", "step_zero", 1e-4, 10_000, 1_000_000, 1.0)(jnp.asarray(steps))
    np.testing.assert_allclose(got, [bert(int(s), 1e-4, 10_000, 1_000_000, 1.0) for s in steps], rtol=1e-6, atol=1e-20)


def test_the_rate_drops_at_the_end_of_a_spliced_warm_up_only() -> None:
    spliced = rates(OptimConfig(origin="step_zero"), 1.0, 10, 100, 11)
    joined = rates(OptimConfig(origin="warmup_end"), 1.0, 10, 100, 11)
    np.testing.assert_allclose([spliced[9], spliced[10], joined[9], joined[10]], [0.9, 0.9, 0.9, 1.0], rtol=1e-6)


@pytest.mark.parametrize("origin", ["step_zero", "step_zero_ramp", "warmup_end"])
def test_constant_stays_at_the_rate(origin: str) -> None:
    got = rates(OptimConfig(schedule="constant", origin=origin), 1e-3, 4, 10, 30)
    np.testing.assert_array_equal(got[4:], np.full(26, np.float32(1e-3)))
    np.testing.assert_allclose(got[:4], 1e-3 * np.arange(4) / 4, rtol=1e-6)


def triangle(step: int, steps: int, cut_frac: float, ratio: float) -> float:
    """Howard and Ruder 2018, equation 3, for a peak of 1."""
    cut = math.floor(steps * cut_frac)
    p = step / cut if step < cut else 1 - (step - cut) / (cut * (1 / cut_frac - 1))
    return (1 + p * (ratio - 1)) / ratio


@pytest.mark.parametrize("origin", ["step_zero", "step_zero_ramp", "warmup_end"])
@pytest.mark.parametrize("steps, cut_frac, ratio", [(100, 0.1, 32.0), (1000, 0.1, 32.0), (40, 0.25, 8.0), (10, 0.1, 1.0)])
def test_the_slanted_triangle_is_the_papers(steps: int, cut_frac: float, ratio: float, origin: str) -> None:
    got = rates(OptimConfig(schedule="slanted", slanted_ratio=ratio, origin=origin), 0.01, int(steps * cut_frac), steps, steps + 5)
    expected = [0.01 * triangle(step, steps, cut_frac, ratio) for step in range(steps + 1)]
    np.testing.assert_allclose(got[: steps + 1], expected, rtol=1e-6)
    assert np.argmax(got) == int(steps * cut_frac) or ratio == 1
    np.testing.assert_array_equal(got[steps:], got[steps])


def test_a_slanted_triangle_whose_cut_is_no_integer_ends_at_its_lowest_rate() -> None:
    """Where the paper's formula is negative."""
    got = rates(OptimConfig(schedule="slanted"), 1.0, 1, 19, 20)
    assert triangle(18, 19, 0.1, 32) < 0
    np.testing.assert_allclose(got[[0, 1, 10, 19]], [1 / 32, 1, (1 + 0.5 * 31) / 32, 1 / 32], rtol=1e-6)
