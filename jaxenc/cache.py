"""The cache folder, for copies of what is at URLs."""

import contextlib
import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from jaxenc import storage
from jaxenc.errors import UserError
from jaxenc.files import one_at_a_time


def of_user(environment: Mapping[str, str]) -> Path:
    """jaxenc/ in the user's cache folder (XDG_CACHE_HOME, ~/.cache). Raises RuntimeError for a user without a home."""
    return Path(environment.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "jaxenc"


def root() -> Path:
    """The folder for copies of what is at URLs: JAXENC_CACHE, else `of_user`."""
    own = os.environ.get("JAXENC_CACHE")
    return (Path(own) if own else of_user(os.environ)).absolute()


def key(url: str) -> str:
    """The name of a copy of `url` in the cache folder; the same with and without a trailing slash."""
    name = re.sub(r"[^\w.-]", "_", url.rstrip("/").rpartition("/")[2])[-60:]
    return f"{name}-{hashlib.sha256(url.rstrip('/').encode()).hexdigest()[:16]}"


@contextlib.contextmanager
def at_hand(location: str | Path, names: Iterable[str]) -> Iterator[Path]:
    """A folder on this machine with those of the files `names` that exist at `location`, a path or a URL: `location` itself, or for a URL a
    folder of fresh copies, which no other process replaces during the block. An error in the block names the URL."""
    if not storage.is_url(location):
        yield Path(location)
        return
    source, copies = storage.folder(str(location)), root() / "copies" / key(str(location))
    with one_at_a_time(copies, storage.HERE):
        for name in names:
            (copies / name).unlink(missing_ok=True)
            with contextlib.suppress(FileNotFoundError):
                source.download(name, copies / name)
        try:
            yield copies
        except UserError as error:
            raise error.renamed(str(copies), source.url) from error
