"""A data folder at a URL, copied to this machine once and compared with the checksums of its manifest."""

import hashlib
from pathlib import Path

from jaxenc import cache, storage
from jaxenc.data import manifest
from jaxenc.errors import UserError
from jaxenc.files import one_at_a_time, sha256, user_errors, write_bytes
from jaxenc.storage import Folder

# Marks a copy that is complete and verified.
COMPLETE = ".complete"
ADVICE = "copy it there or build the data again"


def facts(path: str | Path) -> Path:
    """The local folder with the manifest of the data folder `path`: itself, or for a URL its copy, which may still lack all other files.
    Raises UserError for a URL that cannot be read or is not a data folder."""
    return _begun(str(path))[0] if storage.is_url(path) else Path(path)


def staged(path: str | Path) -> Path:
    """The local folder with all files of the data folder `path`: itself, or for a URL its copy.

    The name of the copy holds a hash of the manifest, so data that changed at the URL is copied anew. One process of this machine makes the
    copy while the others wait; later runs use it again. Raises UserError as `facts`, and for a file that is missing at the URL or differs
    from the manifest.
    """
    if not storage.is_url(path):
        return Path(path)
    place, source = _begun(str(path))
    if (place / COMPLETE).exists():
        return place
    with one_at_a_time(place, storage.HERE):
        if not (place / COMPLETE).exists():
            _copy(source, place)
    return place


def _begun(url: str) -> tuple[Path, Folder]:
    """(the folder of the copy, which holds the manifest; the folder at the URL)."""
    source = storage.folder(url)
    try:
        content = source.read(manifest.NAME)
    except FileNotFoundError as error:
        raise UserError("no such file", f"{url}/{manifest.NAME}", "name a folder made by `jaxenc data`") from error
    place = cache.root() / "data" / f"{cache.key(url)}-{hashlib.sha256(content).hexdigest()[:16]}"
    with one_at_a_time(place, storage.HERE), user_errors(place, storage.HERE):
        if not (place / manifest.NAME).exists() or (place / manifest.NAME).read_bytes() != content:
            write_bytes(place / manifest.NAME, content)
    return place, source


def _copy(source: Folder, place: Path) -> None:
    files = manifest.read(place).files

    def one(name: str) -> None:
        path, wanted = place / name, files[name].sha256
        if path.is_file() and path.stat().st_size == files[name].size and sha256(path) == wanted:
            return
        try:
            found = source.download(name, path)
        except FileNotFoundError as error:
            raise UserError("missing", f"{source.url}/{name}", ADVICE) from error
        if found != wanted:
            path.unlink()
            raise UserError("its content changed since the manifest was written", f"{source.url}/{name}", ADVICE)

    with user_errors(place, storage.HERE):
        storage.many(one, files)
        write_bytes(place / COMPLETE, b"")
