"""Samples of a generator: their distribution, where they go, and that their noise depends on the slot of the row alone."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import chisquare

from jaxenc import rng
from jaxenc.layers.softmax import NEVER
from jaxenc.objectives.corrupt import sample
from jaxenc.objectives.generator import LARGEST
from jaxenc.sharding import partition
from tests import tiny


def test_samples_have_the_distribution_of_the_softmax() -> None:
    """Pearson's chi-square over 2^18 draws of 12 ids at each temperature has p in [1e-4, 1 - 1e-4], which a temperature that is 2 % off has
    not. No padding id is drawn, though the noise covers it."""
    rows, predictions, vocab, padded, temperatures = 1024, 128, 12, 16, (0.5, 1.0, 2.0)
    logits = np.full(padded, NEVER, np.float32)
    logits[:vocab] = np.random.default_rng(0).permutation(np.linspace(-2, 2, vocab))

    @jax.jit
    def counted(step: jax.Array) -> jax.Array:
        noise = sample.gumbel(rng.training(0, step, rows).per_row("sample", "generator"), predictions, padded)
        count = lambda t: jnp.bincount(sample.draw(jnp.asarray(logits), noise, t).ravel(), length=padded)
        return jax.vmap(count)(jnp.array([*temperatures, 1.02]))

    counts = sum(np.asarray(counted(jnp.int32(step)), np.int64) for step in range(2))
    assert not counts[:, vocab:].any() and (counts.sum(1) == 1 << 18).all()
    for drawn, temperature in zip(counts, temperatures, strict=False):
        p = chi_square(drawn[:vocab], logits[:vocab] / temperature)
        assert 1e-4 <= p <= 1 - 1e-4, f"p is {p:.1e} at temperature {temperature}"
    assert chi_square(counts[3, :vocab], logits[:vocab]) < 1e-4


def chi_square(counts: np.ndarray, logits: np.ndarray) -> float:
    """p of `counts` under softmax(logits)."""
    odds = np.exp(np.float64(logits))
    return chisquare(counts, odds / odds.sum() * counts.sum()).pvalue


@pytest.mark.parametrize("devices, parts", [(8, 1), (8, 4), (1, 32)])
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


def test_no_overflow_at_any_temperature() -> None:
    """The largest that is taken draws from noise alone, and still no padding."""
    logits = jnp.array([[3.0, 1e4, -1e4, NEVER]])
    noise = jnp.array([[0.1, -2.0, 9.0, 50.0]])
    for temperature in (1e-30, 1.0, 100.0):
        assert sample.draw(logits, noise, temperature).tolist() == [1]
    assert sample.draw(logits, noise, LARGEST).tolist() == [2]
