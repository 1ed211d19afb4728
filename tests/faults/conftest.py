"""The nano runs and what nobody disturbed of them, each made once."""

import dataclasses
import functools
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import pytest

from jaxenc.training.pretrain import pretrain
from tests.faults import alone
from tests.faults.alone import Nano
from tests.faults.commands import make_task
from tests.faults.several import STEPS, MadeOnce, Several
from tests.training import test_loop
from tests.training.conftest import make_data


@pytest.fixture(scope="session")
def nanos(made_once: MadeOnce) -> Callable[..., Nano]:
    """A run by the name of its objective and its number of steps."""

    def make(kind: str, steps: int = alone.STEPS) -> Nano:
        return alone.nano(kind, steps, made_once(f"{kind}-{steps}", functools.partial(alone.prepare, kind, steps)))

    return make


@pytest.fixture(scope="session")
def undisturbed_alone(nanos: Callable[..., Nano], made_once: MadeOnce) -> Callable[..., Path]:
    """The finished work directory of a run that nothing stopped."""

    def make(kind: str, steps: int = alone.STEPS) -> Path:
        fill = lambda folder: pretrain(nanos(kind, steps).run, folder / "run")
        return made_once(f"{kind}-{steps}-undisturbed", fill) / "run"

    return make


@pytest.fixture
def url(bucket_url: str) -> str:
    """Where nothing is yet, in an empty bucket."""
    return f"{bucket_url}/run"


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
def several(made_once: MadeOnce) -> Several:
    """The nano BERT, in as many processes as one likes."""

    def fill(folder: Path) -> None:
        make_data(folder / "made", 1)
        make_task(folder / "task")

    folder = made_once("several", fill)
    run = test_loop.recipe(folder / "made" / "data")
    return Several(dataclasses.replace(run, train=dataclasses.replace(run.train, steps=STEPS)), folder, made_once)
