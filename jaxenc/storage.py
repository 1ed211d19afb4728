"""Files at a URL (gs://, s3://, hf://, memory://, ...), through fsspec.

Nothing relies on more than that a single file appears complete or not at all: an object store promises no more. Only on a disk of this
machine (file://), which does not promise it, a file is written under another name and then renamed.
"""

import contextlib
import dataclasses
import re
import secrets
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Self, TypeVar

from jaxenc import listing
from jaxenc.errors import UserError
from jaxenc.files import inside, sha256, user_errors, written
from jaxenc.retries import ADVICE, FULL, reason, retried

if TYPE_CHECKING:  # fsspec is an extra
    from fsspec import AbstractFileSystem

T = TypeVar("T")
PACKAGES = {"gs": "gcsfs", "gcs": "gcsfs", "s3": "s3fs", "s3a": "s3fs", "hf": "huggingface_hub", "http": "aiohttp requests",
            "https": "aiohttp requests", "az": "adlfs", "abfs": "adlfs", "abfss": "adlfs"}  # fmt: skip
_DISK = {"file", "local"}  # where a process that is killed leaves half a file
THREADS = 16
# Advice where a URL is refused: by what writes to local disks only, by what reads from them only, and where a Path was made of a URL.
WRITE_HERE = "name a local path, and copy it to the URL when it is written"
READ_HERE = "copy it to this machine, and name the copy"
AS_TEXT = "write its two slashes; in Python give it as a str, for pathlib.Path drops one"
HERE = "free some space, or name another folder in JAXENC_CACHE"  # where the copy on this machine cannot be written


def is_url(name: object) -> bool:
    """Whether a name is a URL."""
    scheme, mark, _ = str(name).partition("://")
    return bool(mark) and re.sub("[-+:]", "", scheme).isalnum()  # fsspec joins the parts of a chained URL with ::


def below(location: str | Path, name: str) -> str:
    """The path or the URL of `name` in the folder at `location`, a path or a URL."""
    return f"{str(location).rstrip('/')}/{name}" if is_url(location) else str(Path(location, name))


def names(location: str | Path) -> list[str]:
    """The names of the files and folders in the folder at `location`, a path or a URL, in order; [] where there is none."""
    if is_url(location):
        return folder(str(location)).names()
    return sorted(path.name for path in Path(location).iterdir()) if Path(location).is_dir() else []


def must_be_local(path: str | Path, option: str, fix: str) -> None:
    """Raises UserError where `path` is a URL, or what pathlib makes of one (`gs:/bucket/run`): as a path it would be a folder `gs:` here.

    option: the option that gives `path`, for messages. fix: WRITE_HERE, READ_HERE or AS_TEXT.
    """
    if is_url(path) or re.match(r"[A-Za-z][A-Za-z0-9+-]+:/", str(path)):
        raise UserError("a URL, and only a local path works here", f"{option} {path}", fix)


@contextlib.contextmanager
def opened(url: str) -> Iterator[tuple["AbstractFileSystem", str]]:
    """(file system, path in it) of a URL; any exception in the block becomes a UserError. fsspec's chained URLs, such as
    simplecache::gs://BUCKET/a.txt, are refused: most of its file systems forget all but the first part."""
    scheme = url.partition("://")[0]
    if "::" in url:
        raise UserError("is a chained URL", url, "give its last part alone; archives and compressed files are read as they are")
    try:
        import fsspec

        yield fsspec.core.url_to_fs(url)
    except UserError:
        raise
    except FileNotFoundError as error:
        raise UserError("no such file", url, "check the address") from error
    except ImportError as error:
        packages = "'jaxenc[data]'" if error.name == "fsspec" else PACKAGES.get(scheme, f"what fsspec needs for {scheme} ({error})")
        raise UserError("needs a package that is not installed", url, f"install it with `pip install {packages}`") from error
    except ValueError as error:
        known = "use an address that fsspec knows, such as gs://, s3://, hf://, https://"
        raise UserError(f"cannot be opened ({error})", url, known) from error
    except Exception as error:  # each file system raises its own, for the network or permissions
        raise UserError(f"cannot be read ({reason(error)})", url, ADVICE) from error


def folder(url: str) -> "Folder":
    """The folder at a URL; sends no request. Raises UserError for an unknown file system, for one whose package is not installed, and for a
    URL that names no folder, or one in two ways: to an object store `.` and `..` are names like others."""
    parts = url.partition("://")[2].split("/")
    if not any(parts):
        raise UserError("names no folder", url, "add one, as in gs://BUCKET/FOLDER")
    if found := {".", ".."} & set(parts):
        raise UserError(f"has a part {found.pop()!r}", url, "write the address without it")
    with opened(url) as (system, path):
        return Folder(url.rstrip("/"), system, path.rstrip("/"))


