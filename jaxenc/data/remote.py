"""Remote files (gs://, s3://, hf://, http://, ...), through fsspec: copied to a folder on this machine, with checksums."""

import dataclasses
import hashlib
import json
import sys
from pathlib import Path
from typing import Any

from jaxenc import cache, listing, storage
from jaxenc.errors import UserError
from jaxenc.files import read_json, sha256, write_bytes
from jaxenc.progress import Bars
from jaxenc.retries import retried, unless_missing

# Entries of fsspec's info() that change with a file's content; where a file system has none of them only sizes are compared.
_VERSIONS = ("ETag", "etag", "md5Hash", "Content-MD5", "checksum", "sha256", "blob_id", "generation", "LastModified", "last_modified",
             "Last-Modified", "mtime", "created", "updated")  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Staged:
    """A local copy. url: of the original; path: of the copy; size: in bytes; sha256: of its bytes."""

    url: str
    path: Path
    size: int
    sha256: str


def folder() -> Path:
    """Where copies are kept: inputs/ in `cache.root`."""
    return cache.root() / "inputs"


def local_copy(name: str | Path) -> Path:
    """The path of a file on this machine: `name` itself, or a copy of the file if it is a URL. Raises UserError as `staged`."""
    return staged(str(name), folder()).path if storage.is_url(name) else Path(name)


def found(url: str) -> list[str]:
    """The URLs of the files that `url` stands for, sorted: itself where it is a file, those that match it where it is a pattern, else those
    below it. Raises UserError if there are none."""
    marks = "*[" if url.startswith("http") else "*?["  # in a web URL a question mark starts the query
    with storage.opened(url) as (system, path):

        def listed() -> list[str]:
            system.invalidate_cache()
            if unless_missing(lambda: system.info(path)["type"], "") == "file":
                return [path]
            if any(mark in path for mark in marks):
                return listing.matching(system, path, marks)
            return [name for name, _ in listing.below(system, path)]

        paths = unless_missing(lambda: retried(url, "listed", listed), [])
        urls = sorted(system.unstrip_protocol(path) for path in paths)
    if not urls:
        raise UserError("no such file", url, "check the address")
    return urls


def staged(url: str, cache: Path) -> Staged:
    """A copy of one file in `cache`: the existing one if the source has not changed since, else a new one.

    The source has changed if its size differs, or what its file system says of the content (an ETag, a checksum, a time). A line on stderr
    reports that. An existing copy is checked against its sha256 first. Raises UserError for a source that is a folder, cannot be read or
    changes while it is copied, for a file system whose package is not installed, and for a full disk.
    """
    # Under its own name, which says what the file is.
    name = url.split("?")[0].rstrip("/").rsplit("/", 1)[-1].encode()[-100:].decode(errors="ignore") or "file"
    place = cache / hashlib.sha256(url.encode()).hexdigest()[:24]
    path, facts = place / name, place / "source.json"
    with storage.opened(url) as (system, remote):
        version = _version(url, system, remote)
        known = read_json(facts, "delete it") if facts.is_file() else {}
        if known and path.is_file():
            if known.get("version") == version and sha256(path) == known.get("sha256"):
                return Staged(url, path, path.stat().st_size, known["sha256"])
            print(f"{url}: has changed, or its copy has; it is copied again", file=sys.stderr)
        with Bars().shown(f"copying {url}"):
            digest = storage.download(url, system, remote, path)
        if _version(url, system, remote) != version:
            raise UserError("changed while it was copied", url, "start again when it is complete")
    write_bytes(facts, json.dumps({"url": url, "version": version, "sha256": digest}).encode())
    return Staged(url, path, path.stat().st_size, digest)


def _version(url: str, system: Any, path: str) -> dict[str, str]:
    """The entries of a file's `info` that say whether it has changed. Raises UserError for a folder."""
    system.invalidate_cache()
    info = retried(url, "read", lambda: system.info(path))
    if info["type"] == "directory":
        raise UserError("is a folder", url, "name a file in it")
    return {name: str(info[name]) for name in ("size", *_VERSIONS) if info.get(name) is not None}
