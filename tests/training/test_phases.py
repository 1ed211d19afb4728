"""Phases: one run of several lengths, batches and schedules."""

import dataclasses

import pytest

from jaxenc.errors import UserError
from jaxenc.training.phases import Phase, Phases, locate, resolve, saved_by
from jaxenc.training.run import Run

SINGLE = Phase(0, 100, 128, 256, 20, 1e-4, 10, 0, 100)


def test_no_phases_are_the_run_itself() -> None:
    assert resolve(Phases(), SINGLE) == (SINGLE,)


def test_each_phase_takes_its_own_values_and_the_runs_single_ones() -> None:
    first, second = resolve(Phases(steps=(90, 10), length=(128, 512), lr=(1e-4, 5e-5)), SINGLE)
    assert first == Phase(0, 90, 128, 256, 20, 1e-4, 10, schedule_start=0, schedule_steps=90)
    assert second == Phase(90, 10, 512, 256, 20, 5e-5, 10, schedule_start=90, schedule_steps=10)
    assert (first.end, second.end) == (90, 100)


def test_one_schedule_spans_the_run() -> None:
    plan = resolve(Phases(steps=(90, 10, 5), one_schedule=True), SINGLE)
    assert [(phase.schedule_start, phase.schedule_steps) for phase in plan] == [(0, 105)] * 3


@pytest.mark.parametrize("name", ["length", "batch", "max_predictions", "lr", "warmup"])
def test_a_number_of_values_that_disagrees_names_the_field(name: str) -> None:
    with pytest.raises(UserError, match=f"phases.{name} has 3 values and phases.steps has 2"):
        resolve(dataclasses.replace(Phases(steps=(1, 1)), **{name: (1, 2, 3)}), SINGLE)


def test_every_step_belongs_to_one_phase_and_the_end_to_the_last() -> None:
    plan = resolve(Phases(steps=(3, 1, 2)), SINGLE)
    assert [locate(plan, step) for step in range(7)] == [0, 0, 0, 1, 2, 2, 2]


def test_a_checkpoint_belongs_to_the_phase_that_took_its_last_batch() -> None:
    plan = resolve(Phases(steps=(3, 1, 2)), SINGLE)
    assert [plan.index(saved_by(plan, step)) for step in range(7)] == [0, 0, 0, 0, 1, 2, 2]


def test_a_run_checks_its_phases() -> None:
    run = Run()
    assert run.plan == (Phase(0, 100_000, 128, 256, 0, 1e-4, 10_000, 0, 100_000),)
    with pytest.raises(UserError, match="data.length is 513 and model.positions is 512"):
        dataclasses.replace(run, phases=Phases(steps=(1, 1), length=(128, 513))).plan  # noqa: B018
    with pytest.raises(UserError, match="the batch is 255, which train.microbatches 2 does not divide"):
        parts = dataclasses.replace(run.train, microbatches=2)
        dataclasses.replace(run, train=parts, phases=Phases(steps=(1, 1), batch=(256, 255))).plan  # noqa: B018
