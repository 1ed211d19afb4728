"""Versions and code that differ between processes."""

from importlib import metadata

import pytest

from jaxenc.doctor import versions
from jaxenc.findings import OK, PROBLEM, WARNING
from jaxenc.processes.versions import source


def facts(**changed: str) -> dict[str, str]:
    return {**versions.gather({}), **changed}


def test_equal_versions_are_one_line() -> None:
    (said,) = versions.judge([facts(), facts()])
    assert said.level == OK and f"jax {metadata.version('jax')}" in said.what and f"code {source()}" in said.what
    assert said.what.endswith("the same in 2 processes")


@pytest.mark.parametrize("name, fix", [
    ("jax", f"pip install jax=={metadata.version('jax')}"),
    ("optax", "pip install optax=="),
    ("libtpu", "libtpu"),
    ("jax-cuda13-plugin", "pip uninstall jax-cuda13-plugin"),
    ("python", "one image"),
    ("code", "copy one version of jaxenc"),
])  # fmt: skip
def test_what_differs_is_named_with_its_processes(name: str, fix: str) -> None:
    (said,) = versions.judge([facts(), facts(), facts(**{name: "9.9"})])
    assert said.level == PROBLEM and "in processes 0, 1, 9.9 in process 2" in said.what and fix in said.fix


def test_flags_that_differ_are_named() -> None:
    (said,) = versions.judge([versions.gather({"XLA_FLAGS": "--xla_a=1"}), versions.gather({})])
    assert said.level == WARNING and said.what == "XLA_FLAGS: --xla_a=1 in process 0, none in process 1"
