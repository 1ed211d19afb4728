"""R07: a build that is killed, interrupted or stopped by an error goes on where it was, and its bytes are those of one that was not."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

from jaxenc.data import build as building
from jaxenc.data import duplicates, local, manifest, pieces, readers, shard_writer, unfinished
from jaxenc.data.build import build
from jaxenc.data.duplicates import Duplicates
from jaxenc.data.readers.sources import File
from jaxenc.data.workers import Here
from jaxenc.errors import UserError
from tests.data import killed_build
from tests.data.killed_build import GROUP, HELD_OUT, SHARD
from tests.faults import power
from tests.group import Process
from tests.selection import thinned

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few documents are several groups and shards, and no process is started."""
    monkeypatch.setattr(building, "GROUP_CHARACTERS", GROUP)
    monkeypatch.setattr(shard_writer, "SHARD_TOKENS", SHARD)
    monkeypatch.setattr(building, "pool", lambda count: Here())


def contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def identities(folder: Path) -> dict[str, tuple[int, int]]:
    """{name: (inode, time of the last write)} of the shards' files."""
    return {path.name: (path.stat().st_ino, path.stat().st_mtime_ns) for path in folder.glob("*-0*.*")}


@pytest.fixture(scope="module")
def whole(corpus: Path, tokenizer: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of a build that was not interrupted."""
    out = tmp_path_factory.mktemp("whole") / "out"
    with (
        mock.patch.multiple(building, GROUP_CHARACTERS=GROUP, pool=lambda count: Here()),
        mock.patch.object(shard_writer, "SHARD_TOKENS", SHARD),
    ):
        build([str(corpus)], tokenizer, out, HELD_OUT)
    assert len([name for name in contents(out) if name.startswith("train-") and name.endswith(".tokens")]) > 5
    return contents(out)


def started(corpus: Path, tokenizer: Path, out: Path, workers: int, after: int) -> Process:
    command = [sys.executable, killed_build.__file__, *map(str, (corpus, tokenizer, out, workers, after))]
    return Process(command, stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)})


def folder_of(out: Path) -> Path:
    (place,) = out.parent.glob(f".{out.name}.unfinished-*")
    return place


def finished_shards(place: Path) -> dict[str, tuple[int, int]]:
    path = place / unfinished.PROGRESS
    splits = json.loads(path.read_bytes())["splits"] if path.exists() else {}
    named = {name for split in splits.values() for shard in split["shards"] for name in shard["files"]}
    return {name: found for name, found in identities(place / "new").items() if name in named}


# The first kill comes between the two pieces of the second group, the second one after several shards.
@pytest.mark.parametrize("after", [3, 40])
def test_a_killed_build_goes_on(
    after: int, corpus: Path, tokenizer: Path, whole: dict, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    out = tmp_path / "out"
    with started(corpus, tokenizer, out, 1, after) as process:
        process.communicate()
    assert process.returncode == -signal.SIGKILL and not out.exists()
    place, before = folder_of(out), finished_shards(folder_of(out))
    assert bool(before) == (after > 10)
    build([str(corpus)], tokenizer, out, HELD_OUT)
    assert contents(out) == whole and not place.exists()
    assert before.items() <= identities(out).items()
    said = capsys.readouterr().err
    groups = int(said.split(" group")[0].rpartition(" ")[2])
    assert "finished before" in said and groups == (1 if after == 3 else groups) and groups > bool(before) * 8


@pytest.mark.full
@pytest.mark.parametrize("seed", thinned(range(10), 0, 1))
def test_ten_kills_at_random_times(seed: int, corpus: Path, tokenizer: Path, whole: dict, tmp_path: Path) -> None:
    """With two processes, at a random share of the work, up to three times in one build."""
    out, random = tmp_path / "out", np.random.default_rng(seed)
    kept: dict[str, tuple[int, int]] = {}
    for _ in range(3):
        written, wanted = 0, int(random.integers(1, 40))
        with started(corpus, tokenizer, out, 2, 0) as process:
            while process.poll() is None and written < wanted:
                places = list(tmp_path.glob(".out.unfinished-*"))
                written = sum(len(list(place.rglob("*.npz"))) + 8 * len(list(place.rglob("*.tokens"))) for place in places)
                time.sleep(0.001)
            process.kill()
            process.communicate()
        if out.exists():
            break
        now = finished_shards(folder_of(out))
        assert kept.items() <= now.items(), "a finished shard was made again"
        kept = now
    build([str(corpus)], tokenizer, out, HELD_OUT)
    assert contents(out) == whole and os.listdir(tmp_path) == ["out"]
    assert kept.items() <= identities(out).items()


@contextmanager
def stopped(call: str, after: int, error: BaseException, module: object = pieces) -> Iterator[list[str]]:
    """Raises `error` in the call `after` of a function of `module` that takes a group second; yields the names of the groups it was for."""
    real, names = getattr(module, call), []

    def stopping(first: object, group: object, *rest: object) -> object:
        if len(names) == after:
            raise error
        names.append(group.name)
        return real(first, group, *rest)

    with mock.patch.object(module, call, stopping):
        yield names


@pytest.mark.parametrize("error", [KeyboardInterrupt(), UserError("a worker process died"), OSError(28, "No space left on device")])
def test_what_is_finished_is_kept_and_not_made_again(
    error: BaseException, corpus: Path, tokenizer: Path, whole: dict, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    out = tmp_path / "out"
    with stopped("make", 10, error) as first, pytest.raises((KeyboardInterrupt, UserError)):
        build([str(corpus)], tokenizer, out, HELD_OUT)
    assert f"10 groups are finished and kept in {folder_of(out)}" in capsys.readouterr().err
    with stopped("make", 1000, error) as second:
        build([str(corpus)], tokenizer, out, HELD_OUT)
    assert "10 groups were finished before" in capsys.readouterr().err
    assert not set(first) & set(second) and len(first) == 10 and len(second) > 5
    assert contents(out) == whole


def test_keys_of_near_duplicates_are_not_computed_again(corpus: Path, tokenizer: Path, tmp_path: Path) -> None:
    rule = Duplicates("near", words=2, permutations=32)
    build([str(corpus)], tokenizer, tmp_path / "whole", HELD_OUT, duplicates=rule)
    with stopped("make", 10, KeyboardInterrupt()), pytest.raises(KeyboardInterrupt):
        build([str(corpus)], tokenizer, tmp_path / "out", HELD_OUT, duplicates=rule)
    before = {path.name for path in folder_of(tmp_path / "out").rglob("*.keys")}
    with stopped("make_keys", 1000, KeyboardInterrupt(), duplicates) as made:
        build([str(corpus)], tokenizer, tmp_path / "out", HELD_OUT, duplicates=rule)
    assert len(before) >= 10 and not before & {f"{name}.keys" for name in made}
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


def test_what_a_kill_leaves_half_done_is_removed(corpus: Path, tokenizer: Path, whole: dict, tmp_path: Path) -> None:
    """A shard that was never recorded, pieces that a shard holds already, and files under temporary names, all of wrong content."""
    out = tmp_path / "out"
    with stopped("make", 10, KeyboardInterrupt()), pytest.raises(KeyboardInterrupt):
        build([str(corpus)], tokenizer, out, HELD_OUT)
    place = folder_of(out)
    wrong = [
        place / "new" / "train-00099.tokens",
        place / "pieces" / "000000-00000000.train.npz",
        place / "pieces" / ".000000-00000000.train.npz.1",
    ]
    assert not any(path.exists() for path in wrong)
    for path in wrong:
        path.write_bytes(b"debris")
    with mock.patch.object(local, "run", side_effect=KeyboardInterrupt), pytest.raises(KeyboardInterrupt):
        build([str(corpus)], tokenizer, out, HELD_OUT)
    assert not any(path.exists() for path in wrong)
    build([str(corpus)], tokenizer, out, HELD_OUT)
    assert contents(out) == whole


@pytest.mark.parametrize("late", [False, True])
def test_a_kill_while_a_shard_is_recorded_loses_no_piece(late: bool, corpus: Path, tokenizer: Path, whole: dict, tmp_path: Path) -> None:
    """Just before, or just after, `progress.json` names the fourth shard."""
    out, real, left = tmp_path / "out", unfinished.write_bytes, 4

    def progress(path: Path, content: bytes) -> None:
        nonlocal left
        left -= 1
        if not left and not late:
            raise KeyboardInterrupt
        real(path, content)
        if not left:
            raise KeyboardInterrupt

    recording = mock.patch.object(unfinished, "write_bytes", progress)
    with recording, stopped("make", 1000, OSError()) as first, pytest.raises(KeyboardInterrupt):
        build([str(corpus)], tokenizer, out, HELD_OUT)
    with stopped("make", 1000, OSError()) as second:
        build([str(corpus)], tokenizer, out, HELD_OUT)
    assert not set(first) & set(second) and len(second) > 5
    assert contents(out) == whole


def test_a_piece_that_a_power_cut_damaged_is_made_again(corpus: Path, tokenizer: Path, whole: dict, tmp_path: Path) -> None:
    """Its name may be on the disk without its bytes, or with some."""
    out = tmp_path / "out"
    with stopped("make", 4, KeyboardInterrupt()), pytest.raises(KeyboardInterrupt):
        build([str(corpus)], tokenizer, out, HELD_OUT)
    first, second = sorted(folder_of(out).rglob("*.train.npz"))[-2:]
    first.write_bytes(b"")
    second.write_bytes(second.read_bytes()[:200])
    build([str(corpus)], tokenizer, out, HELD_OUT)
    assert contents(out) == whole


def test_pieces_go_when_a_shard_holds_them(corpus: Path, tokenizer: Path, tmp_path: Path) -> None:
    """No more pieces lie on the disk than one shard takes, and those of held-out documents."""
    real, most = unfinished.Unfinished.add, []

    def add(self: unfinished.Unfinished, split: str, *rest: object) -> None:
        most.append(len(list(self.pieces.glob("*.train.npz"))))
        real(self, split, *rest)

    with mock.patch.object(unfinished.Unfinished, "add", add):
        build([str(corpus)], tokenizer, tmp_path / "out", HELD_OUT)
    assert len(most) > 5 and max(most) <= 8


def test_another_request_is_said_and_never_mixed_in(corpus: Path, tokenizer: Path, whole: dict, tmp_path: Path, capsys) -> None:
    out = tmp_path / "out"
    with stopped("make", 10, KeyboardInterrupt()), pytest.raises(KeyboardInterrupt):
        build([str(corpus)], tokenizer, out, 0.3)
    place = folder_of(out)
    capsys.readouterr()
    build([str(corpus)], tokenizer, out, HELD_OUT)
    said = capsys.readouterr().err
    assert f"{place} is an unfinished build of another request" in said and "finished before" not in said
    assert contents(out) == whole and place.exists()
    # Its own progress.json in the folder of another request, as a copy of the folder would have it.
    with stopped("make", 10, KeyboardInterrupt()), pytest.raises(KeyboardInterrupt):
        build([str(corpus)], tokenizer, tmp_path / "second", HELD_OUT)
    (folder_of(tmp_path / "second") / unfinished.PROGRESS).write_bytes((place / unfinished.PROGRESS).read_bytes())
    with pytest.raises(UserError, match="progress.json: damaged .of another request.; delete"):
        build([str(corpus)], tokenizer, tmp_path / "second", HELD_OUT)


def test_a_folder_that_another_build_wrote_meanwhile_is_kept(corpus: Path, tokenizer: Path, tmp_path: Path, monkeypatch) -> None:
    """Two builds of different requests into one folder: the second to finish keeps its work and leaves the folder alone."""
    out = tmp_path / "out"

    def other(new: Path) -> None:
        out.mkdir()
        (out / "theirs").write_text("kept")

    monkeypatch.setattr(unfinished, "flush_all", other)
    with pytest.raises(UserError, match="out: another build wrote it while this one ran; delete it or choose another --out"):
        build([str(corpus)], tokenizer, out, HELD_OUT)
    assert [path.name for path in out.iterdir()] == ["theirs"] and unfinished.others(out.resolve(), "")


def test_changed_text_is_another_request(corpus: Path, tokenizer: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    text = tmp_path / "text.txt"
    text.write_bytes(corpus.read_bytes())
    with stopped("make", 10, KeyboardInterrupt()), pytest.raises(KeyboardInterrupt):
        build([str(text)], tokenizer, tmp_path / "out", HELD_OUT)
    text.write_bytes(corpus.read_bytes().replace(b"Ban", b"Bar", 1))
    capsys.readouterr()
    build([str(text)], tokenizer, tmp_path / "out", HELD_OUT)
    build([str(text)], tokenizer, tmp_path / "alone", HELD_OUT)
    assert "finished before" not in capsys.readouterr().err
    assert contents(tmp_path / "out") == contents(tmp_path / "alone")


def test_pieces_of_other_rules_are_not_used(corpus: Path, tokenizer: Path, tmp_path: Path, capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    """A later jaxenc may make other pieces of the same request; it raises RULES then."""
    with stopped("make", 10, KeyboardInterrupt()), pytest.raises(KeyboardInterrupt):
        build([str(corpus)], tokenizer, tmp_path / "out", HELD_OUT)
    monkeypatch.setattr(manifest, "RULES", manifest.RULES + 1)
    capsys.readouterr()
    with stopped("make", 1, KeyboardInterrupt()), pytest.raises(KeyboardInterrupt):
        build([str(corpus)], tokenizer, tmp_path / "out", HELD_OUT)
    said = capsys.readouterr().err
    assert "finished before" not in said and "an unfinished build of another request" in said


def test_a_second_builder_is_refused(corpus: Path, tokenizer: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"

    def again(*given: object) -> None:
        build([str(corpus)], tokenizer, out, HELD_OUT)

    with mock.patch.object(local, "run", again), pytest.raises(UserError, match="another process is writing here; wait for it"):
        build([str(corpus)], tokenizer, out, HELD_OUT)


def test_a_bad_line_far_in_the_text_keeps_what_is_finished(corpus: Path, tokenizer: Path, tmp_path: Path, capsys) -> None:
    real = File.documents

    def failing(file: File, *given: Any) -> Iterator[readers.Document]:
        for number, document in enumerate(real(file, *given)):
            if number == 100:
                raise UserError(f"{file.name}: cannot be read")
            yield document

    with mock.patch.object(File, "documents", failing), pytest.raises(UserError, match="cannot be read"):
        build([str(corpus)], tokenizer, tmp_path / "out", 0)
    assert "groups are finished and kept in" in capsys.readouterr().err


def test_a_shard_is_on_the_disk_before_it_is_recorded(corpus: Path, tokenizer: Path, tmp_path: Path) -> None:
    """A power cut loses pieces, and no shard that is said to be finished."""
    recorded = []
    with power.recorded() as disk:
        real = unfinished.write_bytes

        def progress(path: Path, content: bytes) -> None:
            shards = json.loads(content)["splits"].values()
            names = [name for split in shards for shard in split["shards"] for name in shard["files"]]
            flushed = [call[1:] for call in disk.calls if call[0] == "flush"]
            for part in (path.parent / "new" / name for name in names):
                assert (part.stat().st_ino, part.read_bytes()) in flushed, part
            assert path.parent.joinpath("new").stat().st_ino == flushed[-1][0], "the names of the shards"
            recorded.append(len(names))
            real(path, content)

        with mock.patch.object(unfinished, "write_bytes", progress):
            build([str(corpus)], tokenizer, tmp_path / "out", HELD_OUT)
    assert len(recorded) > 5 and max(recorded) > 20


@pytest.mark.slow
@pytest.mark.parametrize("number, code", [pytest.param(signal.SIGINT, 1, marks=pytest.mark.full), (signal.SIGTERM, 75)])
def test_an_interrupted_command_ends_and_says_where_it_goes_on(
    number: int, code: int, corpus: Path, tokenizer: Path, tmp_path: Path
) -> None:
    """Within ten seconds, with two workers, however long the text."""
    text = tmp_path / "text.txt"
    text.write_text((corpus.read_text() + "\n") * 200)
    arguments = ["--input", str(text), "--tokenizer", str(tokenizer), "--out", str(tmp_path / "out"), "--workers", "2"]
    command = [sys.executable, "-c", "import sys; from jaxenc.cli.main import main; sys.exit(main())", "data", *arguments]
    with Process(command, stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)}) as process:
        while process.poll() is None and not list(tmp_path.glob(".out.unfinished-*/pieces/*.held_out.npz")):
            time.sleep(0.01)
        process.send_signal(number)
        begun = time.monotonic()
        said = process.communicate(timeout=120)[1]
    assert process.returncode == code and time.monotonic() - begun < 10, said
    assert "finished and kept in" in said and "run it again" in said and not (tmp_path / "out").exists()
