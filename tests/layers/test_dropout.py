"""Dropout: its rate at every level, its independence, and that nothing but (seed, step, row, site, layer, element) decides it."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxenc import rng
from jaxenc.layers.dropout import dropout, keep

SITE = "attention_output"


def mask(shape=(64, 128, 128), rate=0.5, seed=0, step=0, site=SITE, layer=0):
    """1.0 where an element was kept, float64."""
    noise = rng.training(seed, jnp.int32(step), shape[0])
    return (np.asarray(jax.jit(dropout, static_argnums=(1, 3))(jnp.ones(shape), rate, noise, site, layer)) != 0).astype(np.float64)


def correlation(a, b):
    return np.corrcoef(a.ravel(), b.ravel())[0, 1]


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
def test_rate_and_scale(rate):
    """The share of zeros over 1,048,576 elements lies within 3 sigma; what stays is divided by 1 - rate."""
    x = jnp.full((64, 128, 128), 3.0)
    out = np.asarray(dropout(x, rate, rng.training(1, jnp.int32(5), 64), SITE))
    assert abs((out == 0).mean() - rate) <= 3 * np.sqrt(rate * (1 - rate) / out.size)
    np.testing.assert_allclose(out[out != 0], 3.0 / (1 - rate), rtol=1e-6)


@pytest.mark.parametrize("axis, what", [(0, "position"), (1, "row")])
def test_rate_of_every_row_and_position(axis, what):
    """z-scores of the 1024 rates of 1024 rows (or positions): none beyond 5, and their mean square is 1 within 4 sigma.

    Too small a spread would mean that every row drops the same elements in another order.
    """
    rate, n = 0.1, 1024
    z = (mask((n, n), rate).mean(axis=axis) - (1 - rate)) / np.sqrt(rate * (1 - rate) / n)
    assert np.abs(z).max() <= 5, what
    assert abs(np.mean(z**2) - 1) <= 4 * np.sqrt(2 / n), what


@pytest.mark.parametrize("rate", [0.1, 0.5])
@pytest.mark.parametrize("change", [{"layer": 1}, {"layer": 12}, {"step": 1}, {"seed": 1}, {"site": "feed_forward_output"}])
def test_masks_of_two_places_are_independent(change, rate):
    """|correlation| <= 4 / sqrt(n) over n = 1,048,576 elements."""
    one, two = mask(rate=rate), mask(rate=rate, **change)
    assert abs(correlation(one, two)) <= 4 / np.sqrt(one.size)


def test_rows_and_neighbours_are_independent():
    """The same for neighbouring rows at every shift up to 8, for neighbours inside a row, and for elements a power of two apart."""
    rows = mask((256, 4096))
    bound = 4.5 / np.sqrt(rows.size)
    for shift in range(-8, 9):
        assert abs(correlation(rows[1:], np.roll(rows, shift, axis=1)[:-1])) <= bound, shift
    for distance in (2**power for power in range(12)):
        assert abs(correlation(rows[:, distance:], rows[:, :-distance])) <= bound * np.sqrt(4096 / (4096 - distance)), distance


def test_no_two_rows_are_alike():
    """Every pair of 512 rows: the largest |correlation| of 130,816 pairs stays within 6 sigma, and no row is another one shuffled."""
    rows = mask((512, 1024))
    pairs = np.corrcoef(rows)[np.triu_indices(512, 1)]
    assert np.abs(pairs).max() <= 6 / np.sqrt(1024)
    assert abs(pairs.std() * np.sqrt(1024) - 1) <= 0.02
    assert len(set(rows.sum(axis=1))) > 50


def test_both_words_of_a_row_count():
    """Rows with neighbouring first words are no shifts of one another; rows that share one word of the two are independent."""
    words = jnp.array([7, 8, 8], jnp.uint32), jnp.array([0x3C6EF372, 0xA54FF53A, 0x3C6EF372], jnp.uint32)
    rows = np.float64(keep(0.5, words, (3, 1 << 18)))
    bound = 5 / np.sqrt(1 << 18)
    for shift in range(-8, 9):
        assert abs(correlation(rows[0], np.roll(rows[1], shift))) <= bound, shift
    assert abs(correlation(rows[1], rows[2])) <= bound and abs(correlation(rows[0], rows[2])) <= bound


def test_a_row_keeps_its_mask_in_any_batch():
    """Halves of a batch, and a shuffled batch, give the rows of the whole: bitwise."""
    x, noise = jax.random.normal(jax.random.key(0), (8, 5, 7)), rng.training(0, jnp.int32(3), 8)
    whole = np.asarray(dropout(x, 0.3, noise, SITE, 2))
    for order in (np.arange(4), np.arange(4, 8), np.array([6, 1, 7, 0, 3, 2, 5, 4])):
        part = dropout(x[order], 0.3, dataclasses.replace(noise, rows=noise.rows[order]), SITE, 2)
        np.testing.assert_array_equal(part, whole[order])


def test_remat_and_scan_draw_the_same():
    """Values and gradients under jit, remat and a scanned (traced) layer number: bitwise."""
    x, noise = jax.random.normal(jax.random.key(0), (4, 6, 5)), rng.training(0, jnp.int32(3), 4)

    def rule(x, layer):
        return dropout(x, 0.3, noise, SITE, layer)

    plain = np.stack([rule(x, layer) for layer in range(3)])
    slopes = np.stack([jax.grad(lambda x, layer=layer: rule(x, layer).sum())(x) for layer in range(3)])
    np.testing.assert_array_equal(slopes, np.where(plain != 0, np.float32(1 / 0.7), 0))
    for same in (jax.jit(rule), jax.checkpoint(rule)):
        slope_of = jax.grad(lambda x, layer, same=same: same(x, layer).sum())
        _, scanned = jax.lax.scan(lambda carry, layer, same=same: (carry, same(x, layer)), 0, jnp.arange(3))
        _, slope = jax.lax.scan(lambda carry, layer, slope_of=slope_of: (carry, slope_of(x, layer)), 0, jnp.arange(3))
        np.testing.assert_array_equal(scanned, plain)
        np.testing.assert_array_equal(slope, slopes)


def test_the_backward_pass_keeps_no_mask():
    """What the forward pass hands to the backward pass is smaller than the mask: the words of the rows."""
    x, noise = jnp.ones((4, 64, 64)), rng.training(0, jnp.int32(0), 4)
    _, backward = jax.vjp(lambda x: dropout(x, 0.1, noise, SITE), x)
    assert max(leaf.size for leaf in jax.tree.leaves(backward)) <= 8


def test_the_factor_is_applied_in_float32():
    """1 - 0.1 in bfloat16 would be off by 0.17 % for every element. Here the rounding of one quotient remains."""
    x = jnp.asarray(np.random.default_rng(0).normal(size=(4, 512)), jnp.bfloat16)
    out = dropout(x, 0.1, rng.training(0, jnp.int32(0), 4), SITE)
    assert out.dtype == jnp.bfloat16
    expected = jnp.asarray(np.float32(x) / np.float32(0.9), jnp.bfloat16)
    np.testing.assert_array_equal(out, np.where(np.asarray(out) != 0, expected, 0))


def test_evaluation_and_rate_zero_change_nothing():
    x = jnp.ones((2, 3))
    assert dropout(x, 0.1, None, SITE) is x
    assert dropout(x, 0.0, rng.training(0, jnp.int32(0), 2), SITE) is x


@pytest.mark.parametrize("rate", [-0.1, 1.0])
def test_rate_out_of_range(rate):
    with pytest.raises(ValueError, match="is not in"):
        dropout(jnp.ones((2, 3)), rate, None, SITE)
