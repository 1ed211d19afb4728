"""Several real processes are one run: the same rows, losses and held-out numbers as one process of eight devices (T13 for processes)."""

import dataclasses
import json
import re
import shutil
import signal
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest

from jaxenc.cli import main
from jaxenc.config import flatten
from jaxenc.files import locked
from jaxenc.processes import versions
from jaxenc.tasks.results import Results
from jaxenc.training import prepare
from tests import tiny
from tests.faults import alone
from tests.faults.commands import MASKED, TUNED
from tests.faults.conftest import Table
from tests.faults.gang import PRETRAIN, ROOT
from tests.faults.same import assert_same_run, rows
from tests.faults.several import CLOSE, EVERY, STEPS, MadeOnce, Several
from tests.selection import FULL
from tests.training.conftest import make_data
from tests.training.stepping import stepping
from tests.training.test_loop import write_recipe

# (processes, devices in each, mesh.preset), and those that also fine-tune.
CASES = [(2, 2, "dp"), *([(4, 1, "fsdp"), (4, 1, "dp"), (2, 2, "fsdp"), (2, 1, "fsdp")] if FULL else [])]
# A loss of a task that is learned is a small difference of numbers near 1, rounded as they are.
SMALL = 1e-7
SUBMITTED = "submission/SST-2.tsv"


