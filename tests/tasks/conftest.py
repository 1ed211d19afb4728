"""The model and the task of tests/tasks/tiny_task.py as fixtures."""

import functools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jaxenc.tasks.tuning import FineTune
from tests import tiny
from tests.tasks.tiny_task import make_model, make_task


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """See `make_model`."""
    out = tmp_path_factory.mktemp("pretrained") / "run"
    make_model(out)
    return out


@pytest.fixture
def labelled(tmp_path: Path) -> Callable[..., FineTune]:
    """`make_task` in the folder of the test."""
    return functools.partial(make_task, tmp_path)


@pytest.fixture
def one_device() -> Iterator[None]:
    """Runs are on one device."""
    with tiny.on_one_device():
        yield
