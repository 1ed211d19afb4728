"""A world of its own for each test."""

from pathlib import Path

import pytest

from tests.launch.world import World


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)