@dataclasses.dataclass(frozen=True)
class Folder:
    """A folder at a URL. Names are relative to it, with '/'; names that would lead out of a local copy, such as `../a`, are ignored.

    Its methods repeat a request that fails for a temporary reason, and raise UserError as `retries.retried` does.
    """

    url: str
    system: "AbstractFileSystem"
    path: str

    def below(self, name: str) -> Self:
        """A folder in this one."""
        return dataclasses.replace(self, url=f"{self.url}/{name}", path=f"{self.path}/{name}")

    def names(self) -> list[str]:
        """The names of the files and folders in this one, [] where it does not exist."""
        with contextlib.suppress(FileNotFoundError):
            return self._retried("", "listed", lambda: self._listed(self._fresh().ls(self.path, detail=False)))
        return []

    def files(self) -> dict[str, int]:
        """{name: size in bytes} of all files below this folder, {} where it does not exist."""
        with contextlib.suppress(FileNotFoundError):
            found = self._retried("", "listed", lambda: list(listing.below(self._fresh(), self.path)))
            sizes = {path[len(self.path) + 1 :]: int(entry["size"]) for path, entry in found if path.startswith(f"{self.path}/")}
            return {name: size for name, size in sizes.items() if inside(name)}
        return {}

    def size(self, name: str) -> int | None:
        """The bytes of a file, None where a web server does not say. Raises FileNotFoundError where there is none."""
        found = self._retried(name, "read", lambda: self._fresh().info(f"{self.path}/{name}"))
        return found["size"]

    def must_be_writable(self, option: str) -> None:
        """Raises UserError where this process may not write, read or delete, before any work is done. option: gives the URL."""
        name = f".probe-{secrets.token_hex(4)}"  # of this process: another one may start at the same time
        self.write(name, b"jaxenc")
        if self.read(name) != b"jaxenc":
            raise UserError("what was written there reads back differently", self.url, f"choose another {option}")
        self.remove([name])

    def read(self, name: str) -> bytes:
        """The bytes of a file. Raises FileNotFoundError where there is none."""
        return self._retried(name, "read", lambda: self._fresh().cat_file(f"{self.path}/{name}"))

    def write(self, name: str, content: bytes) -> None:
        """Writes a small file, replacing one that exists."""
        self._writing(name, lambda path: self.system.pipe_file(path, content))

    def upload(self, local: Path, name: str) -> None:
        """Copies a local file to `name`, replacing one that exists."""
        self._writing(name, lambda path: self.system.put_file(str(local), path))

    def copy(self, name: str, to: str) -> None:
        """Copies a file within the file system; an object store does so without sending it to this machine."""
        self._writing(to, lambda path: self.system.cp_file(f"{self.path}/{name}", path))

    def download(self, name: str, local: Path) -> str:
        """Copies a file to `local`, and returns its sha256, as the function `download` does."""
        return download(f"{self.url}/{name}", self.system, f"{self.path}/{name}", local)

    def remove(self, names: Iterable[str]) -> None:
        """Deletes files; ignores those that do not exist. On a disk it also deletes the folders below this one that become empty."""
        names = list(names)

        def one(name: str) -> None:
            with contextlib.suppress(FileNotFoundError):
                self._retried(name, "deleted", lambda: self.system.rm_file(f"{self.path}/{name}"))

        many(one, names)
        if self.url.partition("://")[0] in _DISK:
            above = {folder for name in names for folder in PurePosixPath(name).parents if folder.name}
            for folder in sorted(above, key=lambda folder: -len(folder.parts)):
                with contextlib.suppress(OSError):  # where it is not empty
                    Path(self.path, folder).rmdir()

    def _fresh(self) -> "AbstractFileSystem":
        """The file system without its cache of listings: another process may have written since."""
        self.system.invalidate_cache()
        return self.system

    def _listed(self, paths: Iterable[str]) -> list[str]:
        names = {path.rstrip("/")[len(self.path) + 1 :] for path in paths if path.startswith(f"{self.path}/")}
        return sorted(name for name in names if inside(name))

    def _writing(self, name: str, call: Callable[[str], object]) -> None:
        """Calls `call` with the path of `name` to write to."""
        path, scheme = f"{self.path}/{name}", self.url.partition("://")[0]

        def write() -> None:
            with written(Path(path), durable=False) if scheme in _DISK else contextlib.nullcontext(path) as target:
                call(str(target))

        def in_folder() -> None:
            try:
                write()
            except FileNotFoundError:
                if listing.is_flat(self.system):
                    raise
                self.system.makedirs(path.rpartition("/")[0], exist_ok=True)
                write()

        try:
            self._retried(name, "written", in_folder)
        except FileNotFoundError as error:  # the bucket does not exist
            raise UserError(f"cannot be written ({reason(error)})", f"{self.url}/{name}", ADVICE) from error

    def _retried(self, name: str, what: str, call: Callable[[], T]) -> T:
        return retried(f"{self.url}/{name}" if name else self.url, what, call)


def download(url: str, system: "AbstractFileSystem", path: str, local: Path) -> str:
    """Copies the file at `url` to `local` in the cache folder, complete or not at all; returns the sha256 of its bytes.

    system, path: as `opened` gives them. A download that fails for a temporary reason starts again. Raises FileNotFoundError where there is
    no such file, and UserError as `retries.retried` does and, naming `local`, where that has no room.
    """

    def copied() -> str:
        with written(local, durable=False) as temporary:
            # As a whole: an open file would be read in ranges, which some web servers do not serve.
            system.get_file(path, str(temporary))
            return sha256(temporary)

    with user_errors(local, HERE):
        local.parent.mkdir(parents=True, exist_ok=True)
    try:
        return retried(url, "read", copied)
    except UserError as error:
        if getattr(error.__cause__, "errno", None) in FULL:  # which no reading brings
            raise UserError(reason(error.__cause__), local, HERE) from error
        raise


def many(act: Callable[[str], object], names: Iterable[str]) -> None:
    """Calls `act` for each name, up to THREADS at a time; raises the error of the first that failed."""
    with ThreadPoolExecutor(THREADS) as pool:
        for done in [pool.submit(act, name) for name in names]:
            done.result()
