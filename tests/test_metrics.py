"""Sums with weights."""

import numpy as np

from jaxenc import metrics


def test_sums_are_divided_once() -> None:
    """Batches of 1 and 3 predictions: 10 / 4, not the mean of 4 and 2."""
    total = metrics.add(metrics.add({}, {"loss": (np.float32(4), np.float32(1))}), {"loss": (np.float32(6), np.float32(3))})
    assert metrics.means(total) == {"loss": 2.5}


def test_nothing_counted_is_zero_and_arrays_are_left_to_the_objective() -> None:
    total = metrics.add({}, {"loss": (np.float32(0), np.int32(0)), "table": (np.ones(3, np.float32), np.int32(1))})
    total = metrics.add(total, {"loss": (np.float32(0), np.int32(0)), "table": (np.ones(3, np.float32), np.int32(1))})
    assert metrics.means(total) == {"loss": 0.0} and total["table"][0].tolist() == [2, 2, 2]


def test_sums_are_kept_in_float64() -> None:
    """2^24 + 1 is no float32: adding ones to it in float32 would stand still."""
    total: dict = {"n": (np.float32(2**24), np.float32(1))}
    for _ in range(3):
        total = metrics.add(total, {"n": (np.float32(1), np.float32(0))})
    assert metrics.means(total) == {"n": 2**24 + 3}


def test_adding_leaves_its_argument_alone() -> None:
    before = metrics.add({}, {"n": (np.float32(1), np.float32(1))})
    metrics.add(before, {"n": (np.float32(1), np.float32(1))})
    assert before["n"] == (1, 1)


def test_a_loss_says_how_many_predictions_it_rests_on() -> None:
    """An int, also above 2^24; nothing else is a loss."""
    one = {"mlm_loss": (np.float32(4), np.float32(2**24)), "mask_rate": (np.float32(1), np.float32(9))}
    total = metrics.add(metrics.add({}, one), {"mlm_loss": (np.float32(6), np.int32(1))})
    assert metrics.predictions(total) == {"mlm_predictions": 2**24 + 1} and metrics.predictions({}) == {}
