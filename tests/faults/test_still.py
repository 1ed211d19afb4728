"""T11: a process that stands still is named, waited for, and after a limit the others end with its name."""

import itertools
import os
import signal
import sys
from pathlib import Path

import pytest

from tests.faults.alone import FULL
from tests.faults.conftest import Row
from tests.faults.gang import Gang
from tests.faults.same import assert_same_run
from tests.faults.several import STEPS, Several

RANKS = (0, 1) if FULL else (1,)
# Seconds between two lines, and how many of them are awaited.
TELL, LINES = ("15", 2) if FULL else ("1", 1)


def still(several: Several, workdir: Path, notes: Path, *arguments: object, **environment: str) -> Gang:
    notes.mkdir()
    rank, places, how, limit = arguments
    command = (sys.executable, "-m", "tests.faults.still", rank, ",".join(places), how, notes, TELL, limit)
    return several.gang(2, 2, workdir, command=command, KILL_AFTER="1", **environment)


@pytest.mark.slow
@pytest.mark.parametrize("rank", RANKS)
def test_a_stopped_process_is_named_and_waited_for_until_it_counts_as_dead(several: Several, tmp_path: Path, row: Row, rank: int) -> None:
    """In the restore, in its data and in a save it goes on when it is told to; the last time nobody tells it."""
    workdir, notes, places = several.stopped(2, 2, 10, tmp_path / "run"), tmp_path / "notes", ("restore", "data", "save")
    heartbeat = "60" if FULL else "12"
    with still(several, workdir, notes, rank, (*places, "data-again"), "stopped", 1200, JAXENC_HEARTBEAT=heartbeat) as gang:
        waits = f": process {1 - rank} waits for process {rank}"
        for place in (*places, "data-again"):
            gang.until((notes / place).exists, f"stop in {place}", 120)
            told = gang.said.count(waits)
            gang.until(lambda told=told: gang.said.count(waits) >= told + LINES, f"line about the stop in {place}", 90)
            if place != "data-again":
                os.kill(int((notes / place).read_text()), signal.SIGCONT)
        gang.wait_for("starting all 2 again", 90)
        assert gang.end() == 0, gang.said
    assert "heartbeat" in gang.said.lower() and gang.said.count("starting all 2 again") == 1
    assert_same_run(several.undisturbed(2, 2), workdir, 0, STEPS)
    row(f"T11 SIGSTOP of process {rank} in restore, data, save", len(places), "named, waited for, bit for bit")
    row(f"T11 SIGSTOP of process {rank} for good", 1, "named, dead after its heartbeat, started again, bit for bit")


@pytest.mark.slow
def test_a_process_that_hangs_is_named_and_after_a_limit_all_start_again(several: Several, tmp_path: Path, row: Row) -> None:
    """It gives its signs of life, and the others are in barriers of Orbax that name nobody: before a save, and behind its arrays."""
    workdir, notes = several.stopped(2, 2, 10, tmp_path / "run"), tmp_path / "notes"
    with still(several, workdir, notes, 1, ("save", "written"), "hung", 6) as gang:
        assert gang.end() == 0, gang.said
    lines = list(itertools.dropwhile(lambda line: "resume" not in line, gang.lines))
    assert any(line.startswith("[0] checkpoint 20: process 0 waits for process 1: nothing for ") for line in lines), gang.said
    late = "[0] jaxenc: Orbax async_write_complete.state 1: process 1 did not come within "
    assert any(line.startswith(late) for line in lines), gang.said
    assert gang.said.count("starting all 2 again") == 2
    assert_same_run(several.undisturbed(2, 2), workdir, 0, STEPS)
    row("T11 one process hangs before a save, and in it", 2, "named, ended after the limit, started again, bit for bit")
