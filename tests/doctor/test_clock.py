"""Clocks that differ, from the times before and after a barrier."""

import time

import pytest

from jaxenc.doctor import clock
from jaxenc.findings import OK, PROBLEM, WARNING


def test_a_process_alone_has_no_other_clock() -> None:
    assert clock.judge([clock.gather(time.time, 1)]) == []


@pytest.mark.parametrize("offset, level, words", [
    (0.0, OK, "those of 2 processes agree"),
    (0.9, OK, "agree"),
    (3.0, WARNING, "process 1 is at least 2.5 s ahead of process 0"),
    (-120.0, PROBLEM, "process 1 is at least 119.5 s behind process 0"),
    (120.0, PROBLEM, "process 1 is at least 119.5 s ahead of process 0"),
])  # fmt: skip
def test_what_surely_differs_is_reported(offset: float, level: str, words: str) -> None:
    """Each waited half a second: so much of a difference may be the barrier's."""
    (said,) = clock.judge([[100.0, 100.5], [100.0 + offset, 100.5 + offset]])
    assert said.level == level and words in said.what
    assert ("timedatectl" in said.fix) == (level != OK)


def test_the_barrier_never_makes_a_difference_of_its_own() -> None:
    """One that came late, and one that waited long, with one clock: there is a moment when both are there."""
    (said,) = clock.judge([[100.0, 160.0], [159.0, 159.9], [100.1, 175.0]])
    assert said.level == OK


def test_of_several_the_worst_and_the_others_are_named() -> None:
    (said,) = clock.judge([[0, 0.1], [50, 50.1], [0, 0.1], [-9, -8.9]])
    assert said.level == PROBLEM and "process 1 is at least 49.9 s ahead of process 0, and process 3 differs too" in said.what
