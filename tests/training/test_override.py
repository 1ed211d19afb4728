"""Fields set by name: the aliases that set every phase, and what a changed kind starts from."""

import dataclasses
import itertools
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jaxenc.configs.bert import base, large_lamb, tiny

import jaxenc
from jaxenc import config
from jaxenc.errors import UserError
from jaxenc.optim.optimizer import OptimConfig
from jaxenc.training import phases, prepare, resume
from jaxenc.training.override import nearest, override
from jaxenc.training.phases import Phases
from jaxenc.training.run import Run, from_dict
from tests.training.test_loop import recipe

BASE, LAMB = base.get_config().to_dict(), large_lamb.get_config().to_dict()


def plan(run: Run, *names: str) -> list[tuple[Any, ...]]:
    return [tuple(getattr(phase, name) for name in names) for phase in run.plan]


@pytest.mark.parametrize("steps", [(900_000, 100_000), (7038, 1563), (1, 1, 1), (98, 1, 1), (3, 5, 2), (50, 1, 49, 1)])
def test_shares_are_the_nearest_to_proportional_that_sum_to_the_total(steps: tuple[int, ...]) -> None:
    """Of all ways to share the steps, at least one each, none has a smaller sum of squared distances from the exact shares."""
    for total in range(len(steps), 12):
        exact = [own * total / sum(steps) for own in steps]
        ways = [way for way in itertools.product(range(1, total + 1), repeat=len(steps)) if sum(way) == total]
        far = lambda way, exact=exact: sum((a - b) ** 2 for a, b in zip(way, exact, strict=True))
        got = phases.apportion(steps, total)
        assert got in ways and far(got) <= min(map(far, ways)) + 1e-9
    assert phases.apportion(steps, sum(steps)) == steps


def test_train_steps_scales_all_phases_and_their_warm_ups() -> None:
    """One schedule over both phases has one warm-up, 10,000 steps of 1,000,000; NVIDIA's two have one each: 2,001 and 200 of 8,601."""
    run = override(BASE, {"train.steps": 1000})
    assert plan(run, "steps", "warmup", "length", "max_predictions") == [(900, 10, 128, 20), (100, 10, 512, 77)]
    assert run.train.steps == 1000 == run.plan[-1].end
    assert plan(override(BASE, {"train.steps": 10}), "steps", "warmup") == [(9, 0), (1, 0)]
    assert plan(override(LAMB, {"train.steps": 860}), "steps", "warmup") == [(704, 200), (156, 20)]
    assert plan(override(LAMB, {"train.steps": 2}), "steps", "warmup") == [(1, 0), (1, 0)]


def test_nothing_else_is_scaled_and_a_second_time_changes_nothing() -> None:
    before, run = from_dict(LAMB), override(LAMB, {"train.steps": 100})
    kept = ("objective", "model", "data", "mesh", "checkpoint", "eval", "log")
    assert [getattr(run, name) for name in kept] == [getattr(before, name) for name in kept]
    assert override(run, {"train.steps": 100}) == run
    assert override(LAMB, {}) == before and override(LAMB, {"train.steps": 8601}).plan == before.plan


def test_a_warm_up_that_is_set_too_is_not_scaled() -> None:
    assert plan(override(BASE, {"train.steps": 100, "optim.warmup": 7}), "warmup") == [(7,), (7,)]
    assert plan(override(LAMB, {"train.steps": 100, "optim.warmup": 7}), "warmup") == [(7,), (7,)]
    assert plan(override(LAMB, {"train.steps": 100, "phases.warmup": (3, 0)}), "warmup") == [(3,), (0,)]


def test_without_phases_a_warm_up_stays() -> None:
    run = override(tiny.get_config().to_dict(), {"train.steps": 100})
    assert plan(run, "steps", "warmup") == [(100, 50)]


@pytest.mark.parametrize(
    "path, name, value",
    [("train.batch", "batch", 64), ("optim.lr", "lr", 1e-3), ("optim.warmup", "warmup", 5), ("data.length", "length", 64)],
)
def test_an_alias_sets_every_phase(path: str, name: str, value: float) -> None:
    for of_recipe in (BASE, LAMB):
        assert plan(override(of_recipe, {path: value}), name) == [(value,), (value,)]


