"""The parameter tree and the corrupted rows of every objective, and the first step of every family."""

from pathlib import Path

import numpy as np
import pytest

from tests.baseline import inside, runs

# Relative, of the loss, the gradient norm and the metrics of one step. See README.md for what was measured.
BOUND = 1e-6
SHORT = ("roberta",)
AGAIN = "if this is meant, python -m tests.baseline.make steps, and say in the commit why (key maps and old checkpoints may need a change)"


def subject(name: str, tmp_path: Path, recorded: dict) -> inside.Subject:
    return inside.subject(runs.config_of(name), runs.data_of(name, tmp_path), recorded["step"])


@pytest.mark.parametrize("name", runs.FIRST_STEPS)
def test_parameters_and_corrupted_rows(name: str, tmp_path: Path) -> None:
    """Paths, shapes and axis names; every field of the corrupted rows, bit for bit on any machine."""
    recorded = runs.read(runs.STEPS / f"{name}.json")
    run = subject(name, tmp_path, recorded)
    assert run.tree() == recorded["tree"], AGAIN
    assert run.corrupted(list(map(int, recorded["corrupted"]))) == recorded["corrupted"], AGAIN


@pytest.mark.slow
# test_resume.py compares 20 later steps of the families that are `full` here.
@pytest.mark.parametrize("name", [name if name in SHORT else pytest.param(name, marks=pytest.mark.full) for name in runs.COMPILED])
def test_the_first_step(name: str, tmp_path: Path) -> None:
    """From fresh parameters: loss, gradient norm, rate and every metric."""
    recorded = runs.read(runs.STEPS / f"{name}.json")
    run = subject(name, tmp_path, recorded)
    found, wanted = run.first_step(run.compiled()[1]), recorded["first_step"]
    assert found.keys() == wanted.keys(), AGAIN
    for key, value in wanted.items():
        np.testing.assert_allclose(found[key], value, rtol=BOUND, err_msg=f"{key}: {AGAIN}")
