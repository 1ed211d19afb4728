"""A small file that one process writes and the others look for: whether a folder takes files, and whether it is one folder for all."""

import dataclasses
import secrets
import time
from collections.abc import Callable

import jax

from jaxenc.doctor import place as places
from jaxenc.errors import UserError
from jaxenc.processes import barriers

NAME = ".jaxenc-doctor-"
# Seconds until a file that one host wrote must be visible to the others: some network file systems list a folder anew that late.
VISIBLE_WITHIN = 15


@dataclasses.dataclass(frozen=True)
class Probe:
    """Of one process. place: the folder, or where it does not exist yet the nearest above it that does; error: why it takes no file, '' if
    it does; seen: whether this process found what process 0 wrote; free: bytes of the disk, -1 where it cannot be known."""

    place: str
    error: str
    seen: bool
    free: int


def probe(name: str, folder: str, within: float, seconds: float) -> Probe:
    """Writes, renames, reads and deletes a file in `folder`, a path or a URL, in every process at once; makes no folder.

    name: of this probe, once in a run. within: seconds that a process looks for the file of process 0; seconds: that it waits for the
    others. An error of the file system is part of the answer.
    """
    place = places.nearest(folder)
    word = barriers.from_primary(f"doctor {name} word", lambda: secrets.token_hex(8), seconds)
    own, shared = f"{NAME}{word}-{jax.process_index()}", f"{NAME}{word}-0"
    error = _failure(place, lambda: _write(place, own, word.encode()))
    try:
        errors = barriers.gathered(f"doctor {name} written", error, seconds)
        seen = not errors[0] and _sees(place, shared, word.encode(), within)
        barriers.gathered(f"doctor {name} seen", seen, seconds)  # all have looked
    finally:
        left = "" if error else _failure(place, lambda: places.remove(place, own))
    return Probe(place, error or left, seen, places.free(place))


def _write(place: str, name: str, content: bytes) -> None:
    places.put(place, name, content)
    if places.taken(place, name) != content:
        raise OSError("reads other bytes than were written")


def _failure(place: str, act: Callable[[], object]) -> str:
    """Why `act` failed there, '' where it did not."""
    try:
        act()
    except UserError as error:  # of an address that is none, or whose package is missing
        return f"{error.what}; {error.fix}"
    except Exception as error:  # each file system of fsspec raises its own
        return getattr(error, "strerror", "") or f"{type(error).__name__}: {error}".partition("\n")[0]
    return ""


def _sees(place: str, name: str, content: bytes, within: float) -> bool:
    """Whether a file is there, with this content, within so many seconds."""
    end = time.monotonic() + within
    while True:
        try:
            if places.taken(place, name) == content:
                return True
        except Exception:  # it is not there yet, or cannot be read
            pass
        if time.monotonic() >= end:
            return False
        time.sleep(min(0.1, within))
