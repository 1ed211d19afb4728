"""A small data folder."""

from pathlib import Path

import pytest

from tests.training.conftest import make_data


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_data(tmp_path_factory.mktemp("report") / "data", 1)
