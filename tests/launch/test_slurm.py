"""launch/slurm with a fake Slurm, whose jobs really run."""

import pytest

from tests.launch.fakes import option
from tests.launch.world import AWKWARD, LAUNCH, World

RUN = ("run", "--name", "r", "--nodes", "2", "--time", "1:00:00", "--partition", "p")


def submit(world: World, *options: str) -> int:
    return world.run("slurm/slurm.sh", *RUN, "--workdir", str(world.folder), *options, "--", *AWKWARD).returncode


def test_one_step_of_one_task_a_node(world: World) -> None:
    assert submit(world) == 0
    ((_, *job),) = world.calls("sbatch")
    assert (option(job, "--nodes"), option(job, "--ntasks-per-node"), option(job, "--gpus-per-node")) == ("2", "1", "8")
    ((_, *step),) = world.calls("srun")
    assert step[:2] == ["--kill-on-bad-exit=1", "--cpus-per-task=8"]
    assert world.given() == [[*AWKWARD, "--workdir", str(world.folder)]]


def test_75_puts_the_same_job_back_in_the_queue(world: World) -> None:
    world.codes(75, 75)
    assert submit(world) == 0
    assert world.calls("scontrol") == [["scontrol", "requeue", "7"]] * 2
    assert len(world.calls("sbatch")) == 1 and world.given() == [[*AWKWARD, "--workdir", str(world.folder)]] * 3


def test_a_crash_is_tried_three_times_more_in_the_same_job(world: World) -> None:
    world.codes(134, 1, 1, 1, 1)
    assert submit(world) == 1
    assert len(world.calls("srun")) == 4 and not world.calls("scontrol")


@pytest.mark.parametrize("code", [2, 3])
def test_bad_input_and_divergence_end_the_job(world: World, code: int) -> None:
    world.codes(code)
    assert submit(world) == code
    assert len(world.calls("srun")) == 1 and not world.calls("scontrol")


def test_the_batch_script_asks_for_what_resuming_needs() -> None:
    lines = (LAUNCH / "slurm" / "job.sbatch").read_text().splitlines()
    assert {"#SBATCH --requeue", "#SBATCH --signal=TERM@180", "#SBATCH --open-mode=append"} <= set(lines)
    # sbatch reads options up to the first command.
    assert max(lines.index(line) for line in lines if line.startswith("#SBATCH")) < lines.index("set -uo pipefail")


def test_stop_is_not_followed_by_a_requeue(world: World) -> None:
    assert world.run("slurm/slurm.sh", "stop", "--name", "r").returncode == 0
    assert world.calls("scontrol", "scancel") == [["scontrol", "update", "JobId=7", "Requeue=0"], ["scancel", "--signal=TERM", "7"]]


def test_a_command_that_is_not_there_is_not_submitted(world: World) -> None:
    """As where its environment was not activated: the job would wait in the queue and then end at once."""
    done = world.run("slurm/slurm.sh", *RUN, "--workdir", "w", "--", "jaxence", "pretrain")
    assert done.returncode == 2 and "jaxence: there is no such command; activate the environment" in done.stderr and not world.calls()


def test_nodes_without_gpus(world: World) -> None:
    assert submit(world, "--cpu") == 0
    ((_, *job),) = world.calls("sbatch")
    assert not option(job, "--gpus-per-node") and "cpu" in job
