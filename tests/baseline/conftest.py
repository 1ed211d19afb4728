"""One compilation cache for the files of this folder."""

from collections.abc import Iterator

import pytest

from tests.train.test_loop import caching


@pytest.fixture(scope="package", autouse=True)
def compile_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A step that one test compiles is read from the disk by the next, also in another file."""
    with caching(tmp_path_factory.mktemp("baseline-compiled")):
        yield
