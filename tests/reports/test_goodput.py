"""Where the time of a run went."""

import pytest

from jaxenc.reports.goodput import goodput
from tests.reports.runs import EVENTS_OF_A_KILL, row, start


def test_a_run_that_was_killed_once() -> None:
    """By hand: 20 + 60 s count; the 20 s of steps 101 to 200 are lost; 44 s between the last event of the killed process and the
    call of the next; 10 of the 110 further steps of metrics.jsonl were taken before the kill."""
    found = goodput(EVENTS_OF_A_KILL)
    assert found.wall == pytest.approx(190)
    expected = {"training": 80, "lost": 20, "compile": 8, "evaluation": 17, "save": 2, "start": 14, "away": 44, "other": 5}
    assert found.seconds == pytest.approx(expected)
    assert sum(expected.values()) == 190
    assert found.share == pytest.approx(80 / 190)
    assert (found.starts, found.killed, found.lost_steps, found.checkpoints, found.saved_bytes) == (2, 1, 110, 2, 6_000_000)


def test_a_row_that_a_restart_cuts_through_counts_in_proportion() -> None:
    events = [start(0, 0), row(10, "steps", 40, 10, after=0), start(20, 30), row(25, "steps", 50, 5, after=30)]
    found = goodput(events)
    assert found.seconds["training"] == pytest.approx(10 * 30 / 40 + 5)
    assert found.seconds["lost"] == pytest.approx(10 * 10 / 40)
    assert found.lost_steps == 10


def test_a_restart_further_back_than_the_one_before_it_takes_its_steps_too() -> None:
    """The second start went on from 30, and the third, whose checkpoint of 30 was damaged, from 10."""
    events = [start(0, 0), row(10, "steps", 40, 10, after=0), start(20, 30), start(30, 10), row(45, "steps", 40, 15, after=10)]
    found = goodput(events)
    assert found.seconds["training"] == pytest.approx(10 * 10 / 40 + 15)
    assert found.lost_steps == 30


@pytest.mark.parametrize(
    "logged, stop, lost, twice",
    [
        (1120, [], 20, "at least 20"),
        (1100, [], 0, "not known"),
        (1120, [row(45, "stop", 1135, reason="preempted")], 35, "35"),
        (1100, [row(45, "stop", 1100, reason="preempted")], 0, "0"),
    ],
)
def test_steps_taken_twice_are_a_bound_after_a_kill(logged: int, stop: list, lost: int, twice: str) -> None:
    """Checkpoint 1,100, a row of metrics.jsonl every 20 steps, and an end at step 1,135: a process that was killed there has logged at
    most step 1,120, and one that stopped by itself says how far it went. The second start goes on: what it loses is not known yet."""
    second = [start(60, 1100, reached=logged), row(80, "steps", 1110, 9, after=1100)]
    events = [start(0, 0), row(30, "steps", 1100, 30, after=0), *stop, *second]
    found = goodput(events)
    assert (found.killed, found.lost_steps, found.twice) == (int(not stop), lost, twice)


def test_a_run_that_continues_another_counts_its_own_steps() -> None:
    found = goodput([start(0, 1000, kind="continue"), row(10, "steps", 1100, 10, after=1000)])
    assert (found.share, found.lost_steps) == (1.0, 0)


def test_no_events_are_no_time() -> None:
    assert (goodput([]).share, goodput([row(0, "compile", 1, 5)]).wall) == (0.0, 0.0)
