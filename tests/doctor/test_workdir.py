"""Work directories that take no files, are not one for all, or have too little room."""

import dataclasses
from pathlib import Path

import fsspec
import jax
import pytest

from jaxenc.doctor import probe as probes
from jaxenc.doctor import workdir
from jaxenc.doctor.probe import Probe, probe
from jaxenc.findings import OK, PROBLEM, WARNING
from jaxenc.training.run import Run
from jaxenc.training.state import parameters
from tests import tiny

GOOD = Probe("/runs", "", True, 10**12)


def levels(*found: Probe, needed: int = 0, kept: int = 3) -> list[str]:
    return [one.level for one in workdir.judge("/runs", found, needed, kept)]


@pytest.mark.parametrize("name", ["", "run", "a/b/run"])
def test_a_folder_that_takes_files_is_left_as_it_was(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one that a run would make, and one that is named from here."""
    monkeypatch.chdir(tmp_path)
    own = probe("here", str(tmp_path / name), 0, 1)
    assert own == Probe(str(tmp_path), "", True, own.free) and own.free > 0
    assert not list(tmp_path.iterdir())
    said = workdir.judge(str(tmp_path / name), [own], 0, 3)
    assert [one.level for one in said] == [OK, OK] and ("will be made" in said[0].what) == bool(name)
    assert "will be made" not in workdir.judge(".", [probe("here", ".", 0, 1)], 0, 3)[0].what


def test_a_file_in_the_way_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    for name in ("file", "file/run"):
        said, _ = workdir.judge(str(tmp_path / name), [probe("here", str(tmp_path / name), 0, 1)], 0, 3)
        assert said.level == PROBLEM and f"{tmp_path / 'file'}: Not a directory" in said.what and said.fix
    assert [path.name for path in tmp_path.iterdir()] == ["file"] and (tmp_path / "file").read_text() == "mine"


def test_a_folder_that_the_system_keeps_for_itself_is_a_problem() -> None:
    """Of root too, whom permissions do not bind."""
    said = workdir.judge("/proc/run", [probe("here", "/proc/run", 0, 1)], 0, 3)[0]
    assert said.level == PROBLEM and "/proc: " in said.what and said.fix == "make /proc a folder that takes files, or choose another"


def test_a_disk_that_gives_back_other_bytes_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probes, "_read", lambda folder, name: b"other")
    assert probe("here", str(tmp_path), 0, 1).error == "OSError: reads other bytes than were written"


def test_a_url_is_written_and_read_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAXENC_CACHE", str(tmp_path / "not" / "yet"))
    own = probe("here", "memory://bucket/run", 0, 1)
    assert own == Probe("memory://bucket/run", "", True, own.free) and own.free > 0
    assert not fsspec.filesystem("memory").find("/bucket") and not (tmp_path / "not").exists()


@pytest.mark.parametrize("free, found", [(199, [OK, PROBLEM]), (200, [OK, OK])])
def test_a_run_at_a_url_needs_room_for_two_checkpoints_here(free: int, found: list[str]) -> None:
    """Each process works in a copy; where the room of one is not known, the others are judged."""
    probes = [Probe("memory://bucket/run", "", True, known) for known in (10**12, free, -1)]
    said = workdir.judge("memory://bucket/run", probes, 100, 3)
    assert [one.level for one in said] == found and "of process 1" in said[1].what and ("JAXENC_CACHE" in said[1].fix) == (free < 200)


def test_an_address_of_no_known_kind_is_a_problem() -> None:
    assert "Protocol not known" in probe("there", "nosuch://bucket/run", 0, 1).error


def test_a_url_without_its_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*given: object) -> None:
        raise ImportError("no gcsfs", name="gcsfs")

    monkeypatch.setattr(fsspec.core, "url_to_fs", fail)
    error = probe("here", "gs://bucket/run", 0, 1).error
    assert error == "needs a package that is not installed; install it with `pip install gcsfs`"


def test_an_address_that_a_run_would_refuse_is_a_problem() -> None:
    assert probe("here", "memory://", 0, 1).error.startswith("names no folder; add one")


def test_unshared_disks_are_a_problem_that_names_the_processes() -> None:
    said, _ = workdir.judge("/runs", [GOOD, dataclasses.replace(GOOD, seen=False), GOOD], 0, 3)
    assert said.level == PROBLEM and said.what == "process 1 does not see the files that process 0 writes there"
    assert "on a disk that all hosts share, or a URL such as gs://" in said.fix


def test_one_process_that_cannot_write_is_named() -> None:
    said, _ = workdir.judge("/runs", [GOOD, dataclasses.replace(GOOD, error="Read-only file system")], 0, 3)
    assert said.level == PROBLEM and said.what == "process 1 cannot write there (/runs: Read-only file system)"
    assert levels(dataclasses.replace(GOOD, error="No space left on device", seen=False), dataclasses.replace(GOOD, seen=False)) == [
        PROBLEM,
        OK,
    ]


@pytest.mark.parametrize("free, level", [(299, PROBLEM), (300, WARNING), (399, WARNING), (400, OK)])
def test_less_room_than_three_checkpoints_is_a_problem_and_than_all_that_are_kept_a_warning(free: int, level: str) -> None:
    assert levels(dataclasses.replace(GOOD, free=free), needed=100, kept=3) == [OK, level]


def test_the_size_of_a_checkpoint_is_that_of_parameters_and_moments() -> None:
    """Each leaf and its two moments in float32, counted here leaf by leaf; the rest is a few numbers."""
    run = Run(model=dataclasses.replace(tiny.MODEL, positions=128))
    objective = tiny.objective(run.objective, run.model, 128)
    count = sum(leaf.size for leaf in jax.tree.leaves(parameters(objective)[0]))
    assert 3 * 4 * count <= workdir.checkpoint_bytes(run, tiny.VOCABULARY) < 3 * 4 * count + 1000
