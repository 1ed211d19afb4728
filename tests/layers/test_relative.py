"""Scores by distance become scores by key: the shift, the windows and the sinusoids against loops."""

import math

import jax
import numpy as np
import pytest

from jaxenc.layers.relative import shift, sinusoids, windows


@pytest.mark.parametrize("length, memory", [(5, 0), (4, 3), (1, 2), (1, 0)])
def test_shift_takes_the_column_of_each_distance(length: int, memory: int) -> None:
    """Column c is the distance keys - c from query i, which stands at memory + i, to key j: exact."""
    keys = memory + length
    x = np.random.default_rng(0).normal(0, 1, (2, 3, length, keys + length)).astype(np.float32)
    got = shift(x, keys)
    assert got.shape == (2, 3, length, keys)
    for i in range(length):
        for j in range(keys):
            assert (got[:, :, i, j] == x[:, :, i, keys - (memory + i - j)]).all()


def test_windows_are_where_they_start_and_so_is_their_gradient() -> None:
    """Exact, at both ends too; the gradient of what lies outside a window is 0."""
    random = np.random.default_rng(1)
    x, start = random.normal(0, 1, (2, 3, 4, 9)).astype(np.float32), np.array([[0, 4, 2, 2], [1, 3, 0, 4]], np.int32)
    slope = random.normal(0, 1, (2, 3, 4, 5)).astype(np.float32)
    got, back = jax.vjp(lambda x: windows(x, start, 5), x)
    expected, given = np.empty_like(slope), np.zeros_like(x)
    for b, h, q, j in np.ndindex(slope.shape):
        expected[b, h, q, j] = x[b, h, q, start[b, q] + j]
        given[b, h, q, start[b, q] + j] = slope[b, h, q, j]
    assert (np.asarray(got) == expected).all() and (np.asarray(back(slope)[0]) == given).all()


@pytest.mark.parametrize("clamp", [0, 3])
def test_sinusoids_of_distances_and_of_negated_ones(clamp: int) -> None:
    """<= 1e-6; distances run from the number of keys down to 1 - length, sines first."""
    got = sinusoids(7, 4, 6, clamp, both=True)
    assert got.shape == (2, 11, 6) and (sinusoids(7, 4, 6, clamp, both=False) == got[:1]).all()
    for column, distance in enumerate(range(7, -4, -1)):
        distance = max(-clamp, min(clamp, distance)) if clamp else distance
        for sign, row in ((1, got[0, column]), (-1, got[1, column])):
            angles = [sign * distance / 10000 ** (2 * i / 6) for i in range(3)]
            np.testing.assert_allclose(row, [*map(math.sin, angles), *map(math.cos, angles)], rtol=0, atol=1e-6)
