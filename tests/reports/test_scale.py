"""Axes, thinned curves and labels."""

import itertools
import math

import numpy as np
import pytest

from jaxenc.reports.labels import apart, merged
from jaxenc.reports.scale import fitted, texts
from jaxenc.reports.thin import thin

EDGES = (math.nan, math.inf, -math.inf, 3e38, -3e38, 1e-320, 0.0, -1.0, float(1 << 63), 1e299)


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("values", [*itertools.combinations(EDGES, 2), (5.0,), (), (2.0, 2.0), (1e-5, 3.0), (0.1, 0.1 + 1e-15)])
def test_every_axis_has_ticks_on_it_and_its_values_too(values: tuple[float, ...], log: bool) -> None:
    axis = fitted(values, log)
    ticks = axis.ticks()
    assert axis.low < axis.high and 1 <= len(ticks) <= 6
    assert all(-1e-6 <= axis.share(tick) <= 1 + 1e-6 for tick in ticks)
    assert len(texts(ticks)) == len(ticks)
    if not axis.log:
        assert all(0 <= axis.share(value) <= 1 for value in values if math.isfinite(value))


@pytest.mark.parametrize(
    "values, log, ticks",
    [
        ((0.0, 1e-3), False, ["0", "0.0002", "0.0004", "0.0006", "0.0008", "0.0010"]),
        ((3.1, 7.4), False, ["3", "4", "5", "6", "7"]),
        ((0.0, 2.1e5), False, ["0", "50k", "100k", "150k", "200k"]),
        ((0.4, 60.0), True, ["1", "3", "10", "30"]),
        ((2.0, 5.0), True, ["2", "3", "4", "5"]),
    ],
)
def test_ticks_are_round(values: tuple[float, float], log: bool, ticks: list[str]) -> None:
    assert texts(fitted(values, log).ticks()) == ticks


def test_a_million_points_keep_their_extremes_and_gaps() -> None:
    y = np.random.default_rng(0).normal(size=1_000_000)
    y[123_456], y[654_321], y[777_777] = 99.0, -99.0, math.nan
    kept = thin(y, 800)
    assert len(kept) <= 1000 and (np.diff(kept) > 0).all()
    assert {0, 123_456, 654_321, 777_777, 999_999} <= set(kept.tolist())
    np.testing.assert_array_equal(thin(y[:800], 800), np.arange(800))


def test_labels_are_moved_no_further_than_needed() -> None:
    assert apart([10, 50, 90], 12, 0, 100) == [10, 50, 90]
    assert apart([52, 50, 20], 12, 0, 100) == [62, 50, 20]
    assert apart([99, 98, 97], 12, 0, 100) == [100, 88, 76]
    assert merged({"unigram": 6.604, "left": 6.601, "left_right": 4.4}) == {
        "unigram, left counts 6.60": 6.6,
        "left + right counts 4.40": 4.4,
    }
