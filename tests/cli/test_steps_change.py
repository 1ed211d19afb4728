"""`train.steps` may change on a resume where no step depends on it, and nowhere else."""

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest

from jaxenc.errors import UserError
from jaxenc.optim.optimizer import OptimConfig
from jaxenc.training import prepare, resume
from jaxenc.training.phases import Phases
from jaxenc.training.run import Run
from tests.training.test_loop import recipe


def with_steps(run: Run, steps: int) -> Run:
    return dataclasses.replace(run, train=dataclasses.replace(run.train, steps=steps))


def saved(run: Run, workdir: Path) -> Callable[[int], None]:
    """What looks at a run directory of `run` for a run of another number of steps."""
    workdir.mkdir()
    prepare.write_facts(prepare.prepare(run, workdir), workdir)
    return lambda steps: resume.refuse_other_run(prepare.prepare(with_steps(run, steps), workdir), workdir)


@pytest.mark.parametrize("schedule", ["linear", "square_root"])
def test_a_decay_that_ends_with_the_run_keeps_its_steps(schedule: str, data: Path, tmp_path: Path) -> None:
    look = saved(recipe(data, optim=OptimConfig(schedule=schedule)), tmp_path / "run")
    look(20)
    with pytest.raises(UserError, match="checkpoint train.steps 20, this run's 40; set them back"):
        look(40)


def test_a_constant_rate_and_phases_do_without(data: Path, tmp_path: Path) -> None:
    saved(recipe(data, optim=OptimConfig(schedule="constant")), tmp_path / "run")(40)  # raises where it is refused
    saved(recipe(data, phases=Phases(steps=(2, 2))), tmp_path / "phases")(40)
