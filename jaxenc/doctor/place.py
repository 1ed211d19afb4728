"""A small file in a folder of this machine or at a URL (gs://, s3://, ...): written, read, deleted."""

import contextlib
import os
from pathlib import Path
from typing import Any

from jaxenc import storage
from jaxenc.storage import is_url


def nearest(folder: str) -> str:
    """`folder`, or where it does not exist yet the nearest above it that does; a URL as it is."""
    if is_url(folder):
        return folder
    path = Path(folder).absolute()
    # os.path.exists raises for no name, unlike Path.exists: one that cannot be looked at counts as missing.
    return str(next((place for place in (path, *path.parents) if os.path.exists(place)), path))


def put(folder: str, name: str, content: bytes) -> None:
    """Writes a file, on a disk under another name first, and flushed, as checkpoints are. Raises what the file system does."""
    if is_url(folder):
        system, path = _opened(folder)
        system.pipe_file(f"{path}/{name}", content)
        return
    temporary = Path(folder, f"{name}.new")
    try:
        with open(temporary, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, Path(folder, name))
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()


def taken(folder: str, name: str) -> bytes:
    """The bytes of a file. Raises what the file system does."""
    if is_url(folder):
        system, path = _opened(folder)
        system.invalidate_cache()
        return system.cat_file(f"{path}/{name}")
    return Path(folder, name).read_bytes()


def remove(folder: str, name: str) -> None:
    """Deletes a file. Raises what the file system does."""
    if is_url(folder):
        system, path = _opened(folder)
        system.rm_file(f"{path}/{name}")
        return
    Path(folder, name).unlink()


def free(folder: str) -> int:
    """Bytes that this user may still write to the disk of a folder, -1 where that cannot be known."""
    try:
        found = os.statvfs(folder)
    except OSError:
        return -1
    return found.f_bavail * found.f_frsize


def _opened(url: str) -> tuple[Any, str]:
    folder = storage.folder(url)
    return folder.system, folder.path
