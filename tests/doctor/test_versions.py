"""Versions and code that differ between processes."""

from importlib import metadata
from pathlib import Path

import pytest

from jaxenc.doctor import versions
from jaxenc.doctor.findings import OK, PROBLEM, WARNING


def facts(**changed: str) -> dict[str, str]:
    return {**versions.gather({}), **changed}


def test_equal_versions_are_one_line() -> None:
    (said,) = versions.judge([facts(), facts()])
    assert said.level == OK and f"jax {metadata.version('jax')}" in said.what and f"code {versions.code()}" in said.what
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


def test_any_change_of_the_code_is_another_hash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "hashed_by_the_doctor"
    (package / "part").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "part" / "one.py").write_text("a = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    hashes = [versions.code([package.name])]
    for name, text in (("part/one.py", "a = 2\n"), ("part/two.py", ""), ("notes.txt", "no code")):
        (package / name).write_text(text)
        hashes.append(versions.code([package.name]))
    assert hashes[3] == hashes[2] and len(set(hashes)) == 3
    assert versions.code() == versions.code() != versions.code(["jaxenc"])
