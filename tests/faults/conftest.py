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
from tests.train import test_loop
from tests.train.conftest import make_data


@pytest.fixture(scope="session")
def nanos(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Nano]:
    """A run by the name of its objective."""
    cache = tmp_path_factory.mktemp("compiled")
    return functools.cache(lambda kind: alone.nano(kind, tmp_path_factory.mktemp(kind), cache))


@pytest.fixture(scope="session")
def undisturbed_alone(nanos: Callable[[str], Nano], tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The finished work directory of a run that nothing stopped, from a process of its own."""

    @functools.cache
    def make(kind: str) -> Path:
        workdir = tmp_path_factory.mktemp("undisturbed") / kind
        code, said = nanos(kind).finish(workdir)
        assert code == 0, said
        return workdir

    return make


class Row(Protocol):
    """Writes a line of the table of faults."""

    def __call__(self, fault: str, count: int, outcome: str) -> None: ...


@pytest.fixture
def row() -> Row:
    """`JAXENC_FAULTS_TABLE` names the file that the lines go to; the seconds are those of the test so far."""
    started, table = time.monotonic(), os.environ.get("JAXENC_FAULTS_TABLE", os.devnull)

    def write(fault: str, count: int, outcome: str) -> None:
        with open(table, "a") as file:
            file.write(f"| {fault} | {count} | {outcome} | {time.monotonic() - started:.0f} |\n")

    return write


@pytest.fixture(scope="session")
def several(tmp_path_factory: pytest.TempPathFactory) -> Several:
    """The nano BERT of 30 steps, in as many processes as one likes."""
    folder = tmp_path_factory.mktemp("several")
    run = test_loop.recipe(make_data(folder / "made", 1))
    return Several(dataclasses.replace(run, train=dataclasses.replace(run.train, steps=STEPS)), folder)
