"""The tests that also run on the second Python are there: one that was renamed would be left out without a word."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_each_id_of_second_python_begins_that_of_a_test(pytestconfig: pytest.Config) -> None:
    for begins in pytestconfig.getini("second_python"):
        path, _, name = begins.partition("::")
        assert (ROOT / path).is_file(), begins
        assert f"\ndef {name.partition('[')[0]}" in (ROOT / path).read_text(), begins
