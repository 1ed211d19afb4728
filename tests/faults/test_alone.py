"""T1, T2, T5, T6 in turn: what one process meets in one run. test_killed, test_commit and test_disk do each as often as their table says,
at every stage, also in an evaluation, and with every objective. tests/training/test_loop.py makes up the evaluation of a run that died."""

from collections.abc import Callable
from pathlib import Path

import pytest

from jaxenc.checkpoint.verify import verify
from jaxenc.training.pretrain import pretrain
from tests.faults.alone import EVERY, STEPS, Nano, newest, saving
from tests.faults.conftest import Table
from tests.faults.same import assert_same_run
from tests.faults.test_disk import FAULTS, assert_stopped


@pytest.mark.slow
def test_a_run_is_killed_interrupted_and_meets_a_full_disk(
    nanos: Callable[[str], Nano], undisturbed_alone: Callable[[str], Path], tmp_path: Path, row: Table
) -> None:
    """Every start goes on from the newest whole step, and in the end the run is the one that nobody disturbed, bit for bit."""
    nano, workdir = nanos("mlm"), tmp_path / "run"
    code, said = nano.finish(workdir, "kill", "checksums")
    assert (code, newest(workdir), saving(workdir)) == (-9, 0, [EVERY]), said

    # The second Ctrl-C does not wait for the step; whether or not the save still ends, what has its name is whole.
    code, said = nano.finish(workdir, "interrupt_twice", "files", 2)
    assert code == 1 and "interrupted: nothing half-written is left" in said, said
    left = newest(workdir)
    assert left in (EVERY, 2 * EVERY) and verify(workdir / "checkpoints" / str(left)) == []

    words, stage, _ = FAULTS["size_limit"]
    code, said = nano.finish(workdir, "size_limit", stage)
    assert f"resume {workdir}/checkpoints/{left}\n" in said
    assert_stopped(workdir, code, said, words, left + EVERY)

    pretrain(nano.run, workdir)
    assert_same_run(undisturbed_alone("mlm"), workdir, 0, STEPS)
    assert not any(workdir.glob("checkpoints/.*"))
    row("T1, T2, T5, T6 in turn: kill -9 in a save, SIGINT twice, a file too large", 3, "bit for bit")
