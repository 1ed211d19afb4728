"""A small data folder, and commands that are expected to fail."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jaxenc.cli.main import main
from tests import tiny
from tests.training.conftest import make_data


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_data(tmp_path_factory.mktemp("cli") / "data", 1)


@pytest.fixture(scope="module")
def one_device() -> Iterator[None]:
    with tiny.on_one_device():
        yield


@pytest.fixture
def fails(capsys: pytest.CaptureFixture) -> Callable[..., str]:
    """Runs a command that a user got wrong: exit code 2 and, after any warnings, one line on stderr, which it returns."""

    def run(*argv: object) -> str:
        capsys.readouterr()
        assert main([str(item) for item in argv]) == 2
        out, err = capsys.readouterr()
        *warnings, line = err.splitlines(keepends=True)
        assert not out and line.startswith("jaxenc: ") and all(warning.startswith("warning: ") for warning in warnings), err
        return line

    return run
