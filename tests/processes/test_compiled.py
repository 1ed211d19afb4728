"""The cache of compiled programs: on by default, in the user's folder, and safe from processes that are killed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from filelock import FileLock

from jaxenc.cli.main import main
from jaxenc.processes import compiled

PROGRAM = "import jax; print(jax.jit(lambda x: x + {}).lower(1.0).compile()(1.0))"


def _environment(tmp_path: Path) -> dict[str, str]:
    """This one's, without the cache of the tests."""
    own = {name: value for name, value in os.environ.items() if "CACHE" not in name}
    return {**own, "XDG_CACHE_HOME": str(tmp_path)}


def _folder(tmp_path: Path) -> Path:
    (folder,) = (tmp_path / "jaxenc" / "compiled").iterdir()
    return folder


def _compile(environment: dict[str, str], number: int) -> str:
    found = {**environment, **compiled.settings(environment)}
    ran = subprocess.run([sys.executable, "-c", PROGRAM.format(number)], env=found, capture_output=True, text=True, check=True)
    return ran.stdout + ran.stderr


def test_a_second_process_finds_what_the_first_has_compiled(tmp_path: Path) -> None:
    """And what a killed process left half-written is compiled and written again, without a word."""
    environment = _environment(tmp_path)
    assert _compile(environment, 41) == "42.0\n"
    programs = {path.name: path.read_bytes() for path in _folder(tmp_path).glob("*-cache")}
    assert programs
    assert _compile(environment, 41) == "42.0\n"
    assert {path.name for path in _folder(tmp_path).glob("*-cache")} == set(programs)
    half = _folder(tmp_path) / min(programs)
    half.write_bytes(programs[half.name][:20])
    half.with_name(half.name.removesuffix("-cache") + "-atime").unlink()
    assert _compile(environment, 41) == "42.0\n"
    assert len(half.read_bytes()) > 20


def test_empty_programs_are_deleted_and_all_are_kept_without_a_limit(tmp_path: Path) -> None:
    """A crash of the machine leaves empty files; and without a limit of the size no program has a time of use."""
    environment = _environment(tmp_path)
    compiled.settings(environment)
    for name, content in {"whole-cache": b"x", "whole-atime": b"x", "empty-cache": b"", "empty-atime": b"x", "bare-cache": b"x"}.items():
        (_folder(tmp_path) / name).write_bytes(content)
    compiled.settings({**environment, compiled.SIZE: "-1"})
    assert len(list(_folder(tmp_path).glob("*-cache"))) == 3
    compiled.settings(environment)
    assert [path.name for path in _folder(tmp_path).glob("*-cache")] == ["whole-cache"]


def test_programs_of_another_process_are_left_while_it_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environment = _environment(tmp_path)
    compiled.settings(environment)
    program = _folder(tmp_path) / "one-cache"
    program.write_bytes(b"half")
    monkeypatch.setattr(compiled, "LOCK_TIMEOUT_S", 0.0)
    with FileLock(_folder(tmp_path) / compiled.LOCK):
        assert compiled.FOLDER in compiled.settings(environment) and program.exists()
    compiled.settings(environment)
    assert not program.exists()


def test_what_the_user_has_set_stays(tmp_path: Path) -> None:
    environment = _environment(tmp_path)
    assert compiled.settings({**environment, compiled.FOLDER: ""}) == {} and not list(tmp_path.iterdir())
    assert "JAX_COMPILATION_CACHE_MAX_SIZE" not in compiled.settings({**environment, "JAX_COMPILATION_CACHE_MAX_SIZE": "-1"})


def test_a_folder_of_the_users_is_cleaned_where_they_set_a_limit(tmp_path: Path) -> None:
    """Of programs from the time without one JAX cannot tell which to delete first, and would write no more."""
    own = {**_environment(tmp_path), compiled.FOLDER: str(tmp_path), "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
    programs = lambda: {path.name for path in tmp_path.glob("*-cache")}
    assert _compile(own, 51) == "52.0\n"
    before = programs()
    assert before and _compile(own, 51) == "52.0\n" and programs() == before
    limited = {**own, compiled.SIZE: "100000000"}
    assert _compile(limited, 61) == "62.0\n"
    assert programs() and not programs() & before
    for name in (str(tmp_path / "none"), "gs://bucket/compiled", ""):
        assert compiled.settings({**limited, compiled.FOLDER: name}) == {}


def test_without_a_place_for_it_there_is_no_cache(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert compiled.settings({"XDG_CACHE_HOME": str(tmp_path / "file")}) == {}


def test_each_kind_of_processor_has_its_own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its features, not by its model name or its clock, which changes while one looks."""
    first = compiled.settings(_environment(tmp_path))[compiled.FOLDER]
    assert compiled.settings(_environment(tmp_path))[compiled.FOLDER] == first
    monkeypatch.setattr(compiled, "_processor", lambda: "another")
    assert compiled.settings(_environment(tmp_path))[compiled.FOLDER] != first


def test_a_command_turns_it_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(("JAX_COMPILATION", "JAX_PERSISTENT"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(os, "environ", os.environ.copy())
    assert main(["inspect", "--config", "nothing/here"]) == 2
    assert os.environ[compiled.FOLDER] == str(_folder(tmp_path))
