"""Files are on the disk before they get their names, so a power cut after a rename loses nothing. Checked by calls of fsync and rename."""

import contextlib
import errno
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from jaxenc.checkpoint.manager import Manager
from jaxenc.checkpoint.retention import CheckpointConfig
from jaxenc.cli.main import main
from jaxenc.convert import hf
from jaxenc.data.build import build
from jaxenc.data.tokenizers import wordpiece
from jaxenc.files import flush, made, write_bytes
from jaxenc.inference import vectors
from jaxenc.training import prepare, record
from tests.checkpoint.conftest import make_state
from tests.convert import folders
from tests.faults import power
from tests.training.conftest import make_data
from tests.training.test_loop import recipe

TEXT = "the quick brown fox\n\njumps over the lazy dog\n\nand over the fox"


def names(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_a_step_is_on_the_disk_before_it_has_its_name(tmp_path: Path) -> None:
    """Every file that a run's checkpoint holds, Orbax's too, the folders, and after the rename the folder of the steps."""
    job = prepare.prepare(recipe(make_data(tmp_path / "made", 1)), tmp_path)
    directory = tmp_path / "checkpoints"
    with power.recorded() as disk, Manager(directory, CheckpointConfig(keep=1)) as manager:
        for step in (1, 2):
            manager.save(step, make_state(step), job.files)
    assert {"CHECKSUMS.json", "config.json", "manifest.json", "tokenizer/vocab.txt", "state/_METADATA"} < names(directory / "2")
    assert any(name.startswith("state/ocdbt.process_0/d/") for name in names(directory / "2"))
    disk.assert_durable(directory / "2")
    assert ("flush", tmp_path.stat().st_ino) in [call[:2] for call in disk.calls], "the name of the folder of the steps"


def _tokenizer(out: Path) -> list[Path]:
    wordpiece.train([TEXT] * 3, 60).save(out)
    return [out / name for name in names(out)]


def _command(out: Path) -> list[Path]:
    out.with_suffix(".txt").write_text(TEXT)
    assert main(["tokenizer", "--input", str(out.with_suffix(".txt")), "--vocab-size", "60", "--out", str(out)]) == 0
    return [out]


def _data(out: Path) -> list[Path]:
    out.with_suffix(".txt").write_text(TEXT)
    wordpiece.train([TEXT] * 3, 60).save(out.with_suffix(".tokenizer"))
    build([str(out.with_suffix(".txt"))], out.with_suffix(".tokenizer"), out, held_out=0.4)
    assert {"manifest.json", "train-00000.tokens", "train-00000.words", "train-00000.documents", "tokenizer/vocab.txt"} < names(out)
    return [out]


def _converted(out: Path) -> list[Path]:
    """A run directory of a published model, and its export."""
    theirs = folders.write(out.with_suffix(".theirs"), folders.tensors("BertModel"), folders.config("BertModel"))
    model = hf.load(theirs)
    model.save(out)
    hf.save(out.with_suffix(".export"), model)
    return [out, out.with_suffix(".export")]


def _embedded(out: Path) -> list[Path]:
    paths = [out.with_suffix(ending) for ending in (".npz", ".hdf5")]
    for path in paths:
        with vectors.writer(path) as add:
            add("a sentence", np.ones((3, 2, 4), np.float32))
    return paths


def _small(out: Path) -> list[Path]:
    write_bytes(out, b"old")
    write_bytes(out, b"new")
    return [out]


def _nested(out: Path) -> list[Path]:
    with made(out) as folder:
        (folder / "a" / "b").mkdir(parents=True)
        (folder / "a" / "b" / "file").write_bytes(b"1")
    return [out]


def _metrics(out: Path) -> list[Path]:
    out.mkdir()
    (out / record.METRICS).write_bytes(b'{"step": 1, "split": "train"}\n{"step": 2, "split": "train"}\n')
    (out / record.EXAMPLES).write_bytes(b"1\t0:3\n2\t0:4\n")
    record.cut(out, 1)
    return [out / record.METRICS, out / record.EXAMPLES]


@pytest.mark.parametrize("write", [_tokenizer, _command, _data, _converted, _embedded, _small, _nested, _metrics])
def test_what_a_command_writes_is_on_the_disk_before_it_has_its_name(write: Callable[[Path], list[Path]], tmp_path: Path) -> None:
    with power.recorded() as disk:
        paths = write(tmp_path / "out")
    for path in paths:
        disk.assert_durable(path)


def test_the_record_sees_what_is_left_out(tmp_path: Path) -> None:
    """A file that is not flushed, one that is written to after it, one that is flushed too late, and a folder that is not."""

    def attempt(*steps: Callable[[], object]) -> None:
        with contextlib.suppress(FileNotFoundError):
            (tmp_path / "out").unlink()
        with power.recorded() as disk:
            for step in steps:
                step()
        disk.assert_durable(tmp_path / "out")

    new, out = tmp_path / "new", tmp_path / "out"
    write, more, move = lambda: new.write_bytes(b"1"), lambda: new.write_bytes(b"2"), lambda: os.replace(new, out)
    first, late, folder = (lambda path=path: flush(path) for path in (new, out, tmp_path))
    attempt(write, first, move, folder)
    wrong = {
        "out was not on the disk before": [(write, move, folder), (write, first, more, move, folder), (write, move, late, folder)],
        "name .*out was not on the disk after": [(write, first, move), (write, first, folder, move)],
        "out was not moved": [(lambda: out.write_bytes(b"1"), late, folder)],
    }
    for said, orders in wrong.items():
        for order in orders:
            with pytest.raises(AssertionError, match=said):
                attempt(*order)


@pytest.mark.parametrize("call, code", [("fsync", errno.EINVAL), ("open", errno.EACCES), ("fsync", errno.EIO)])
def test_a_folder_that_cannot_be_flushed_is_left_and_a_failing_disk_is_an_error(
    call: str, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file system without the call for folders, a folder that may be written and not listed, a broken disk; a file always raises."""

    def failing(*arguments: object) -> None:
        raise OSError(code, os.strerror(code))

    (tmp_path / "file").write_bytes(b"1")
    monkeypatch.setattr(os, call, failing)
    with contextlib.nullcontext() if code != errno.EIO else pytest.raises(OSError, match="Input/output error"):
        flush(tmp_path)
    with pytest.raises(OSError, match=os.strerror(code)):
        flush(tmp_path / "file")


def test_a_write_that_fails_leaves_the_old_file_and_nothing_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_bytes(b"old")
    monkeypatch.setattr(os, "fsync", lambda number: (_ for _ in ()).throw(OSError(errno.ENOSPC, "No space left on device")))
    with pytest.raises(OSError, match="No space left"):
        write_bytes(tmp_path / "file", b"new")
    assert (tmp_path / "file").read_bytes() == b"old" and [path.name for path in tmp_path.iterdir()] == ["file"]
