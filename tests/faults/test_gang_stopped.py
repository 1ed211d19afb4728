"""T4 and T5: a request to stop that reaches one process stops all at one step, whatever comes during the save."""

import signal
import time
from pathlib import Path

import pytest

from jaxenc.checkpoint.verify import steps, verify
from tests.faults.alone import saving
from tests.faults.conftest import Table
from tests.faults.same import assert_same_run
from tests.faults.several import STEPS, Several

INT, TERM = signal.SIGINT, signal.SIGTERM
# (processes, devices in each, the first and the second signal of each run).
PAIRS = [(TERM, TERM), (TERM, INT), (INT, TERM), (TERM, INT), (TERM, TERM)]
CASES = [(procs, devices, PAIRS) for procs, devices in ((2, 2), (4, 1), (1, 8))]


@pytest.mark.full
@pytest.mark.parametrize("procs, devices, signals", CASES)
def test_asked_to_stop_twice(several: Several, tmp_path: Path, row: Table, procs: int, devices: int, signals: list) -> None:
    """The second signal falls into the save, which ends whole; the same command goes on as if nothing had been."""
    longest = 0.0
    for number, (first, second) in enumerate(signals):
        workdir, asked_at = tmp_path / f"run-{number}", 3 + 4 * number
        with several.gang(procs, devices, workdir) as gang:
            gang.wait_for(rf"step {asked_at}/{STEPS}")
            asked = time.monotonic()
            gang.send(number % procs, first)
            gang.until(lambda asked_at=asked_at, workdir=workdir: max(saving(workdir), default=0) > asked_at, "save")
            gang.send(number % procs, second)
            assert gang.end() == 75, gang.said
            longest = max(longest, time.monotonic() - asked)
        stopped = max(steps(workdir / "checkpoints"))
        assert asked_at < stopped < STEPS and verify(workdir / "checkpoints" / str(stopped)) == []
        assert gang.lines[-1] == f"[0] {workdir}: stopped at step {stopped:,}, checkpoint written: run the same command to continue"
        assert f"resume {workdir}/checkpoints/{stopped}" in several.finish(procs, devices, workdir)
        assert_same_run(several.undisturbed(procs, devices), workdir, 0, STEPS)
    told = f"one step, exit code 75 within {longest:.1f} s, bit for bit"
    row(f"T4, T5 SIGTERM or SIGINT to one of {procs} processes, and again in the save", len(signals), told)
