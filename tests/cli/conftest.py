"""A small data folder, and commands that are expected to fail."""

from collections.abc import Callable
from pathlib import Path

import pytest

from jaxenc.cli.main import main
from tests.training.conftest import make_data


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_data(tmp_path_factory.mktemp("cli") / "data", 1)


@pytest.fixture
def fails(capsys: pytest.CaptureFixture) -> Callable[..., str]:
    """Runs a command that a user got wrong: exit code 2 and one line on stderr, which it returns."""

    def run(*argv: object) -> str:
        capsys.readouterr()
        assert main([str(item) for item in argv]) == 2
        out, err = capsys.readouterr()
        assert not out and err.startswith("jaxenc: ") and err.count("\n") == 1, err
        return err

    return run
