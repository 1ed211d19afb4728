"""T11: a process that stands still is named, waited for, and after a limit the others end with its name."""

import os
import signal
import sys
from pathlib import Path

import pytest

from tests.faults.conftest import Table
from tests.faults.same import assert_same_run
from tests.faults.several import STEPS, Several
from tests.selection import FULL

RANKS = (0, 1) if FULL else (0,)
# Seconds between two lines; how many of them a stop lasts; the heartbeat in seconds, of which a stop may last less than half.
TELL, LINES, HEARTBEAT = ("15", 2, "90") if FULL else ("1", 1, "20")


@pytest.mark.slow
@pytest.mark.parametrize("rank", RANKS)
def test_a_stopped_process_is_named_and_waited_for_until_it_counts_as_dead(several: Several, tmp_path: Path, row: Table, rank: int) -> None:
    """In the restore, in its data and in a save it goes on when it is told to; the last time nobody tells it."""
    workdir, notes, places = several.stopped(2, 2, 10, tmp_path / "run"), tmp_path / "notes", ("restore", "data", "save")
    notes.mkdir()
    command = (sys.executable, "-m", "tests.faults.still", rank, notes, TELL)
    with several.gang(2, 2, workdir, command=command, KILL_AFTER="1", JAXENC_HEARTBEAT=HEARTBEAT) as gang:
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
