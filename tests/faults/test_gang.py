"""T3, T4, T5, T11 in turn: what several processes meet in one run. test_gang_killed, test_gang_stopped and test_still do each as often as
their table says, in other processes too."""

import os
import signal
import sys
from pathlib import Path

import pytest

from jaxenc.checkpoint.verify import steps, verify
from tests.faults.conftest import Table
from tests.faults.gang import note_of
from tests.faults.same import rows
from tests.faults.several import EVERY, STEPS, Several

# Process 1 stands still three times until it is told to go on and then for good; process 0, the coordinator, is killed, then it is asked
# to stop, and again in the save. Later steps in later lives, so that no earlier one comes to them.
STILL = ("restore", "data-3", "save", "data-14")
PLAN = (*((1, place, "STOP") for place in STILL), (0, "step-26", "KILL"), (0, "step-28", "TERM"), (0, "files", "INT"))


@pytest.mark.slow
def test_a_gang_stands_still_is_killed_and_is_asked_to_stop(several: Several, tmp_path: Path, row: Table) -> None:
    """The newest step is damaged: it goes aside, once. Every start goes on from the newest whole step, and the rows and
    numbers of all steps are those of the run that nobody disturbed, bit for bit. test_gang_stopped goes on to the end."""
    workdir, notes = several.stopped(2, 2, 2 * EVERY, tmp_path / "run"), tmp_path / "notes"
    (workdir / "checkpoints" / str(2 * EVERY) / "config.json").write_text("{}")
    notes.mkdir()
    command = (sys.executable, "-m", "tests.faults.signals", notes, 0.5, ",".join(":".join(map(str, one)) for one in PLAN))
    with several.gang(2, 2, workdir, command=command, KILL_AFTER="1", JAXENC_HEARTBEAT="20") as gang:
        for number, place in enumerate(STILL):
            note = note_of(notes, 1, number)
            gang.until(note.exists, f"stop at {place}", 120)
            told = gang.said.count(waits := ": process 0 waits for process 1")
            gang.until(lambda told=told: gang.said.count(waits) > told, f"line about the stop at {place}", 90)
            if place != STILL[-1]:
                os.kill(int(note.read_text()), signal.SIGCONT)
        assert gang.end() == 75, gang.said
    assert len(list(notes.iterdir())) == len(PLAN) and "heartbeat" in gang.said.lower(), gang.said
    assert gang.said.count(f"set aside as {2 * EVERY}.bad-1") == 1
    assert gang.said.count("starting all 2 again") == 2 and gang.said.count("resume") == 3
    (stopped,) = [step for step in steps(workdir / "checkpoints") if step >= 28]
    assert stopped < STEPS and verify(workdir / "checkpoints" / str(stopped)) == []
    assert gang.lines[-1] == f"[0] {workdir}: stopped at step {stopped:,}, checkpoint written: run the same command to continue"
    whole = several.undisturbed(2, 2)
    assert rows(workdir) == {key: row for key, row in rows(whole).items() if key[0] <= stopped}
    taken = (workdir / "examples.log").read_text().splitlines()
    assert taken == (whole / "examples.log").read_text().splitlines()[:stopped]
    row("T3, T4, T5, T11 in turn, 2 processes", len(PLAN), "named, waited for, started again, stopped within a step, bit for bit")
