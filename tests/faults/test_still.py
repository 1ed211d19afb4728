"""T11: a process that stands still is named, waited for, and after a limit the others end with its name."""

import os
import signal
import sys
from pathlib import Path

import pytest

from tests.faults.conftest import Table
from tests.faults.gang import note_of
from tests.faults.same import assert_same_run
from tests.faults.several import EVERY, STEPS, Several

# Where it stands still. After the first steps: at the first collective of a program Gloo waits for the other processes for 30 s and no
# longer.
PLACES = ("restore", "data-8", "save", "data-18")


# Seconds between two lines are the default; a stop lasts two of them, which is less than half of the heartbeat.
@pytest.mark.full
@pytest.mark.parametrize("rank", [0, 1])
def test_a_stopped_process_is_named_and_waited_for_until_it_counts_as_dead(several: Several, tmp_path: Path, row: Table, rank: int) -> None:
    """In the restore, in its data and in a save it goes on when it is told to; the last time nobody tells it. test_gang does it in the
    short suite."""
    workdir, notes = several.stopped(2, 2, EVERY, tmp_path / "run"), tmp_path / "notes"
    notes.mkdir()
    command = (sys.executable, "-m", "tests.faults.signals", notes, 15, ",".join(f"{rank}:{place}:STOP" for place in PLACES))
    with several.gang(2, 2, workdir, command=command, KILL_AFTER="1", JAXENC_HEARTBEAT="90") as gang:
        waits = f": process {1 - rank} waits for process {rank}"
        for number, place in enumerate(PLACES):
            note = note_of(notes, rank, number)
            gang.until(note.exists, f"stop at {place}", 120)
            told = gang.said.count(waits)
            gang.until(lambda told=told: gang.said.count(waits) >= told + 2, f"line about the stop at {place}", 90)
            if place != PLACES[-1]:
                os.kill(int(note.read_text()), signal.SIGCONT)
        gang.wait_for("starting all 2 again", 90)
        assert gang.end() == 0, gang.said
    assert "heartbeat" in gang.said.lower() and gang.said.count("starting all 2 again") == 1
    assert_same_run(several.undisturbed(2, 2), workdir, 0, STEPS)
    row(f"T11 SIGSTOP of process {rank} in restore, data, save", len(PLACES) - 1, "named, waited for, bit for bit")
    row(f"T11 SIGSTOP of process {rank} for good", 1, "named, dead after its heartbeat, started again, bit for bit")
