"""The files below a folder at a URL, and those that match a pattern.

fsspec's own `find` and `glob` pass over a folder that cannot be listed where they list one folder after another, so that a request that
fails for a moment looks like files that are not there.
"""

import contextlib
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # fsspec is an extra
    from fsspec import AbstractFileSystem

# Object stores, in which folders are only parts of names: they need not be made, and `find` lists all names below one at once.
FLAT = {"gs", "gcs", "s3", "s3a", "az", "abfs", "abfss", "hf"}


def below(url: str, system: "AbstractFileSystem", path: str, depth: int = 0) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """(path, facts as of fsspec's `ls`) of each file below the folder `path`, in any order. A file is below itself.

    url: any on `system`. depth: folders to go down, 1 for the files in `path` alone, 0 for all. A folder in it that is deleted meanwhile
    has no files. Raises FileNotFoundError where there is no `path`, and what `system` raises.
    """
    if not depth and url.partition("://")[0] in FLAT:
        yield from system.find(path, detail=True).items()
        return
    for entry in system.ls(path, detail=True):
        name = entry["name"].rstrip("/")
        if entry["type"] != "directory":
            yield entry["name"], entry
        elif depth != 1 and name != path.rstrip("/"):
            with contextlib.suppress(FileNotFoundError):
                yield from below(url, system, entry["name"], depth - 1 if depth else 0)


def matching(url: str, system: "AbstractFileSystem", pattern: str, marks: str) -> list[str]:
    """The paths of the files that match a pattern of fsspec (`*`, `?`, `[...]`, `**` for folders of any depth). marks: of these characters
    those that make a pattern. Raises as `below` does for the folder before the first of them."""
    from fsspec.utils import glob_translate

    before = re.split(f"[{re.escape(marks)}]", pattern)[0]
    folder = before[: before.rfind("/") + 1]
    depth = 0 if "**" in pattern else pattern.count("/", len(folder)) + 1
    accepted = re.compile(glob_translate(pattern))
    return [name for name, _ in below(url, system, folder, depth) if accepted.match(name.rstrip("/"))]
