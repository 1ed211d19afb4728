"""The nano runs and what nobody disturbed of them, each made once."""

import dataclasses
import functools
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import pytest

from tests.faults import alone
from tests.faults.alone import Nano
from tests.faults.several import STEPS, Several
from tests.training import test_loop
from tests.training.conftest import make_data


@pytest.fixture(scope="session")
def nanos(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Nano]:
    """A run by the name of its objective and its number of steps."""
    return functools.cache(lambda kind, steps=alone.STEPS: alone.nano(kind, tmp_path_factory.mktemp(kind), steps))


@pytest.fixture(scope="session")
def undisturbed_alone(nanos: Callable[..., Nano], tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """The finished work directory of a run that nothing stopped, from a process of its own."""

    @functools.cache
    def make(kind: str, steps: int = alone.STEPS) -> Path:
        workdir = tmp_path_factory.mktemp("undisturbed") / kind
        code, said = nanos(kind, steps).finish(workdir)
        assert code == 0, said
        return workdir

    return make


class Table(Protocol):
    """Writes a line of the table of faults; the seconds are those since the test began, or its file."""

    def __call__(self, fault: str, count: int, outcome: str) -> None: ...


def _table() -> Table:
    """A writer whose seconds begin now; `JAXENC_FAULTS_TABLE` names the file that the lines go to."""
    started, table = time.monotonic(), os.environ.get("JAXENC_FAULTS_TABLE", os.devnull)

    def write(fault: str, count: int, outcome: str) -> None:
        with open(table, "a") as file:
            file.write(f"| {fault} | {count} | {outcome} | {time.monotonic() - started:.0f} |\n")

    return write


@pytest.fixture
def row() -> Table:
    """A line whose seconds are those of its test."""
    return _table()


@pytest.fixture(scope="module")
def table() -> Table:
    """A line whose seconds are those of its file."""
    return _table()


@pytest.fixture(scope="session")
def several(tmp_path_factory: pytest.TempPathFactory) -> Several:
    """The nano BERT of 30 steps, in as many processes as one likes."""
    folder = tmp_path_factory.mktemp("several")
    run = test_loop.recipe(make_data(folder / "made", 1))
    return Several(dataclasses.replace(run, train=dataclasses.replace(run.train, steps=STEPS)), folder)
