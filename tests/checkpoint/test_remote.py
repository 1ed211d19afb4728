"""Steps at a URL: there or not there, whole or set aside, whatever dies in between."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from jaxenc import storage
from jaxenc.checkpoint.remote import RemoteSteps
from jaxenc.checkpoint.retention import CheckpointConfig
from jaxenc.checkpoint.verify import CHECKSUMS, write_checksums
from tests import bucket
from tests.bucket import Bucket


class Killed(BaseException):
    """A process dies here."""


def killed(kind: str, ending: str, done: bool) -> Callable[[str, str, bool], None]:
    """An accident: nothing happens any more from this request on."""
    dead = []

    def die(its: str, name: str, its_done: bool) -> None:
        dead.extend([True] * ((its, its_done) == (kind, done) and name.endswith(ending)))
        if dead:
            raise Killed

    return die


@pytest.fixture
def steps(bucket_url: str, tmp_path: Path) -> RemoteSteps:
    """Steps 10, 20 and 30 at a URL."""
    remote = RemoteSteps(storage.folder(f"{bucket_url}/run/checkpoints"))
    for step in (10, 20, 30):
        save(remote, step, tmp_path / "made")
    return remote


def save(remote: RemoteSteps, step: int, made: Path) -> None:
    local = made / str(step)
    (local / "state").mkdir(parents=True)
    (local / "state" / "a").write_bytes(bytes([step]) * 100)
    (local / "config.json").write_text("{}")
    write_checksums(local, step)
    remote.send(step, local, ["state/a", "config.json"])
    remote.complete(step, local)


def again() -> None:
    Bucket.accident = staticmethod(lambda kind, name, done: None)


def far(remote: RemoteSteps, name: str) -> Path:
    return bucket.at(f"{remote.folder.url}/{name}")


def test_only_missing_files_of_the_newest_step_are_downloaded(steps: RemoteSteps, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert steps.newest(tmp_path / "here", True, aside=True) == 30
    assert sorted(path.name for path in (tmp_path / "here" / "30").iterdir()) == [CHECKSUMS, "config.json", "state"]
    (tmp_path / "here" / "30" / "state" / "a").write_bytes(bytes(100))
    (tmp_path / "here" / "30" / "state" / "other").write_bytes(b"x")
    came = []
    download = storage.Folder.download
    monkeypatch.setattr(storage.Folder, "download", lambda self, name, path: came.append(name) or download(self, name, path))
    assert steps.download(30, tmp_path / "here", True) == [] and came == ["state/a"]
    assert (tmp_path / "here" / "30" / "state" / "a").read_bytes() == bytes([30]) * 100


def test_a_flipped_bit_is_found_and_set_aside(steps: RemoteSteps, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content = bytearray(far(steps, "30/state/a").read_bytes())
    content[50] ^= 1
    far(steps, "30/state/a").write_bytes(content)
    assert steps.newest(tmp_path / "here", True, aside=True) == 20
    said = "state/a has changed (sha256); set aside as 30.bad-1, trying an older step"
    assert capsys.readouterr().err == f"checkpoint {steps.folder.url}/30: {said}\n"
    assert far(steps, "30.bad-1/state/a").read_bytes() == content and not far(steps, "30").exists()
    assert not (tmp_path / "here" / "30").exists()
    steps.clean()
    assert steps.steps() == [10, 20] and far(steps, f"30.bad-1/{CHECKSUMS}").exists()


def test_a_step_of_another_run_is_left_where_it_is(steps: RemoteSteps, tmp_path: Path) -> None:
    far(steps, "30/state/a").unlink()
    assert steps.newest(tmp_path / "here", True, aside=False) == 20
    assert steps.steps() == [10, 20, 30]


def test_a_half_written_step_is_ignored_and_deleted(steps: RemoteSteps, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    far(steps, f"30/{CHECKSUMS}").unlink()
    assert steps.newest(tmp_path / "here", True, aside=True) == 20
    assert far(steps, "30/state/a").exists()
    steps.clean()
    assert not far(steps, "30").exists()
    assert capsys.readouterr().err == f"checkpoint {steps.folder.url}/30: half-written (it has no {CHECKSUMS}); ignored and deleted\n"


@pytest.mark.parametrize("done", [False, True])
def test_a_kill_at_the_last_file_of_a_save(steps: RemoteSteps, tmp_path: Path, done: bool) -> None:
    """Before it the step is not there, after it the step is whole."""
    Bucket.accident = staticmethod(killed("put", CHECKSUMS, done))
    with pytest.raises(Killed):
        save(steps, 40, tmp_path / "made")
    again()
    steps.clean()
    assert steps.newest(tmp_path / "here", True, aside=True) == (40 if done else 30)


@pytest.mark.parametrize("ending, done, left", [(CHECKSUMS, False, [10, 20, 30]), (CHECKSUMS, True, [20, 30]), ("state/a", True, [20, 30])])
def test_a_kill_in_retention(steps: RemoteSteps, tmp_path: Path, ending: str, done: bool, left: list[int]) -> None:
    """No step is ever there without its files."""
    Bucket.accident = staticmethod(killed("rm", ending, done))
    with pytest.raises(Killed):
        steps.retain(CheckpointConfig(keep=2), 30)
    again()
    steps.clean()
    assert steps.steps() == left
    assert all(steps.download(step, tmp_path / "here", True) == [] for step in left)


@pytest.mark.parametrize("kind, ending, done", [("cp", "state/a", False), ("cp", CHECKSUMS, True), ("rm", CHECKSUMS, True)])
def test_a_kill_while_a_damaged_step_is_set_aside(steps: RemoteSteps, tmp_path: Path, kind: str, ending: str, done: bool) -> None:
    """Its bytes are there all the time, under one name or the other."""
    far(steps, "30/state/a").write_bytes(b"damaged")
    Bucket.accident = staticmethod(killed(kind, ending, done))
    with pytest.raises(Killed):
        steps.newest(tmp_path / "here", True, aside=True)
    again()
    steps.clean()
    assert steps.newest(tmp_path / "here", True, aside=True) == 20
    kept = [path for path in far(steps, "").glob("30.bad-*/state/a")]
    assert {path.read_bytes() for path in kept} == {b"damaged"}


def test_the_files_of_several_processes_are_one_step(steps: RemoteSteps, tmp_path: Path) -> None:
    parts = {process: tmp_path / f"process-{process}" / "40" for process in (0, 1)}
    for process, local in parts.items():
        (local / "state").mkdir(parents=True)
        (local / "state" / f"0.{process}").write_bytes(bytes([process]))
    entries = {"state/0.1": {"size": 1, "sha256": "4bf5122f344554c53bde2ebb8cd2b7e3d1600ad631c385a5d7cce23c7785459a"}}
    steps.send(40, parts[1], entries)
    steps.send_part(40, 1, entries)
    write_checksums(parts[0], 40, steps.parts(40, 2))
    steps.send(40, parts[0], ["state/0.0"])
    steps.complete(40, parts[0])
    shutil.rmtree(tmp_path / "process-0")
    assert steps.newest(tmp_path / "here", True, aside=True) == 40
    assert {path.name for path in (tmp_path / "here" / "40" / "state").iterdir()} == {"0.0", "0.1"}
    assert not far(steps, ".40.parts").exists()
