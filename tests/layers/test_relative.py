"""Scores by distance become scores by key: the shift, the windows and the sinusoids against loops."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxenc import rng
from jaxenc.layers.relative import Sight, Terms, relative_attend, shift, sinusoids, windows


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


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16])
@pytest.mark.parametrize("stream", ["content", "query"])
def test_r24_a_query_that_sees_no_key_gets_exactly_zero(stream: str, dtype: jnp.dtype) -> None:
    """In both streams, with memory and dropout, in bfloat16 too; all gradients of its result are 0, those of the others finite."""
    random = np.random.default_rng(3)
    draw = lambda *shape: jnp.asarray(random.normal(0, 1, shape), dtype)
    queries, keys, length = (5 if stream == "content" else 2), 8, 5
    sees = random.random((2, queries, keys)) < 0.6
    sees[0, 1], sees[:, 0], sees[1, 1, 2] = False, True, True
    at = None if stream == "content" else jnp.asarray([[0, 3], [4, 1]], jnp.int32)
    sight = Sight(jnp.asarray(sees), jnp.asarray(random.random(sees.shape) < 0.5), at)
    terms = Terms(draw(2, 4), draw(2, 4), draw(2, 4), draw(2, 2, 4))
    given = draw(2, queries, 2, 4), draw(2, keys, 2, 4), draw(2, keys, 2, 4), draw(2, keys + length, 2, 4), terms
    blind = np.zeros(given[0].shape, bool)
    blind[0, 1] = True

    @jax.jit
    def results(*given: Any) -> tuple[jax.Array, Any, Any]:
        """(result, gradients of its blind query, of all queries)"""
        out, back = jax.vjp(lambda *given: relative_attend(*given, sight, 0.3, rng.training(0, jnp.int32(0), 2), 0, "xla"), *given)
        return out, back(jnp.asarray(blind, dtype)), back(jnp.ones(out.shape, dtype))

    out, of_blind, of_all = jax.device_get(results(*given))
    assert out.shape == blind.shape
    assert not np.asarray(out, np.float32)[blind].any() and np.isfinite(np.asarray(out, np.float32)).all()
    assert not any(np.asarray(leaf, np.float32).any() for leaf in jax.tree.leaves(of_blind))
    assert all(np.isfinite(np.asarray(leaf, np.float32)).all() for leaf in jax.tree.leaves(of_all))
