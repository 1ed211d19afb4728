"""Microbatches and the carry, on an objective small enough to know every number of."""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as nn

from jaxenc import rng
from jaxenc.objectives.base import Objective
from jaxenc.optim.optimizer import OptimConfig
from jaxenc.training import accumulate
from jaxenc.training.evaluate import compile_evaluation, evaluate
from jaxenc.training.settings import TrainConfig
from jaxenc.training.state import adopt, layout
from tests import tiny
from tests.selection import thinned


@dataclasses.dataclass(frozen=True)
class Toy(Objective):
    """Two sums of different denominators and a memory: each row's memory takes the mean of the row's tokens, and enters the loss.

    near: squared distance of w · tokens from the memory, a prediction a token. far: w · memory, a prediction a row with many tokens.
    """

    width: int = 2
    coef: Mapping[str, float] = dataclasses.field(default_factory=lambda: {"near": 1.0, "far": 3.0})

    @property
    def reads(self) -> Mapping[str, int]:
        return {"tokens": tiny.VOCABULARY.size, "segments": 0}

    def init(self, key: Any) -> Any:
        box = lambda leaf: nn.LogicallyPartitioned(leaf, ("norm",))
        return {"dense": {"w": box(jnp.arange(1.0, 1 + self.width)), "bias": box(jnp.ones(1))}, "norm": {"scale": box(jnp.ones(1))}}

    def carry(self, batch: int) -> Any:
        return {"memory": jnp.zeros((batch, self.width), jnp.float32)}

    def corrupt(self, key: Any, one: Mapping[str, Any], step: Any) -> dict[str, Any]:
        return dict(one)

    def weights(self, example: Mapping[str, Any]) -> dict[str, Any]:
        real = jnp.sum(example["segments"], axis=1)
        return {"near": jnp.sum(real), "far": jnp.sum(real > 4)}

    def terms(self, params: Any, carry: Any, example: Mapping[str, Any], keys: Any, train: bool) -> Any:
        w, real = params["dense"]["w"], example["segments"].astype(jnp.float32)
        x = example["tokens"].astype(jnp.float32) / 100
        near = jnp.sum(real * jnp.square(x * w.sum() - carry["memory"].sum(1, keepdims=True)))
        many = (real.sum(1) > 4).astype(jnp.float32)
        far = jnp.sum(many * (carry["memory"] @ w + params["dense"]["bias"][0] * params["norm"]["scale"][0]))
        mean = jnp.sum(real * x, axis=1) / jnp.maximum(real.sum(1), 1)
        memory = 0.5 * carry["memory"] + mean[:, None] * w
        metrics = {"rows": jnp.sum(real > 0, dtype=jnp.float32), "memory": jnp.sum(carry["memory"])}
        return {"near": near, "far": far}, {name: (total, jnp.int32(1)) for name, total in metrics.items()}, {"memory": memory}

    def outputs(self, params: Any, example: Mapping[str, Any]) -> dict[str, Any]:
        return {}

    def flops(self, length: int) -> float:
        return 1.0


OPTIM = OptimConfig(lr=0.1, warmup=0, clip=0.0, decay_exclude=())


@functools.cache
def held_still(clip: float) -> tiny.Compiled:
    """The toy's step in two parts at a rate of 0: parameters stay, moments and carry move."""
    config, optim = TrainConfig(batch=16, microbatches=2), dataclasses.replace(OPTIM, clip=clip)
    return tiny.compile_for(Toy(), optim, config, tiny.phase(16, 12, lr=0.0), tiny.mesh("dp", 1))


def run_toy(steps: int, parts: int, devices: int = 1) -> tuple[Any, list[float]]:
    """The state after `steps` steps on batches of 16 rows, another one each, and their losses."""
    ready = tiny.compile_for(Toy(), OPTIM, TrainConfig(batch=16, microbatches=parts), tiny.phase(16, 12), tiny.mesh("dp", devices))
    with jax.set_mesh(ready.mesh):
        state, losses = ready.layout.create(rng.init_key(0)), []
        for step in range(steps):
            state, report = ready.run(rows_of(step), state)
            losses.append(float(report["loss"]))
    return state, losses


def rows_of(step: int) -> dict[str, np.ndarray]:
    return tiny.reads(tiny.batch([1, 3, 10, 12, 2, 5, 12, 1, 7, 4, 12, 6, 1, 1, 9, 3], 12, seed=step), Toy())


