"""T8: a run goes on with other devices and processes: no row twice or missing, and its losses are those of one that stayed."""

from pathlib import Path

import pytest

from tests.faults.conftest import Table
from tests.faults.same import assert_same_run
from tests.faults.several import CLOSE, EVERY, STEPS, Several

# (processes, devices in each) before and after.
MOVES = [((2, 2), (1, 8)), ((1, 8), (2, 2)), ((1, 8), (1, 1)), ((1, 1), (1, 8)), ((1, 8), (1, 4)), ((2, 2), (4, 1)), ((4, 1), (1, 8))]
MOVES += [((4, 1), (2, 2))]


@pytest.mark.full
@pytest.mark.slow
@pytest.mark.parametrize("before, after", MOVES)
def test_a_run_goes_on_elsewhere(several: Several, tmp_path: Path, row: Table, before: tuple[int, int], after: tuple[int, int]) -> None:
    workdir = several.stopped(*before, EVERY, tmp_path / "run")
    said = f"on {after[0] * after[1]} x cpu (dp), attention xla (plain operations), resume {workdir}/checkpoints/{EVERY}"
    assert said in several.finish(*after, workdir)
    furthest = assert_same_run(several.undisturbed(*before), workdir, CLOSE, STEPS)
    moved = " to ".join(f"{procs} x {devices}" for procs, devices in (before, after))
    row(f"T8 {moved} devices", 1, f"rows identical, {STEPS - EVERY} steps' numbers to {furthest:.0e}")
