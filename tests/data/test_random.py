import collections
import itertools

import numpy as np
import pytest

from jaxenc.data.random import below, draws, feistel, permuted, philox, unit

ONES = (1 << 32) - 1


@pytest.mark.parametrize(
    "counter, seed, words",
    [
        ((0, 0, 0, 0), 0, (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        ((ONES, ONES, ONES, ONES), (1 << 64) - 1, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
        ((0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), 0x299F31D0A4093822, (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1)),
    ],
)
def test_philox_gives_the_published_vectors(counter, seed, words):
    """kat_vectors of the Random123 distribution, philox4x32 with 10 rounds."""
    assert tuple(int(w) for w in philox(tuple(np.uint64(c) for c in counter), seed)) == words


def test_draws_depend_only_on_their_coordinates():
    whole = draws(3, 5, np.arange(40), 7, "pairs")
    assert np.array_equal(whole[[31, 2]], draws(3, 5, np.array([31, 2]), 7, "pairs"))
    assert np.array_equal(whole[:, :4], draws(3, 5, np.arange(40), 4, "pairs"))
    others = [draws(4, 5, np.arange(40), 7, "pairs"), draws(3, 6, np.arange(40), 7, "pairs"), draws(3, 5, np.arange(40), 7, "trim")]
    assert not any((whole == other).any() for other in others)


def test_draws_are_uniform_and_independent_within_four_sigma():
    n = 200_000
    u = unit(draws(0, 0, np.arange(n), 2, "pairs"))
    assert abs(u.mean() - 0.5) < 4 / np.sqrt(12 * 2 * n)
    cells = np.bincount((u[:, 0] * 16).astype(int) * 16 + (u[:, 1] * 16).astype(int), minlength=256)
    chi2 = ((cells - n / 256) ** 2 / (n / 256)).sum()
    assert abs(chi2 - 255) < 4 * np.sqrt(2 * 255)
    assert abs(np.corrcoef(u[:-1, 0], u[1:, 0])[0, 1]) < 4 / np.sqrt(n)


def test_below_is_uniform_at_a_bound_that_is_no_power_of_two():
    n, bound = 70_000, 7
    values = below(draws(1, 0, np.arange(n), 1, "pairs")[:, 0], bound)
    counts = np.bincount(values, minlength=bound)
    assert len(counts) == bound and np.abs(counts - n / bound).max() < 4 * np.sqrt(n / bound)
    assert below(np.array([2**64 - 1], np.uint64), 2**32)[0] == 2**32 - 1


def test_feistel_is_a_bijection_for_every_small_size():
    for n in range(1, 201):
        assert np.array_equal(np.sort(feistel(n, n, 1)(np.arange(n))), np.arange(n)), n


def test_feistel_holds_far_beyond_memory_and_does_not_depend_on_the_company():
    n = 3 * 10**11 + 7
    asked = np.array([0, 1, n - 1, 12345678901])
    out = feistel(n, 9, 0)(asked)
    assert len(set(out.tolist())) == 4 and out.min() >= 0 and out.max() < n
    assert [int(feistel(n, 9, 0)(asked[i : i + 1])[0]) for i in range(4)] == out.tolist()


@pytest.mark.parametrize("n", [5, 8, 24])
def test_feistel_sends_every_row_everywhere_equally_often_over_the_epochs(n):
    epochs = 1000
    table = np.zeros((n, n))
    for epoch in range(epochs):
        table[np.arange(n), feistel(n, 11, epoch)(np.arange(n))] += 1
    chi2 = ((table - epochs / n) ** 2 / (epochs / n)).sum() * (n - 1) / n  # a cell of a random permutation matrix: variance (n-1)/n^2
    assert abs(chi2 - (n - 1) ** 2) < 5 * np.sqrt(2) * (n - 1)


def test_feistel_puts_every_four_of_eight_rows_first_equally_often_over_the_epochs():
    """By chi squared over all 1,680 beginnings: a network of three bits, the fewest that hold eight rows, is 8 deviations away."""
    epochs, beginnings = 1000, list(itertools.permutations(range(8), 4))
    counts = collections.Counter(tuple(feistel(8, 5, epoch)(np.arange(4)).tolist()) for epoch in range(epochs))
    expected = epochs / len(beginnings)
    chi2 = sum((counts[beginning] - expected) ** 2 / expected for beginning in beginnings)
    assert abs(chi2 - (len(beginnings) - 1)) < 5 * np.sqrt(2 * (len(beginnings) - 1))


def test_feistel_leaves_no_trace_of_the_order():
    n = 50_000
    out = feistel(n, 1, 0)(np.arange(n))
    assert abs(np.corrcoef(np.arange(n), out)[0, 1]) < 4 / np.sqrt(n)
    assert (np.diff(out) == 1).sum() < 10
    assert (out == feistel(n, 1, 1)(np.arange(n))).sum() < 10


def test_a_permutation_in_blocks_is_that_of_each_place():
    """Over three blocks, in any order, and for each part of a mixture another one."""
    n, places = 20_000, np.random.default_rng(0).integers(0, 20_000, 5000)
    for part in (0, 1, 2):
        assert np.array_equal(permuted(n, 3, 4, places, part), feistel(n, 3, 4, part)(places))
    orders = {tuple(permuted(n, seed, epoch, np.arange(9), part)) for seed in (0, 1) for epoch in (0, 1) for part in (0, 1)}
    assert len(orders) == 8
