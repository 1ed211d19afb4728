"""T3: kill -9 of one of several processes, of a worker and of the coordinator: all start again, and the run is the undisturbed one."""

import random
import shutil
import signal
from pathlib import Path

import pytest

from tests.faults.conftest import Table
from tests.faults.same import assert_same_run
from tests.faults.several import STEPS, Several

# (processes, runs): in each run a worker is killed and then the coordinator.
CASES = [(2, 5), (4, 5)]


@pytest.mark.full
@pytest.mark.parametrize("procs, runs", CASES)
def test_killed_one_at_a_time(several: Several, tmp_path: Path, row: Table, procs: int, runs: int) -> None:
    """The newest step is damaged: it goes aside, once, and each of three starts goes on from the one before it."""
    whole, draw = several.undisturbed(procs, 4 // procs), random.Random(procs)
    for number in range(runs):
        workdir = tmp_path / f"run-{number}"
        shutil.copytree(whole, workdir)
        (workdir / "checkpoints" / "30" / "config.json").write_text("{}")
        with several.gang(procs, 4 // procs, workdir) as gang:
            for life, rank in enumerate((draw.randrange(1, procs), 0)):
                # Each start takes the steps from 21 on again; it is killed at one that none of those before came to.
                line = f"step {draw.randrange(22, 25) + 3 * life}/{STEPS}"
                gang.until(lambda line=line: line in gang.said, line, 120)
                gang.send(rank, signal.SIGKILL)
                gang.until(lambda life=life: gang.said.count(f"starting all {procs} again") > life, "restart", 15)
            assert gang.end() == 0, gang.said
        assert gang.said.count("set aside as 30.bad-1") == 1 and gang.said.count("resume") == 3
        assert_same_run(whole, workdir, 0, STEPS)
    row(f"T3 kill -9 of a worker and of the coordinator, {procs} processes", 2 * runs, f"{runs} of {runs} runs bit for bit")