def test_another_length_has_the_predictions_of_that_length() -> None:
    """20 predictions a row belong to 128 tokens: in rows of 512 they would be 4 % of the tokens and not 15 %."""
    run = override(BASE, {"data.length": 512})
    rules = [run.objective.masking(run.model.published_vocabulary, phase.length, phase.max_predictions) for phase in run.plan]
    assert [rule.predictions for rule in rules] == [77, 77]
    assert plan(override(BASE, {"data.length": 64, "phases.max_predictions": (9, 8)}), "max_predictions") == [(9,), (8,)]
    assert override(BASE, {"data.length": 64, "objective.max_predictions": 9}).objective.max_predictions == 9
    assert plan(override(LAMB, {"objective.max_predictions": 9}), "max_predictions") == [(0,), (0,)]


def test_phases_that_are_switched_off_leave_the_single_values() -> None:
    run = override(BASE, {"phases.steps": (), "train.steps": 9, "data.length": 64})
    assert plan(run, "steps", "length", "warmup") == [(9, 64, 10_000)]


@pytest.mark.parametrize(
    "of_recipe, values, words",
    [
        (BASE, {"train.steps": 9, "phases.steps": (6, 3)}, "config.train.steps sets every phase, and config.phases.steps is set too"),
        (BASE, {"phases.length": (8, 9), "data.length": 8}, "config.data.length sets every phase, and config.phases.length is set too"),
        (BASE, {"train.steps": 1}, "config.train.steps is 1 and phases.steps has 2 phases; use 2 or more"),
        (BASE, {"train.steps": 0}, "train.steps is 0; it is at least 1"),
        (BASE, {"train.steps": "9"}, "config.train.steps is '9'; it takes a value of type int"),
        (BASE, {"trian.steps": 9}, "config.trian.steps is not a field; did you mean train.steps"),
        (BASE, {"train": {}}, "config.train is not a field"),
        (BASE, {"model.kind": ["bert"]}, "config.model.kind is ['bert']; did you mean bert, albert?"),
        (BASE, {1: 2}, "config.1 is not a field"),
        (BASE, {"train.steps.more": 9}, "config.train.steps.more is not a field; did you mean train.steps"),
    ],
)
def test_what_does_not_fit_is_one_line(of_recipe: dict[str, Any], values: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError, match="^" + re.escape(words)) as error:
        override(of_recipe, values)
    assert "\n" not in str(error.value)


def saved(run: Run, workdir: Path) -> Callable[[Run], None]:
    """What a start of another run in the directory of `run` checks."""
    workdir.mkdir()
    prepare.write_facts(prepare.prepare(run, workdir), workdir)
    return lambda other: resume.refuse_other_run(prepare.prepare(other, workdir), workdir)


def test_the_same_overrides_resume_and_more_steps_do_where_no_step_depends_on_them(data: Path, tmp_path: Path) -> None:
    """config.json holds the resolved numbers. Where phases are scaled, the step at which rows change their length moves: refused."""
    constant = recipe(data, optim=OptimConfig(schedule="constant", warmup=3))
    saved(override(constant, {"train.steps": 20}), tmp_path / "single")(override(constant, {"train.steps": 40}))
    two = dataclasses.replace(constant, phases=Phases(steps=(60, 20), length=(16, 24)))
    look = saved(override(two, {"train.steps": 20}), tmp_path / "two")
    assert json.loads((tmp_path / "two" / "config.json").read_text())["phases"]["steps"] == [15, 5]
    look(override(two, {"train.steps": 20}))
    with pytest.raises(UserError, match=r"checkpoint phases.steps \[15, 5\], this run's \[30, 10\]"):
        look(override(two, {"train.steps": 40}))


def test_a_notebook_sets_fields_as_the_command_does() -> None:
    run = jaxenc.override(base.get_config().to_dict(), {"train.steps": 10, "data.length": 64})
    assert plan(run, "steps", "length") == [(9, 64), (1, 64)]
    assert jaxenc.override(run, {"train.seed": 3}) == dataclasses.replace(run, train=dataclasses.replace(run.train, seed=3))


@pytest.mark.parametrize(
    "path, found",
    [
        ("train.lr", ["optim.lr", "phases.lr"]),
        ("preset", ["mesh.preset"]),
        ("trian.steps", ["train.steps", "phases.steps"]),
        ("train.stepz", ["train.steps"]),
        ("optim.widht", ["model.width"]),
        ("zzz", []),
    ],
)
def test_the_nearest_fields_have_the_last_name_in_whatever_group(path: str, found: list[str]) -> None:
    known = dict(config.flatten(BASE))
    assert nearest(path, known)[: len(found)] == found and (found or not nearest(path, known))
