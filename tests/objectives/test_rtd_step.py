"""The compiled step of replaced-token detection: the same on one device and on eight, whole and in parts, and where it starts."""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxenc import rng
from jaxenc.objectives.corrupt import sample
from jaxenc.objectives.rtd import RtdConfig
from jaxenc.optim.optimizer import OptimConfig
from jaxenc.training.run import Run
from jaxenc.training.settings import TrainConfig
from jaxenc.training.state import State
from tests import tiny

MODEL = dataclasses.replace(tiny.PAIR, layers=1)
LAYOUTS = [("fsdp_tp", 8, 2), ("dp", 8, 4)]
# Two scores nearer than this may change places with the order of a sum.
NEAR = 1e-4
# Draws of each prediction, in chunks.
DRAWS = (10, 50)


@dataclasses.dataclass(frozen=True)
class Shown(tiny.Probe):
    """Also holds the generator's logits, what the step drew for its samples and the discriminator's rows, in slot order."""

    def terms(self, params: Any, carry: Any, example: Mapping[str, Any], keys: Any, train: bool) -> Any:
        sums, metrics, carry = super().terms(params, carry, example, keys, train)
        logits = self.inner.generator.logits(params, example, keys)
        seen = {"noise": sample.gumbel(keys.per_row("sample", "generator"), *logits.shape[1:])}
        seen |= {"fake": self.inner.generator.sampled(logits, example, keys), "logits": logits}
        seen = {name: jnp.zeros((self.rows, *a.shape[1:]), a.dtype).at[keys.rows].set(a) for name, a in seen.items()}
        return sums, {**metrics, **{f"seen_{name}": (a, jnp.int32(1)) for name, a in seen.items()}}, carry


@functools.cache
def ready(preset: str, devices: int, parts: int) -> tiny.Compiled:
    config = TrainConfig(batch=tiny.ROWS, microbatches=parts, precision="float32")
    shown = Shown(tiny.objective(RtdConfig(), MODEL), tiny.ROWS)
    return tiny.compile_for(shown, OptimConfig(clip=0.0), config, tiny.phase(), tiny.mesh(preset, devices), preset)


@functools.cache
def stepped(preset: str, devices: int, parts: int, fresh: bool = False) -> tuple[State, dict, dict]:
    """(state, report, what Shown holds) of the first step on 32 ragged rows, from random parameters, or from those of a fresh run."""
    compiled, objective = ready(preset, devices, parts), tiny.objective(RtdConfig(), MODEL)
    with jax.set_mesh(compiled.mesh):
        if fresh:
            start = compiled.layout.create(rng.init_key(0))
        else:
            start = jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), compiled.layout.shapes)
            start = dataclasses.replace(start, params=tiny.drawn(Run(objective=RtdConfig(), model=MODEL)))
            start = jax.device_put(start, compiled.layout.shardings)
        state, report = compiled.run(tiny.reads(tiny.batch(tiny.RAGGED), objective), start)
    seen = {name.removeprefix("seen_"): total for name, (total, _) in report["metrics"].items() if name.startswith("seen_")}
    return state, report, seen


@pytest.mark.full
@pytest.mark.slow
@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_the_step_is_that_of_one_device_and_one_part(layout: tuple[str, int, int]) -> None:
    """Masks and noise bitwise; samples and labels equal, no near tie among these; loss and gradient <= 1e-5, float32, dropout on."""
    (state, report, seen), (one, want, expected) = stepped(*layout), stepped("dp", 1, 1)
    assert np.abs(seen["logits"] - expected["logits"]).max() <= 1e-5
    tiny.assert_bitwise({**seen, "logits": 0}, {**expected, "logits": 0})
    assert abs(report["loss"] - want["loss"]) <= 1e-5 * want["loss"]
    tiny.assert_close(tiny.gradient(state), tiny.gradient(one), 1e-5)
    scores, _ = report["metrics"]["rtd_scores"]
    assert scores.sum() == sum(tiny.RAGGED) and report["bad"] == 0


@pytest.mark.full
@pytest.mark.slow
def test_samples_differ_between_layouts_at_near_ties_alone() -> None:
    """500 draws of each of the step's 84 predictions from the logits of each layout, 6e-7 apart by their rounding, with one noise.

    The best two scores of 3 of the 42,000 are nearer than 1e-4, as about 1e-4 of all draws are; none of the 3 differs here, others may.
    """
    masked = stepped("dp", 1, 1)[2]["masked"] > 0
    logits = jnp.stack([stepped(*layout)[2]["logits"][masked] for layout in [("dp", 1, 1), *LAYOUTS]])
    assert (np.ptp(logits, axis=0) > 0).any()

    @jax.jit
    def drawn(keys: jax.Array) -> tuple[jax.Array, jax.Array]:
        noise = sample.gumbel(keys, *logits.shape[1:])
        scores = logits[0] + noise
        best = scores.max(-1, keepdims=True)
        return jax.vmap(lambda one: sample.draw(one, noise, 1.0))(logits), jnp.min(jnp.where(scores < best, best - scores, jnp.inf), -1)

    chunks = [jax.device_get(drawn(keys)) for keys in jax.random.split(jax.random.key(1), DRAWS)]
    samples, gaps = np.concatenate([a for a, _ in chunks], 1), np.concatenate([gap for _, gap in chunks])
    differ, near = (samples != samples[0]).any(0), gaps < NEAR
    assert 0 < near.sum() <= 15 and not differ[~near].any() and samples.max() < 200


def test_the_first_loss_is_that_of_a_uniform_guess() -> None:
    """ln V for the generator and its entropy, ln 2 for the discriminator, within 0.1; the sum has the weights 1 and 50."""
    _, report, seen = stepped("dp", 1, 1, fresh=True)
    means = {name: float(total) / float(weight) for name, (total, weight) in report["metrics"].items() if np.ndim(total) == 0}
    assert abs(means["mlm_loss"] - np.log(200)) <= 0.1 and abs(means["mlm_entropy"] - np.log(200)) <= 0.1
    assert abs(means["rtd_loss"] - np.log(2)) <= 0.1
    assert abs(report["loss"] - means["mlm_loss"] - 50 * means["rtd_loss"]) <= 1e-4
    fake, rows = seen["fake"], tiny.batch(tiny.RAGGED)
    assert fake.max() < 200 and ((fake != rows["tokens"]) <= rows["segments"]).all()