def names(folder: Path) -> list[str]:
    """The files of a folder at any depth, but those of arrays, which each process writes under its own names."""
    found = (path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    return sorted(name for name in found if "/state/" not in name)


def numbers(path: Path) -> dict[str, float]:
    """{dotted path: number} of all seeds and of the summary of a results.json, but clocks."""
    found = json.loads(path.read_text())
    seeds = {str(one["seed"]): {"step": one["step"], **one["scores"]} for one in found["seeds"]}
    return dict(flatten({"summary": found["summary"], "failed": found["failed"], **seeds}))


def answers(path: Path) -> list[dict]:
    """The lines of a file of answers."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def assert_close(found: dict[str, float], wanted: dict[str, float]) -> None:
    """Means of logarithms to rounding (<= 1e-5), everything else exactly."""
    assert found.keys() == wanted.keys()
    for name, number in wanted.items():
        rounded = "_loss" in name or "_entropy" in name
        assert found[name] == (pytest.approx(number, rel=CLOSE, abs=SMALL) if rounded else number), name


@pytest.fixture
def one(several: Several) -> Path:
    """The folder of a run in one process of eight devices, and of what comes after."""
    return several.undisturbed(1, 8).parent


@pytest.fixture
def many(several: Several, procs: int, devices: int, preset: str) -> Path:
    """The same of several processes."""
    return several.undisturbed(procs, devices, preset).parent


@pytest.mark.slow
@pytest.mark.parametrize("procs, devices, preset", CASES)
def test_several_processes_are_one(several: Several, one: Path, many: Path, procs: int, row: Table) -> None:
    """Their held-out rows cannot be shared evenly: the last batch is all padding in some of them."""
    furthest = assert_same_run(one / "run", many / "run", CLOSE, STEPS)
    assert names(many / "run") == names(one / "run")
    held_out = prepare.prepare(several.run, one / "run").batches("held_out", several.run.plan[0], 1)
    assert len(held_out) % procs == 1
    wanted, found = (rows(folder / "run") for folder in (one, many))
    counted = [(key, name) for key in wanted for name in wanted[key] if key[1] == "held_out" and not name.endswith("_loss")]
    assert len(counted) >= 2 * STEPS // EVERY
    assert [wanted[key][name] for key, name in counted] == [found[key][name] for key, name in counted]
    told = f"counts identical to one process, losses to {furthest:.0e}"
    row(f"T13 {len(held_out)} held-out rows in {procs} processes", STEPS // EVERY, told)


@pytest.mark.slow
@pytest.mark.parametrize("procs, devices, preset", CASES)
def test_their_masks_are_those_of_one(one: Path, many: Path) -> None:
    """Every integer that a step learns from, bitwise."""
    wanted, found = (dict(np.load(folder / "after" / "masks.npz")) for folder in (one, many))
    assert {name.split("-")[0] for name in wanted} == {str(step) for step in range(MASKED)}
    assert any((wanted[name] != wanted[f"1{name[1:]}"]).any() for name in wanted if name.startswith("0-"))
    tiny.assert_bitwise(found, wanted)


@pytest.mark.slow
@pytest.mark.parametrize("procs, devices, preset", CASES)
def test_an_evaluation_of_theirs_is_that_of_one(one: Path, many: Path) -> None:
    """Losses to rounding (<= 1e-5), everything else exactly."""
    wanted, found = (json.loads((folder / "after" / "0.out").read_text().splitlines()[0]) for folder in (one, many))
    assert_close(found, wanted)


@pytest.mark.slow
@pytest.mark.parametrize("procs, devices, preset", CASES)
def test_what_they_fine_tune_is_that_of_one(one: Path, many: Path) -> None:
    """Of both seeds: every loss to rounding (<= 1e-5), every probability to rounding, every score, answer and file of a submission
    exactly."""
    wanted, found = (folder / "after" / "tuned" for folder in (one, many))
    assert names(found) == names(wanted)
    for seed in ("seed_0", "seed_1"):
        assert_same_run(wanted / seed, found / seed, CLOSE, TUNED)
        assert (found / seed / SUBMITTED).read_bytes() == (wanted / seed / SUBMITTED).read_bytes()
        for name in ("dev.jsonl", "test.jsonl"):
            for ours, theirs in zip(*map(answers, (found / seed / name, wanted / seed / name)), strict=True):
                # float32 on both sides; a probability near 0 is rounded as one near 1.
                assert ours.pop("probabilities") == pytest.approx(theirs.pop("probabilities"), rel=CLOSE, abs=SMALL)
                assert ours == theirs
    assert_close(*(numbers(folder / "results.json") for folder in (found, wanted)))


@pytest.mark.slow
@pytest.mark.parametrize("procs, devices, preset", CASES)
def test_they_score_every_example_once(one: Path, many: Path) -> None:
    """103 examples in batches of 24: the scores of one process, those that fine-tuning wrote, and its answers."""
    wanted, found = (json.loads((folder / "after" / "0.out").read_text().splitlines()[-1]) for folder in (one, many))
    assert_close(found, wanted)
    assert found["classifier_predictions"] == 103
    results = Results.read(many / "after" / "tuned" / "results.json")
    assert found["accuracy"] == results.best.scores["accuracy"]
    predicted = dict(np.load(many / "after" / "dev.npz"))
    assert predicted["index"].tolist() == list(range(103))
    answers = [json.loads(line)["answer"] for line in (Path(results.best.directory) / "dev.jsonl").read_text().splitlines()]
    assert [("negative", "positive")[i] for i in predicted["classifier"].argmax(axis=1)] == answers


@pytest.mark.slow
@pytest.mark.parametrize("procs, devices, preset", CASES)
def test_process_0_alone_prints_and_writes(many: Path, procs: int) -> None:
    """The others write arrays, in the folder of a checkpoint that is being saved."""
    after = many / "after"
    touched = [[line.split(" ", 1)[1] for line in (after / f"{rank}.touched").read_text().splitlines()] for rank in range(procs)]
    for rank in range(1, procs):
        assert (after / f"{rank}.out").read_text() == ""
        assert [path for path in touched[rank] if not re.search(r"checkpoints/\.\d+\.tmp-save/state(/|$)", path)] == [f"after/{rank}.out"]
    assert (after / "0.out").read_text() and "run/metrics.jsonl" in touched[0]


@pytest.mark.full
@pytest.mark.parametrize("kind", ["rtd", "plm"])
def test_electra_and_xlnet_with_memory_are_one_run_too(kind: str, tmp_path: Path, made_once: MadeOnce, row: Table) -> None:
    """Rows, losses (<= 1e-5), masks and permutations (bitwise) and an evaluation, in two processes of two devices."""
    (folder := tmp_path / f"several-{kind}").mkdir()
    recipe = alone.RECIPES[kind]
    run = recipe.run(make_data(folder / "made", 1, recipe.tokenizer))
    several = Several(run, folder, made_once)
    one, many = (several.undisturbed(*places).parent for places in ((1, 8), (2, 2)))
    furthest = assert_same_run(one / "run", many / "run", CLOSE, run.plan[-1].end)
    test_their_masks_are_those_of_one(one, many)
    test_an_evaluation_of_theirs_is_that_of_one(one, many)
    row(f"T13 {kind} in 2 processes", 1, f"masks bitwise, losses to {furthest:.0e}")


@pytest.mark.full
def test_slots_with_a_state_in_two_processes_and_after_kill_nine(tmp_path: Path, made_once: MadeOnce, row: Table) -> None:
    """The LSTMs' states of a biLM go from step to step in their slots, each in the process that has the slot, and into the checkpoint."""
    run = alone.RECIPES["bilm"].run(make_data(tmp_path / "made", 1, "characters"))
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


@pytest.mark.full
@pytest.mark.slow
def test_a_second_launcher_on_a_work_directory_is_refused(several: Several, tmp_path: Path) -> None:
    """Process 0 alone looks at the folder; both say what it found before anything is compiled, and nothing is tried again."""
    workdir = tmp_path / "run"
    with locked(workdir, "of the first launcher"), several.gang(2, 2, workdir) as gang:
        assert gang.end() == 2, gang.said
    said = f"jaxenc: {workdir}: another process is writing here; wait for it, or choose another --workdir"
    assert all(f"[{rank}] {said}" in gang.lines for rank in range(2)), gang.said
    assert "starting all" not in gang.said and "compiling the step" not in gang.said


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
    assert all(f"[{rank}] jaxenc: train.seed is 0 in process 0 and 5 in process 1; start every process" in gang.said for rank in range(2))


@pytest.mark.full
def test_a_process_with_other_software_is_refused(several: Several, tmp_path: Path) -> None:
    """Of two checkouts of one version one has a changed line, and another jax is installed there: both are named before anything is
    compiled or written."""
    shutil.copytree(ROOT / "jaxenc", tmp_path / "jaxenc", ignore=shutil.ignore_patterns("__pycache__"))
    with (tmp_path / "jaxenc" / "rng.py").open("a") as file:
        file.write("# changed\n")
    installed = tmp_path / "jax-0.9.9.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: jax\nVersion: 0.9.9\n")
    script = f'[ $JAXENC_PROCESS = 0 ] || export PYTHONSAFEPATH=1 PYTHONPATH={tmp_path}:{ROOT}; exec "$@"'
    with several.gang(2, 1, tmp_path / "run", command=("bash", "-c", script, "_", *PRETRAIN)) as gang:
        assert gang.end() == 2, gang.said
    ours, jax = versions.installed(), metadata.version("jax")
    for rank in range(2):
        assert f"[{rank}] jaxenc: jaxenc is {ours['jaxenc']} in process 0 and 0.1.0 (source " in gang.said
    assert f"; jax is {jax} in process 0 and 0.9.9 in process 1; install the same versions for every process" in gang.said
    assert "compiling the step" not in gang.said and not (tmp_path / "run").exists()
