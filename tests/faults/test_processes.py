"""Several real processes are one run: the same rows, losses and held-out numbers as one process of eight devices (T13 for processes)."""

import dataclasses
import signal
from pathlib import Path

import pytest

from jaxenc.cli import main
from jaxenc.training import prepare
from tests.faults import alone
from tests.faults.conftest import Table
from tests.faults.gang import PRETRAIN
from tests.faults.same import assert_same_run, rows
from tests.faults.several import CLOSE, EVERY, STEPS, MadeOnce, Several
from tests.selection import FULL
from tests.training.conftest import make_data
from tests.training.stepping import stepping
from tests.training.test_loop import write_recipe


@pytest.mark.slow
@pytest.mark.parametrize("procs", [2, 4] if FULL else [2])
def test_several_processes_are_one(several: Several, row: Table, procs: int) -> None:
    """Their held-out rows cannot be shared evenly: the last batch is all padding in some of them."""
    one, many = several.undisturbed(1, 8), several.undisturbed(procs, 4 // procs)
    assert_same_run(one, many, CLOSE, STEPS)
    assert sorted(path.name for path in many.iterdir()) == sorted(path.name for path in one.iterdir())
    held_out = prepare.prepare(several.run, one).batches("held_out", several.run.plan[0], 1)
    assert len(held_out) % procs == 1
    counted = [(key, name) for key in rows(one) for name in rows(one)[key] if key[1] == "held_out" and not name.endswith("_loss")]
    assert len(counted) >= 2 * STEPS // EVERY
    assert [rows(one)[key][name] for key, name in counted] == [rows(many)[key][name] for key, name in counted]
    row(f"T13 {len(held_out)} held-out rows in {procs} processes", STEPS // EVERY, f"counts identical to one process, losses to {CLOSE}")


@pytest.mark.full
def test_slots_with_a_state_in_two_processes_and_after_kill_nine(tmp_path: Path, made_once: MadeOnce, row: Table) -> None:
    """The LSTMs' states of a biLM go from step to step in their slots, each in the process that has the slot, and into the checkpoint."""
    run = alone.recipe("bilm", make_data(tmp_path / "made", 1, "characters"))
    shorter = {"train": {"steps": 20}, "checkpoint": {"every": 10}, "eval": {"every": 10}}
    parts = {name: dataclasses.replace(getattr(run, name), **changes) for name, changes in shorter.items()}
    several = Several(dataclasses.replace(run, **parts), tmp_path, made_once)
    workdir = tmp_path / "killed"
    with several.gang(2, 2, workdir) as gang:
        gang.wait_for("step 13/20")
        gang.send(1, signal.SIGKILL)
        assert gang.end() == 0, gang.said
    assert f"resume {workdir}/checkpoints/10" in gang.said
    assert_same_run(several.undisturbed(1, 8), workdir, CLOSE, 20)
    row("T3 kill -9 of process 1 of 2, biLM with state", 1, f"one process's run to {CLOSE}")


@pytest.mark.slow
def test_what_one_process_finds_wrong_ends_both_with_its_line(several: Several, tmp_path: Path) -> None:
    """Process 0 alone looks at the folder; both say what it found, and nothing is tried again."""
    with several.gang(2, 2, tmp_path / "run", "--init-from", str(tmp_path / "nowhere")) as gang:
        assert gang.end() == 2, gang.said
    assert all(f"[{rank}] jaxenc: --init-from" in gang.said for rank in range(2)), gang.said
    assert "starting all" not in gang.said


def test_a_run_that_diverges_is_not_started_again(several: Several, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """It ends with 3, which the launcher does not try again (test_launcher)."""
    recipe = write_recipe(several.run, tmp_path / "recipe.json")
    with stepping(bad=(1, 2)):
        arguments = ["--config", str(recipe), "--workdir", str(tmp_path / "run"), "--config.train.stop_after_bad=2"]
        assert main.main(["pretrain", *arguments]) == 3
    assert "2 non-finite steps in a row" in capsys.readouterr().err


@pytest.mark.slow
def test_a_process_with_another_seed_ends_all_with_the_fields_name(several: Several, tmp_path: Path) -> None:
    """Each would draw parameters of its own and train on, and nobody would see it."""
    other = ("bash", "-c", '[ $JAXENC_PROCESS = 0 ] || set -- "$@" --config.train.seed=5; exec "$@"', "_", *PRETRAIN)
    with several.gang(2, 1, tmp_path / "run", command=other) as gang:
        assert gang.end() == 2, gang.said
    assert "[1] jaxenc: train.seed is 0 in process 0 and 5 in process 1; start every process" in gang.said
