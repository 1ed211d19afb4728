"""An evaluation that a stopped run did not finish is done at the next start, by the phase that took the last step."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest import mock

import jax
import jax.numpy as jnp
import pytest

from jaxenc import rng
from jaxenc.checkpoint.manager import Manager
from jaxenc.processes.watch import Watch
from jaxenc.training import loop, prepare
from jaxenc.training.events import NoEvents
from jaxenc.training.phases import Phases
from jaxenc.training.record import Silent
from jaxenc.training.settings import EvalConfig
from jaxenc.training.signals import Stop
from tests.selection import thinned
from tests.training import test_states
from tests.training.conftest import make_data
from tests.training.stepping import stepping


@pytest.mark.parametrize("step", thinned([2, 3, 4], 2))
def test_a_missed_evaluation_is_that_of_the_phase_that_wrote_the_checkpoint(step: int, tmp_path: Path) -> None:
    """Two phases with batches of 8 and 16: up to step 2 the carry has 8 rows, then 16, and so has the layout that the evaluation gets."""
    run = test_states.recipe(make_data(tmp_path / "made", 1, "characters"))
    run = dataclasses.replace(run, phases=Phases(steps=(2, 2), batch=(8, 16)), eval=EvalConfig(every=1, batch=8))
    job = prepare.prepare(run, tmp_path / "run")
    found = []

    def evaluate(job: Any, phase: Any, objective: Any, place: Any) -> Mapping[str, float]:
        found.append((phase, {leaf.shape[0] for leaf in jax.tree.leaves(place.shapes.carry)}))
        return {}

    with stepping(evaluate=evaluate), jax.set_mesh(job.mesh), Stop() as stop, Watch() as watch:
        phase = job.run.plan[0 if step <= 2 else 1]
        state = dataclasses.replace(job.layout(phase).create(rng.init_key(0)), step=jnp.int32(step))
        outcome = loop.train(job, state, Silent(NoEvents()), mock.create_autospec(Manager), stop, watch)
    assert outcome == loop.Outcome(step, True, {})
    assert found == [(phase, {phase.batch})]
    assert phase.batch == (8 if step <= 2 else 16)
