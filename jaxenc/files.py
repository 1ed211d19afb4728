"""Reading and writing files: a failure is one line and leaves nothing half-written, and a power cut loses nothing."""

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import shutil
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from jaxenc.errors import UserError

LONGEST_NAME = 255  # bytes, of one part of a path
POINTER = b"version https://git-lfs"  # first bytes of what git-lfs leaves in the place of a large file


@contextlib.contextmanager
def user_errors(where: str | Path, advice: str) -> Iterator[None]:
    """Turns an OSError (no permission, full disk, no such file) into one UserError: `where`: reason; `advice`."""
    try:
        yield
    except OSError as error:
        name = error.filename if isinstance(error.filename, str) else where
        raise UserError(f"{error.strerror or error}", name, advice) from error


@contextlib.contextmanager
def written(path: Path, durable: bool = True) -> Iterator[Path]:
    """A temporary name next to `path` to write to. The file replaces `path` in one move when the block succeeds; otherwise it is removed.

    durable: the content is on the disk before the move and the name after it, so that a power cut leaves the old file or the new one,
    whole. Without it that holds for a killed process only: for files that are checked when they are read, and can be made again.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        yield temporary
        if durable:
            flush(temporary)
        os.replace(temporary, path)
        if durable:
            flush(path.parent)
    except OSError as error:
        _rename(error, temporary, path)
        raise
    finally:
        with contextlib.suppress(OSError):  # it could not be made, or the disk refuses: the error above says so
            temporary.unlink()


def _rename(error: OSError, hidden: Path, shown: Path) -> None:
    """Replaces `hidden` in the file name of `error` by `shown`, which the user knows."""
    if isinstance(error.filename, str) and Path(error.filename).is_relative_to(hidden):
        error.filename = str(shown / Path(error.filename).relative_to(hidden))


def write_bytes(path: Path, content: bytes) -> None:
    """Replaces `path` by `content`, so that a reader sees the old file or the new one."""
    with written(path) as temporary:
        temporary.write_bytes(content)


def flush(path: Path) -> None:
    """Returns once the bytes of a file, or the names in a folder, are on the disk and survive a power cut. Raises OSError.

    Does nothing for a folder that may not be listed, and on a file system that cannot flush folders.
    """
    try:
        number = os.open(path, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EINVAL) or not path.is_dir():
            raise


def flush_all(folder: Path) -> None:
    """`flush` of every file below `folder`, then of every folder below it and of itself."""
    below = list(folder.rglob("*"))
    for path in [*(path for path in below if path.is_file()), *(path for path in below if path.is_dir()), folder]:
        flush(path)


def read_lines(path: Path, advice: str) -> list[str]:
    r"""The lines of a UTF-8 file without their ends, \n or \r\n; the last one may go without. An empty file has one, which is empty.

    Raises UserError `path`: what is wrong; `advice` when it cannot be read, with the number of the line that is not UTF-8.
    """
    with user_errors(path, advice):
        content = path.read_bytes()
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UserError("not UTF-8", f"{path}:{content[: error.start].count(10) + 1}", advice) from error
    return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]


def json_object(content: bytes) -> dict[str, Any]:
    """The JSON object in `content`; ValueError, which says what is there instead, when it is none."""
    try:
        data = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not JSON ({error})") from error
    if not isinstance(data, dict):
        raise ValueError("holds no JSON object")
    return data


def read_json(path: Path, advice: str) -> dict[str, Any]:
    """The JSON object in a file. Raises UserError `path`: what is wrong; `advice` when it cannot be read or holds none."""
    with user_errors(path, advice):
        content = path.read_bytes()
    try:
        return json_object(content)
    except ValueError as error:
        raise UserError(error, path, advice) from error


def inside(name: str) -> bool:
    """Whether a name that a file gave, joined with a folder, stays inside it and is one that a file system can hold."""
    parts = name.split("/")
    return name.isprintable() and all(part not in ("", ".", "..") and len(part.encode()) <= LONGEST_NAME for part in parts)


@contextlib.contextmanager
def npz(path: Path) -> Iterator[Callable[[str, np.ndarray | str], None]]:
    """What adds one array after another, by name, to a new .npz file, which np.load reads; a text is an array without axes. Its bytes do
    not depend on the time."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as file:

        def store(name: str, value: np.ndarray | str) -> None:
            with file.open(f"{name}.npy", "w", force_zip64=True) as part:
                np.lib.format.write_array(part, np.asarray(value))

        yield store


def mapped(path: Path) -> np.ndarray:
    """The array of a .npy file, memory-mapped, read only. OSError for a file that cannot be opened, ValueError for a damaged one, over
    whose header NumPy raises nearly anything."""
    try:
        return np.lib.format.open_memmap(path, "r")
    except OSError:
        raise
    except Exception as error:
        raise ValueError(f"no array of NumPy ({error})") from error


@contextlib.contextmanager
def locked(folder: Path, advice: str) -> Iterator[None]:
    """Locks `folder`, made where it is missing, against other processes during the block; an empty folder is removed at the end.

    The system releases the lock when the process dies, however it dies. A file system without locks locks nothing. Raises UserError, with
    `advice`, when another process has the lock.
    """
    number = _lock(folder, advice)
    try:
        yield
    finally:
        # Before the lock is released: the next process then finds a folder, or makes its own.
        with contextlib.suppress(OSError):
            folder.rmdir()
        os.close(number)


def _lock(folder: Path, advice: str) -> int:
    """The number of `folder`, open and locked, as `locked` says. Raises UserError as `locked`, and then leaves the folder as it is."""
    while True:
        with user_errors(folder, "choose another place"):
            folder.mkdir(parents=True, exist_ok=True)
            number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(number)
            raise UserError("another process is writing here", folder, advice) from error
        except OSError:
            return number
        # Who held it may have removed it, empty, between our opening and our lock.
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(number), folder.stat()):
                return number
        os.close(number)


@contextlib.contextmanager
def one_at_a_time(folder: Path, advice: str) -> Iterator[None]:
    """`folder`, made where it is missing, for one process of this machine after another: waits for those that came before.

    Raises UserError, with `advice`, where it cannot be made."""
    with user_errors(folder, advice):
        folder.mkdir(parents=True, exist_ok=True)
        number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(number, fcntl.LOCK_EX)
        yield
    finally:
        os.close(number)


@contextlib.contextmanager
def made(out: Path) -> Iterator[Path]:
    """A new folder to fill. When the block succeeds it is flushed to the disk and becomes `out`; otherwise it is removed.

    Removes what a killed process left next to `out`. Raises UserError for a disk that refuses, and while another process makes `out`.
    """
    out = out.resolve()
    place = out.with_name(f".{out.name}.partial")
    try:
        with locked(place, "wait for it, or choose another folder"):
            shutil.rmtree(place / "new", ignore_errors=True)
            try:
                with user_errors(out, "free some space or choose another folder"):
                    (place / "new").mkdir()
                    yield place / "new"
                    flush_all(place / "new")
                    os.replace(place / "new", out)
                    flush(out.parent)
            finally:
                shutil.rmtree(place / "new", ignore_errors=True)
    except UserError as error:
        if str(place) not in str(error):
            raise
        raise error.renamed(place / "new", out).renamed(place, out) from error


def sha256(path: Path) -> str:
    """sha256 of a file's bytes, read in blocks."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
