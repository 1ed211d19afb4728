"""The files below a folder at a URL, and those that match a pattern.

Where fsspec's own `find` and `glob` list one folder after another, they skip a folder that cannot be listed: after a request that failed
for a moment its files would seem not to exist.
"""

import contextlib
import math
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # fsspec is an extra
    from fsspec import AbstractFileSystem

_FLAT = {"gs", "gcs", "s3", "s3a", "az", "abfs", "abfss", "hf"}


def is_flat(system: "AbstractFileSystem") -> bool:
    """Whether it is an object store, in which folders are only parts of names: they need not be made, and `find` lists all names below one
    at once."""
    protocols = (system.protocol,) if isinstance(system.protocol, str) else system.protocol
    return not _FLAT.isdisjoint(protocols)


def below(system: "AbstractFileSystem", path: str, depth: float = math.inf) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """(path, its entry in fsspec's `ls`) of each file below the folder `path`, in any order. A file is below itself.

    depth: levels of folders to list, 1 for the files in `path` alone. A folder that is deleted meanwhile has no files. Raises
    FileNotFoundError where there is no `path`, and what `system` raises.
    """
    if depth == math.inf and is_flat(system):
        yield from system.find(path, detail=True).items()
        return
    for entry in system.ls(path, detail=True):
        if entry["type"] != "directory":
            yield entry["name"], entry
        elif depth > 1 and entry["name"].rstrip("/") != path.rstrip("/"):  # some file systems list the folder itself too
            with contextlib.suppress(FileNotFoundError):
                yield from below(system, entry["name"], depth - 1)


def matching(system: "AbstractFileSystem", pattern: str, marks: str) -> list[str]:
    """The paths of the files that match a pattern of fsspec (`*`, `?`, `[...]`, `**` for folders of any depth). marks: the characters that
    make it a pattern. Raises as `below` does for the folder before the first of them."""
    from fsspec.utils import glob_translate

    before = re.split(f"[{re.escape(marks)}]", pattern)[0]
    folder = before[: before.rfind("/") + 1]
    depth = math.inf if "**" in pattern else pattern.count("/", len(folder)) + 1
    accepted = re.compile(glob_translate(pattern))
    return [name for name, _ in below(system, folder, depth) if accepted.match(name.rstrip("/"))]
