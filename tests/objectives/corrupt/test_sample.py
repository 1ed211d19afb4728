"""Samples of a generator: their distribution, where they go, and that their noise depends on the slot of the row alone."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxenc import rng
from jaxenc.layers.heads import NEVER
from jaxenc.objectives.corrupt import sample
from jaxenc.sharding import partition
from tests import tiny


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_samples_have_the_distribution_of_the_softmax(temperature: float) -> None:
    """chi-square over 131,072 draws of 200 ids, 5 deviations above its mean at most; no padding id, though the noise covers it."""
    rows, predictions, vocab, padded = 1024, 128, 200, 256
    logits = np.full(padded, NEVER, np.float32)
    logits[:vocab] = np.random.default_rng(0).normal(0, 1, vocab)

    @jax.jit
    def drawn(step: jax.Array) -> jax.Array:
        keys = rng.training(0, step, rows).per_row("sample", "generator")
        samples = sample.draw(jnp.asarray(logits), sample.gumbel(keys, predictions, padded), temperature)
        return jnp.zeros(padded, jnp.int32).at[samples.ravel()].add(1)

    counts = np.asarray(drawn(jnp.int32(0)))
    scaled = np.float64(logits[:vocab]) / temperature
    expected = np.exp(scaled - scaled.max())
    expected *= rows * predictions / expected.sum()
    assert counts[vocab:].sum() == 0 and counts.sum() == rows * predictions
    rare = expected < 8
    observed, wanted = (np.append(x[~rare], x[rare].sum()) for x in (counts[:vocab], expected))
    freedom = len(wanted) - 1 - (not rare.any())
    statistic = float(np.sum((observed - wanted)[wanted > 0] ** 2 / wanted[wanted > 0]))
    assert abs(statistic - freedom) <= 5 * np.sqrt(2 * freedom), f"chi-square {statistic:.0f} with {freedom} degrees of freedom"


@pytest.mark.parametrize("devices, parts", [(8, 1), (8, 4), (1, 2)])
def test_noise_depends_on_the_slot_alone(devices: int, parts: int) -> None:
    """Bitwise that of one device and one part; part m holds the rows m, m + parts, ..."""
    rows = np.arange(32, dtype=np.uint32)

    @jax.jit
    def noise(slots: jax.Array) -> jax.Array:
        keys = rng.training(3, jnp.int32(5), 32)
        return sample.gumbel(rng.Keys(keys.base, slots, keys.step).per_row("sample", "generator"), 7, 256)

    def over(count: int, split: int) -> np.ndarray:
        mesh, out = tiny.mesh("dp", count), np.zeros((32, 7, 256), np.float32)
        with jax.set_mesh(mesh):
            for part in range(split):
                out[part::split] = noise(partition.place({"rows": rows[part::split]}, mesh)["rows"])
        return out

    one = over(1, 1)
    tiny.assert_bitwise(over(devices, parts), one)
    assert len(np.unique(one[:, :, 0])) > 200


def test_samples_stand_where_the_predictions_were_the_first_of_a_place() -> None:
    original = np.arange(10, 18, dtype=np.int32)[None].repeat(2, 0)
    at = np.array([[5, 2, 5, 2, 0], [3, 3, 3, 0, 0]], np.int32)
    chosen = np.array([[1, 1, 1, 1, 0], [1, 1, 0, 0, 0]], np.int32)
    samples = np.array([[90, 91, 92, 93, 94], [80, 81, 82, 83, 84]], np.int32)
    got = jax.jit(sample.replaced)(original, at, chosen, samples)
    np.testing.assert_array_equal(got, [[10, 11, 91, 13, 14, 90, 16, 17], [10, 11, 12, 80, 14, 15, 16, 17]])


def test_no_gradient_and_no_overflow_at_a_small_temperature() -> None:
    logits = jnp.array([[3.0, 1e4, -1e4, NEVER]])
    noise = jnp.array([[0.1, -2.0, 9.0, 50.0]])
    for temperature in (1e-30, 1.0, 100.0):
        assert sample.draw(logits, noise, temperature).tolist() == [1]
    moved = jax.grad(lambda x: jnp.sum(jnp.take(x, sample.draw(x, noise, 1.0)) * 0 + sample.draw(x, noise, 1.0)))(logits)
    assert not np.asarray(moved).any()
