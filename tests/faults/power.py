"""What a process flushed to the disk and when, for tests of what survives a power cut."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock


class Disk:
    """The calls of fsync and rename, in their order.

    A flush is kept as the inode, which a rename does not change, and what the file or folder held at that moment: its bytes, its names.
    """

    def __init__(self) -> None:
        self.calls: list[tuple[str, Any, Any]] = []

    def assert_durable(self, path: Path) -> None:
        """Asserts that `path`, a file or a folder, got its name by a rename; that it and everything below it were flushed before, with the
        content they have now; and that the folder that holds its name was flushed after."""
        moved = [number for number, call in enumerate(self.calls) if call[:2] == ("move", path.absolute())]
        assert moved, f"{path} was not moved into place"
        before, after = self.calls[: moved[-1]], self.calls[moved[-1] :]
        for part in [path, *(path.rglob("*") if path.is_dir() else ())]:
            assert ("flush", part.stat().st_ino, _held(part)) in before, f"{part} was not on the disk before the move"
        assert ("flush", path.parent.stat().st_ino) in [call[:2] for call in after], f"the name {path} was not on the disk after the move"


def _held(path: Path | int) -> Any:
    """The bytes of a file, or the names in a folder and the inodes that they stand for."""
    if os.path.isdir(path):
        with os.scandir(path) as found:
            return sorted((entry.name, entry.inode()) for entry in found)
    with open(path if isinstance(path, Path) else f"/proc/self/fd/{path}", "rb") as file:
        return file.read()


@contextmanager
def recorded() -> Iterator[Disk]:
    """The Disk of the block. Linux only: an open file is read again by its number."""
    disk, real = Disk(), {name: getattr(os, name) for name in ("fsync", "replace", "rename")}

    def fsync(number: int) -> None:
        real["fsync"](number)
        disk.calls.append(("flush", os.fstat(number).st_ino, _held(number)))

    def moving(name: str) -> Any:
        def move(source: Any, target: Any) -> None:
            real[name](source, target)
            disk.calls.append(("move", Path(target).absolute(), Path(source).absolute()))

        return move

    with mock.patch.multiple(os, fsync=fsync, replace=moving("replace"), rename=moving("rename")):
        yield disk
