"""What is compared of the software of two processes (a run of two that differ: tests/faults/test_processes.py)."""

import shutil
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import pytest

import jaxenc
from jaxenc.processes import versions


@pytest.fixture
def copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Another checkout, which `installed` looks at."""
    shutil.copytree(Path(jaxenc.__file__).parent, tmp_path / "jaxenc", ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(versions, "jaxenc", SimpleNamespace(__file__=str(tmp_path / "jaxenc" / "__init__.py")))
    return tmp_path / "jaxenc"


def test_two_checkouts_of_one_source_are_the_same(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (copied / "__pycache__").mkdir(exist_ok=True)
    (copied / "__pycache__" / "rng.pyc").write_bytes(b"compiled")
    here = versions.installed()
    monkeypatch.setattr(versions, "jaxenc", jaxenc)
    assert versions.installed() == here
    assert here["jax"] == metadata.version("jax") and here["jaxenc"].startswith(metadata.version("jaxenc"))


@pytest.mark.parametrize("change", ["edited", "renamed"])
def test_one_changed_line_or_name_is_another_source(change: str, copied: Path) -> None:
    before = versions.installed()
    file = copied / "processes" / "versions.py"
    if change == "edited":
        file.write_text(file.read_text().replace("sha256", "sha512", 1))
    else:
        file.rename(file.with_name("version.py"))
    after = versions.installed()
    assert after.pop("jaxenc") != before.pop("jaxenc") and after == before


def test_a_source_that_is_not_installed_has_a_checksum_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Found by PYTHONPATH, for instance."""
    here = versions.installed()

    def version(name: str) -> str:
        if name == "jaxenc":
            raise metadata.PackageNotFoundError(name)
        return here[name]

    monkeypatch.setattr(versions.metadata, "version", version)
    assert versions.installed() == here | {"jaxenc": f"not installed (source {versions.source()})"}
