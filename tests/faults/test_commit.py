"""T2, T5: killed or interrupted while a checkpoint is committed, a run goes on from the newest whole step."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from jaxenc.checkpoint.verify import verify
from tests.faults.alone import EVERY, STEPS, Nano, newest
from tests.faults.conftest import Table
from tests.faults.same import assert_same_run

# In the short suite test_alone does both, once.
pytestmark = pytest.mark.full
# Stage whose end is the moment: saves that it lags behind the newest whole step. `aside` first comes with the fourth save.
STAGES = {"files": -1, "checksums": -1, "renamed": 0, "aside": 3}
TIMES = 10


@pytest.mark.parametrize("stage", STAGES)
def test_killed_inside_the_commit(
    stage: str, nanos: Callable[[str], Nano], undisturbed_alone: Callable[[str], Path], tmp_path: Path, row: Table
) -> None:
    nano, draw = nanos("mlm"), random.Random(stage)
    for repetition in range(TIMES):
        workdir = tmp_path / f"run-{repetition}"
        count = draw.randrange(2, STEPS // EVERY - 3)
        code, said = nano.finish(workdir, "kill", stage, count)
        assert code == -9, said
        left = newest(workdir)
        assert left == EVERY * (count + STAGES[stage]) and verify(workdir / "checkpoints" / str(left)) == []
        code, said = nano.finish(workdir)
        assert code == 0 and f"resume {workdir}/checkpoints/{left}" in said, said
        assert_same_run(undisturbed_alone("mlm"), workdir, 0, STEPS)
        assert not any(workdir.glob("checkpoints/.*"))
    row(f"T2 kill -9 once `{stage}` has ended", TIMES, "the newest whole step, bit for bit")


def test_interrupted_twice_in_a_save(
    nanos: Callable[[str], Nano], undisturbed_alone: Callable[[str], Path], tmp_path: Path, row: Table
) -> None:
    """The second Ctrl-C does not wait for the step; whether or not the save still ends, what has its name is whole."""
    for repetition in range(TIMES):
        workdir, count = tmp_path / f"run-{repetition}", 2 + repetition % 3
        code, said = nanos("mlm").finish(workdir, "interrupt_twice", "files", count)
        assert code == 1 and "interrupted: nothing half-written is left" in said, said
        left = newest(workdir)
        assert left in (EVERY * (count - 1), EVERY * count) and verify(workdir / "checkpoints" / str(left)) == []
        code, said = nanos("mlm").finish(workdir)
        assert code == 0, said
        assert_same_run(undisturbed_alone("mlm"), workdir, 0, STEPS)
    row("T5 SIGINT twice in a save", TIMES, "one line, exit code 1, bit for bit")
