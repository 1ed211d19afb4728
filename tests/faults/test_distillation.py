"""A run with a teacher in several processes: all of them write the copy of the teacher, then the checkpoints."""

import dataclasses
from pathlib import Path

import pytest

from jaxenc.checkpoint.verify import verify
from tests.faults.same import assert_same_run
from tests.faults.several import CLOSE, EVERY, STEPS, MadeOnce, Several
from tests.training.conftest import make_data
from tests.training.test_teacher import make_teacher, recipe


@pytest.mark.full
def test_two_processes_learn_what_one_learns(made_once: MadeOnce, tmp_path: Path) -> None:
    """Without a restart: the saves of the copy and of the steps meet at barriers of different names. Then one process alone goes on from
    step 10 with the copy."""
    folder = made_once("distillation", lambda folder: make_teacher(folder / "teacher", make_data(folder / "made", 1)))
    run = recipe(folder / "made" / "data", folder / "teacher")
    several = Several(dataclasses.replace(run, train=dataclasses.replace(run.train, steps=STEPS)), folder, made_once)
    with several.gang(2, 1, tmp_path / "two", RESTARTS="0") as gang:
        assert gang.end() == 0, gang.said
    (copy,) = (tmp_path / "two").glob("frozen/*/0")
    assert verify(copy) == []
    several.finish(1, 1, tmp_path / "one")
    assert_same_run(tmp_path / "one", tmp_path / "two", CLOSE, STEPS)
    for step in (2 * EVERY, STEPS):
        (tmp_path / "two" / "checkpoints" / str(step)).rename(tmp_path / f"away-{step}")
    several.finish(1, 1, tmp_path / "two")
    assert_same_run(tmp_path / "one", tmp_path / "two", CLOSE, STEPS)
