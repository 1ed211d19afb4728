"""T13: an evaluation gives one number however its rows fall into batches, and one that fails costs neither state nor checkpoint."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import jax
import pytest

from jaxenc.checkpoint.verify import verify, write_checksums
from jaxenc.cli.main import main
from jaxenc.errors import UserError
from jaxenc.training import evaluate
from jaxenc.training.pretrain import pretrain
from tests.faults.alone import EVERY, STEPS, Nano, newest
from tests.faults.conftest import Table
from tests.faults.same import assert_same_run
from tests.training.stepping import stepping

pytestmark = pytest.mark.slow
FAILURES = {
    "out of memory": (
        jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 4503599627370496 bytes."),
        UserError,
        r"not have enough memory \(Out of memory allocating 4503599627370496 bytes\); lower the batch of the evaluation \(eval.batch\)",
    ),
    "an exception": (ZeroDivisionError("of a metric"), ZeroDivisionError, "of a metric"),
}


def with_rows(workdir: Path, copy: Path, rows: int) -> Path:
    """A finished run whose evaluations take `rows` rows."""
    step = shutil.copytree(workdir / "checkpoints" / str(STEPS), copy / "checkpoints" / str(STEPS))
    recipe = json.loads((step / "config.json").read_text())
    recipe["eval"]["rows"] = rows
    (step / "config.json").write_text(json.dumps(recipe))
    write_checksums(step, STEPS)
    return copy


@pytest.mark.parametrize("rows", [17, pytest.param(31, marks=pytest.mark.full)])
def test_rows_that_do_not_divide_give_the_same_number(
    rows: int, undisturbed_alone: Callable[[str], Path], tmp_path: Path, capsys: pytest.CaptureFixture, row: Table
) -> None:
    """All at once; in batches of 8, whose last one holds 1 row of 17 and 7 of 31; in one of 40, much of it padding: <= 1e-6 relative."""
    workdir = with_rows(undisturbed_alone("mlm"), tmp_path / "run", rows)
    found = []
    for batch in (rows, 8, 40):
        capsys.readouterr()
        assert main(["evaluate", "--workdir", str(workdir), "--batch", str(batch)]) == 0
        found.append(json.loads(capsys.readouterr().out))
    for other in found[1:]:
        assert other == pytest.approx(found[0], rel=1e-6, abs=0)
        assert other["mlm_predictions"] == found[0]["mlm_predictions"]
    row(f"T13 {rows} held-out rows on 8 devices, a last batch of {rows % 8}", 3, "one number, within 1e-6")


@pytest.mark.parametrize("failure", FAILURES)
def test_a_failed_evaluation_costs_no_checkpoint(failure: str, nanos: Callable[[str], Nano], tmp_path: Path, row: Table) -> None:
    """The step whose evaluation fails is saved whole, and the run that goes on from it is the undisturbed one."""
    error, kind, words = FAILURES[failure]
    run = nanos("mlm").run
    with stepping():
        pretrain(run, tmp_path / "whole")
    with stepping(evaluate=None), mock.patch.object(evaluate, "evaluate", side_effect=error), pytest.raises(kind, match=words):
        pretrain(run, tmp_path / "run")
    failed = 2 * EVERY
    assert newest(tmp_path / "run") == failed and verify(tmp_path / "run" / "checkpoints" / str(failed)) == []
    with stepping():
        pretrain(run, tmp_path / "run")
    assert_same_run(tmp_path / "whole", tmp_path / "run", 0, STEPS)
    row(f"T13 {failure} in an evaluation", 1, "that step is saved; the run goes on after it")
