"""`jaxenc-test://`: an object store in a folder of this machine, named by JAXENC_TEST_BUCKET.

A file appears whole or not at all, nothing can be renamed, folders are parts of names. `Bucket.accident` is called before and after each
request with its kind (`get`, `put`, `rm`, `cp`, `ls`) and name, and may raise, or kill.
"""

import contextlib
import io
import os
import secrets
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fsspec
from fsspec.spec import AbstractFileSystem

SCHEME = "jaxenc-test"


class Status(OSError):
    """A request that a server refuses with a status, as gcsfs's HttpError."""

    def __init__(self, code: int) -> None:
        super().__init__(f"status {code}")
        self.code = code


class Bucket(AbstractFileSystem):
    """The file system; every instance shows the same files."""

    protocol = SCHEME
    cachable = False
    accident: Callable[[str, str, bool], None] = staticmethod(lambda kind, name, done: None)

    @classmethod
    def root(cls) -> Path:
        return Path(os.environ["JAXENC_TEST_BUCKET"])

    def _at(self, path: str) -> Path:
        return self.root() / self._strip_protocol(path).strip("/")

    def _file(self, path: str) -> Path:
        found = self._at(path)
        if not found.is_file():
            raise FileNotFoundError(path)
        return found

    def _seen(self, kind: str, path: str, act: Callable[[], Any]) -> Any:
        name = self._strip_protocol(path).strip("/")
        type(self).accident(kind, name, False)
        result = act()
        type(self).accident(kind, name, True)
        return result

    def _put(self, path: str, content: bytes) -> None:
        place = self._at(path)
        place.parent.mkdir(parents=True, exist_ok=True)
        hidden = self.root().with_name(f"{self.root().name}.uploads") / secrets.token_hex(8)
        hidden.parent.mkdir(exist_ok=True)
        hidden.write_bytes(content)
        os.replace(hidden, place)

    def _open(self, path: str, mode: str = "rb", **options: Any) -> io.BytesIO:
        assert mode == "rb", "an object store gets its files whole"
        return io.BytesIO(self.cat_file(path))

    def cat_file(self, path: str, start: None = None, end: None = None, **options: Any) -> bytes:
        return self._seen("get", path, lambda: self._file(path).read_bytes())

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **options: Any) -> None:
        self._seen("put", path, lambda: self._put(path, value))

    def put_file(self, lpath: str, rpath: str, *options: Any, **named: Any) -> None:
        self._seen("put", rpath, lambda: self._put(rpath, Path(lpath).read_bytes()))

    def cp_file(self, path1: str, path2: str, **options: Any) -> None:
        self._seen("cp", path1, lambda: self._put(path2, self._file(path1).read_bytes()))

    def rm_file(self, path: str) -> None:
        def remove() -> None:
            place = self._file(path)
            place.unlink()
            # Until a folder is not empty, or another thread was first.
            with contextlib.suppress(OSError):
                while (place := place.parent) != self.root():
                    place.rmdir()

        self._seen("rm", path, remove)

    def ls(self, path: str, detail: bool = True, **options: Any) -> list:
        def listed() -> list:
            place = self._at(path)
            if not place.exists():
                raise FileNotFoundError(path)
            entries = [place] if place.is_file() else sorted(place.iterdir())
            kind = lambda entry: "file" if entry.is_file() else "directory"
            name = lambda entry: entry.relative_to(self.root()).as_posix()
            found = [{"name": name(entry), "size": entry.stat().st_size, "type": kind(entry)} for entry in entries]
            return found if detail else [entry["name"] for entry in found]

        return self._seen("ls", path, listed)


def register(root: Path) -> str:
    """Makes the file system known to fsspec; returns the URL of its root."""
    root.mkdir(exist_ok=True)
    os.environ["JAXENC_TEST_BUCKET"] = str(root)
    fsspec.register_implementation(SCHEME, Bucket, clobber=True)
    return f"{SCHEME}://"


def at(url: str) -> Path:
    """Where the files of a URL lie on this machine."""
    return Bucket.root() / url.removeprefix(f"{SCHEME}://")


def copied(url: str, to: Path) -> Path:
    """A run directory with all that is at a URL."""
    return Path(shutil.copytree(at(url), to))


def cut_off(kinds: str, code: int, times: int) -> Callable[[str, str, bool], None]:
    """An accident: the first `times` requests of these kinds are refused with a status."""
    left = [times]

    def refuse(kind: str, name: str, done: bool) -> None:
        if kind in kinds.split() and not done and left[0]:
            left[0] -= 1
            raise Status(code)

    return refuse