def by_hand(steps: int) -> tuple[list[float], np.ndarray]:
    """(losses, last memory) of the toy in float64 NumPy with the parameters held: the definition of the loss, term by term."""
    memory, w, losses = np.zeros((16, 2)), np.array([1.0, 2.0]), []
    for step in range(steps):
        batch = rows_of(step)
        near = far = tokens = many = 0
        after = memory.copy()
        for i in range(16):
            n = int(batch["segments"][i].sum())
            x = batch["tokens"][i][:n] / 100
            near, tokens = near + np.square(x * w.sum() - memory[i].sum()).sum(), tokens + n
            if n > 4:
                far, many = far + memory[i] @ w + 1.0, many + 1
            after[i] = 0.5 * memory[i] + x.mean() * w
        memory = after
        losses.append(near / tokens + 3.0 * far / many)
    return losses, memory


@pytest.mark.parametrize("parts", [1, 2, 4, 8])
def test_split_deals_the_rows_out_and_join_collects_them(parts: int) -> None:
    """Part m holds the rows i ≡ m mod parts, in order; `join` is the inverse."""
    leaf = np.arange(48).reshape(16, 3)
    dealt = np.asarray(accumulate.split(parts, jnp.asarray(leaf)))
    for m in range(parts):
        np.testing.assert_array_equal(dealt[m], leaf[m::parts])
    np.testing.assert_array_equal(accumulate.join(jnp.asarray(dealt)), leaf)


def test_the_loss_is_the_sum_of_the_terms_means() -> None:
    """Each term by its own weight over the whole batch, times its coefficient; a term without weight counts 0."""
    terms = {"near": jnp.float32(6), "far": jnp.float32(10)}
    assert accumulate.combine(Toy(), terms, {"near": jnp.int32(4), "far": jnp.int32(5)}) == 6 / 4 + 3 * 10 / 5
    assert accumulate.combine(Toy(), terms, {"near": jnp.int32(4), "far": jnp.int32(0)}) == 6 / 4
    gradient = jax.grad(lambda t: accumulate.combine(Toy(), {"near": t, "far": t}, {"near": jnp.int32(0), "far": jnp.int32(0)}))
    assert gradient(jnp.float32(1)) == 0


def test_the_carry_flows_from_step_to_step_as_by_hand() -> None:
    """At a rate of 0 three losses and the memory equal the loop (<= 1e-6 relative): the second step reads what the first wrote."""
    ready = held_still(0.0)
    with jax.set_mesh(ready.mesh):
        state, losses = ready.layout.create(rng.init_key(0)), []
        for step in range(3):
            state, report = ready.run(rows_of(step), state)
            losses.append(float(report["loss"]))
    want, memory = by_hand(3)
    np.testing.assert_allclose(losses, want, rtol=1e-6)
    np.testing.assert_allclose(state.carry["memory"], memory, rtol=1e-6)


def gradient_by_hand(memory: np.ndarray, step: int) -> dict[str, np.ndarray]:
    """The gradient of the toy's loss at its first parameters, w = (1, 2), bias = scale = 1, in float64 NumPy."""
    batch, w, near, far, tokens, many = rows_of(step), np.array([1.0, 2.0]), np.zeros(2), np.zeros(2), 0, 0
    for i in range(16):
        n = int(batch["segments"][i].sum())
        x = batch["tokens"][i][:n] / 100
        near, tokens = near + (2 * (x * w.sum() - memory[i].sum()) * x).sum(), tokens + n
        if n > 4:
            far, many = far + memory[i], many + 1
    return {"w": near / tokens + 3.0 * far / many, "bias": np.array([3.0]), "scale": np.array([3.0])}


@pytest.mark.parametrize("clip", [0.5, 0.0])
def test_the_gradient_norm_is_that_before_clipping_and_the_moments_are_of_the_clipped_gradient(clip: float) -> None:
    """Two steps at a rate of 0 against NumPy, <= 1e-5 relative: norms above 5, with a limit of 0.5 and without one."""
    ready = held_still(clip)
    mu, norms = {name: np.zeros(1) for name in ("w", "bias", "scale")}, []
    with jax.set_mesh(ready.mesh):
        state = ready.layout.create(rng.init_key(0))
        for step in range(2):
            state, report = ready.run(rows_of(step), state)
            gradient = gradient_by_hand(by_hand(step)[1], step)
            norms.append(np.sqrt(sum(np.sum(np.square(leaf)) for leaf in gradient.values())))
            factor = min(1.0, clip / norms[-1]) if clip else 1.0
            mu = {name: OPTIM.beta1 * mu[name] + (1 - OPTIM.beta1) * factor * leaf for name, leaf in gradient.items()}
            np.testing.assert_allclose(report["gradient_norm"], norms[-1], rtol=1e-5)
    assert min(norms) > 5
    found = state.moments["adam"].mu
    for name, leaf in {**found["dense"], **found["norm"]}.items():
        np.testing.assert_allclose(leaf, mu[name], rtol=1e-5, err_msg=name)


