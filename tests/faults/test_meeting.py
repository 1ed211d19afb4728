"""Barriers and answers of process 0 among real processes."""

import re
import sys
from pathlib import Path

import pytest

from tests.faults.gang import Gang
from tests.selection import thinned


def meet(action: str, procs: int, folder: Path, code: int, **environment: str) -> list[str]:
    """The lines, in order of their letters, of processes that do what `tests/faults/meet.py` says and end with `code`."""
    with Gang(procs, 1, (sys.executable, "-m", "tests.faults.meet", action, folder / "run"), **environment) as gang:
        assert gang.end() == code, gang.said
    return sorted(gang.lines)


def test_every_process_has_what_process_0_says_and_its_error_and_a_barrier_names_who_is_awaited(tmp_path: Path) -> None:
    """The values of process 0, which has another when it is asked again; a barrier that process 1 comes to late, and once more; facts that
    are not equal; an error of process 0, which ends both."""
    lines = meet("together", 2, tmp_path, 2)
    for rank in range(2):
        assert f"[{rank}] [0, 1, 2]" in lines
        assert lines.count(f"[{rank}] through") == lines.count(f"[{rank}] ErrorOfAll: no such folder") == 1, lines
        assert f"[{rank}] ErrorOfAll: each.rank is 0 in process 0 and 1 in process 1; say the same" in lines
    assert "[0] the door: process 0 waits for process 1" in lines


def test_an_error_that_each_process_finds_is_a_line_of_each(tmp_path: Path) -> None:
    """Process 1 finds it half a second after process 0, whose end would abort it."""
    lines = [line for line in meet("each", 2, tmp_path, 2) if " waits " not in line]
    assert lines == ["[0] UserError: no such folder", "[1] UserError: no such folder"]


def test_a_barrier_has_a_limit_and_names_who_never_came(tmp_path: Path) -> None:
    lines = meet("absent", 3, tmp_path, 2)
    assert "[0] Absent: the door: process 2 did not come within 2.5 s: see what it says, and start all processes again" in lines


@pytest.mark.parametrize("where", [pytest.param("checkpoint 1 begun", marks=pytest.mark.full), "Orbax run async_write_complete.state"])
def test_a_save_that_one_never_comes_to_has_a_limit_too(tmp_path: Path, where: str) -> None:
    """Orbax's own barriers there have none, or name nobody."""
    lines = meet(f"save {where}", 2, tmp_path, 2, KILL_AFTER="0")
    assert f"[0] {where}: process 0 waits for process 1" in lines
    assert any(re.match(rf"\[0\] Absent: {where}: process 1 did not come within [34](\.\d+)? s: see what it says", line) for line in lines)


def test_one_that_hangs_between_barriers_has_a_limit_too(tmp_path: Path) -> None:
    """It is alive, and the others are in a collective, as in a step."""
    lines = meet("behind", 2, tmp_path, 1, KILL_AFTER="0", RESTARTS="0")
    assert "[0] step 2: process 0 waits for process 1" in lines
    assert any(line.startswith("[0] step 2: process 0 waits for process 1: nothing for ") for line in lines)


@pytest.mark.parametrize("rank", thinned([0, 1], 1))
def test_a_survivor_ends_by_itself_after_the_heartbeat(tmp_path: Path, rank: int) -> None:
    """By itself: the launcher waits ten minutes before it kills one. Within 40 s: a heartbeat of 3 s is over by then, and one of 90 s,
    the default, lasts 45 s at least. Process 0 is the coordinator, so its death shows at once."""
    command = (sys.executable, "-m", "tests.faults.meet", f"killed{rank}")
    with Gang(2, 1, command, JAXENC_HEARTBEAT="3", KILL_AFTER="600", RESTARTS="0") as gang:
        gang.wait_for("all here")
        assert gang.end(40) == 137, gang.said
    # Whichever thread hears of it first; process 0 may be gone before it has answered the others at the first barrier.
    heard = ("the door: process 0 is gone", "all here: process 0 is gone", "detected fatal errors")
    assert any(line.startswith(f"[{1 - rank}]") and any(text in line for text in heard) for line in gang.lines), gang.said
