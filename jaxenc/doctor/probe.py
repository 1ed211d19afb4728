"""A small file that every process writes: whether a folder, here or at a URL, takes files, and whether it is one folder for all."""

import dataclasses
import os
import secrets
from collections.abc import Callable
from pathlib import Path

import jax

from jaxenc import cache, storage
from jaxenc.errors import UserError
from jaxenc.files import write_bytes
from jaxenc.processes import barriers
from jaxenc.processes.visible import sees
from jaxenc.storage import is_url

NAME = ".jaxenc-doctor-"
# Seconds until a file that one host wrote must be visible to the others: some network file systems list a folder anew that late.
VISIBLE_WITHIN = 15


@dataclasses.dataclass(frozen=True)
class Probe:
    """Of one process. place: the folder, or where it does not exist yet the nearest above it that does; error: why it takes no file, '' if
    it does; seen: whether this process found what process 0 wrote; free: bytes of its disk, with a URL of that of the cache folder, -1
    where it is not known."""

    place: str
    error: str
    seen: bool
    free: int


def probe(name: str, folder: str, within: float, seconds: float) -> Probe:
    """Writes, renames, reads and deletes a file in `folder`, a path or a URL, in every process at once; makes no folder.

    name: of this probe, once in a run. within: seconds that a process looks for the file of process 0; seconds: that it waits for the
    others. An error of the file system is part of the answer.
    """
    place = _nearest(folder)
    token = barriers.from_primary(f"doctor {name} token", lambda: secrets.token_hex(8), seconds)
    own, shared = f"{NAME}{token}-{jax.process_index()}", f"{NAME}{token}-0"
    error = _failure(lambda: _write(place, own, token.encode()))
    try:
        errors = barriers.gathered(f"doctor {name} written", error, seconds)
        seen = not errors[0] and sees(lambda: _read(place, shared), token.encode(), within)
        barriers.gathered(f"doctor {name} seen", seen, seconds)  # all have looked
    finally:
        left = "" if error else _failure(lambda: _remove(place, own))
    return Probe(place, error or left, seen, _free(place))


def _nearest(folder: str) -> str:
    """`folder`, or where it does not exist yet the nearest above it that does; a URL as it is."""
    if is_url(folder):
        return folder
    path = Path(folder).absolute()
    # os.path.exists raises for no name, unlike Path.exists: one that cannot be looked at counts as missing.
    return str(next((place for place in (path, *path.parents) if os.path.exists(place)), path))


def _write(place: str, name: str, content: bytes) -> None:
    if is_url(place):
        storage.folder(place).write(name, content)
    else:
        write_bytes(Path(place, name), content)  # under another name, flushed and renamed, as checkpoints are
    if _read(place, name) != content:
        raise OSError("reads other bytes than were written")


def _read(place: str, name: str) -> bytes:
    return storage.folder(place).read(name) if is_url(place) else Path(place, name).read_bytes()


def _remove(place: str, name: str) -> None:
    if is_url(place):
        storage.folder(place).remove([name])
    else:
        Path(place, name).unlink()


def _free(place: str) -> int:
    """Bytes that this user may still write to the disk of a folder, with a URL to that of the cache folder; -1 where it is not known."""
    try:
        found = os.statvfs(_nearest(str(cache.root())) if is_url(place) else place)
    except (OSError, RuntimeError):  # RuntimeError: no home
        return -1
    return found.f_bavail * found.f_frsize


def _failure(act: Callable[[], object]) -> str:
    """Why `act` failed, '' where it did not."""
    try:
        act()
    except UserError as error:  # of a URL
        return f"{error.what}; {error.fix}"
    except OSError as error:
        return error.strerror or f"{type(error).__name__}: {error}"
    return ""