def test_a_step_that_is_not_finite_keeps_the_carry_too() -> None:
    """Memory, moments and parameters bitwise; the next step, from the same rows and finite parameters, is the one that was skipped."""
    ready = held_still(0.0)
    copied = lambda state: jax.tree.map(jnp.array, state)
    with jax.set_mesh(ready.mesh):
        before, _ = ready.run(rows_of(0))
        params = {**before.params, "dense": {**before.params["dense"], "w": np.array([np.nan, 1], np.float32)}}
        after, report = ready.run(rows_of(1), copied(dataclasses.replace(before, params=params)))
        assert report["bad"] == 1 and after.step == before.step + 1 and before.carry["memory"].any()
        tiny.assert_bitwise((after.params, after.carry, after.moments), (params, before.carry, before.moments))
        again, one = ready.run(rows_of(1), copied(dataclasses.replace(after, params=before.params)))
        wanted, two = ready.run(rows_of(1), copied(before))
    assert one["loss"] == two["loss"] and one["bad"] == 0
    tiny.assert_bitwise((again.carry, again.moments), (wanted.carry, wanted.moments))


@pytest.mark.parametrize("devices", [1, 8])
def test_an_evaluation_carries_from_batch_to_batch_starts_from_zeros_and_compiles_once(devices: int) -> None:
    """The memory that each of three batches meets is the loop's (<= 1e-6 relative), twice over; the run's own carry is not read."""
    where = tiny.mesh("dp", devices)
    with jax.set_mesh(where):
        place = layout(Toy(), OPTIM, 16, where, "dp")
        step, params = compile_evaluation(Toy(), place), place.create(rng.init_key(0)).all_params
        rows = [rows_of(n) | {"index": np.arange(16, dtype=np.uint32)} for n in range(3)]
        got = [evaluate(Toy(), step, 0, params, rows, where)["memory"] for _ in range(2)]
    want = sum(by_hand(n)[1].sum() for n in range(3)) / 3
    np.testing.assert_allclose(got, [want, want], rtol=1e-6)
    assert step._cache_size() == 1


@pytest.mark.parametrize("parts, devices", thinned([(2, 1), (4, 1), (8, 1), (1, 8), (2, 8)], (4, 1), (2, 8)))
def test_parts_and_devices_keep_losses_parameters_and_the_rows_of_the_carry(parts: int, devices: int) -> None:
    """<= 1e-6 relative after three steps, parameters moving: terms of two denominators, unequal rows, a carry in slot order."""
    (state, losses), (whole, want) = run_toy(3, parts, devices), run_toy(3, 1)
    np.testing.assert_allclose(losses, want, rtol=1e-6)
    np.testing.assert_allclose(state.carry["memory"], whole.carry["memory"], rtol=1e-6)
    for got, expected in zip(jax.tree.leaves(state.params), jax.tree.leaves(whole.params), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-6)


def test_the_mean_of_the_parts_means_would_be_another_gradient() -> None:
    """The rows are such that the common mistake shows: it is off by more than 1 %."""
    rows = {name: jnp.asarray(array) for name, array in rows_of(0).items()}
    keys, carry = rng.training(0, jnp.int32(0), 16), {"memory": jnp.ones((16, 2))}
    params = jax.tree.map(lambda leaf: leaf.value, Toy().init(None), is_leaf=lambda leaf: isinstance(leaf, nn.LogicallyPartitioned))
    place = layout(Toy(), OPTIM, 16, tiny.mesh("dp", 1), "dp")
    grads, *_ = accumulate.gradients(Toy(), 4, place, params, {}, carry, rows, keys)
    parts = []
    for m in range(4):
        one = jax.tree.map(lambda leaf, m=m: leaf[m::4], (carry, rows))
        parts.append(accumulate.gradients(Toy(), 1, place, params, {}, *one, rng.training(0, jnp.int32(0), 4))[0])
    mean = jax.tree.map(lambda *leaves: sum(leaves) / 4, *parts)
    assert np.abs(mean["dense"]["w"] / grads["dense"]["w"] - 1).max() > 0.01


def test_a_phase_with_another_batch_starts_the_carry_from_zeros_and_keeps_the_rest() -> None:
    """`adopt`: the same batch keeps the very arrays."""
    state, _ = run_toy(2, 1)
    where = tiny.mesh("dp", 1)
    with jax.set_mesh(where):
        same, smaller = (layout(Toy(), OPTIM, rows, where, "dp") for rows in (16, 4))
        assert adopt(state, Toy(), 16, same) is state
        after = adopt(state, Toy(), 4, smaller)
    assert after.carry["memory"].shape == (4, 2) and not after.carry["memory"].any() and state.carry["memory"].any()
    tiny.assert_bitwise(dataclasses.replace(after, carry={}), dataclasses.replace(state, carry={}))
