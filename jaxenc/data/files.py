"""Reading and writing files so that a failure is one line and leaves nothing half-written."""

import contextlib
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from jaxenc.errors import UserError


@contextlib.contextmanager
def user_errors(where: str | Path, advice: str) -> Iterator[None]:
    """Turns an OSError (no permission, full disk, no such file) into one UserError: `where`: reason; `advice`."""
    try:
        yield
    except OSError as error:
        name = error.filename if isinstance(error.filename, str) else where
        raise UserError(f"{name}: {error.strerror or error}; {advice}") from error


def write_bytes(path: Path, content: bytes) -> None:
    """Replaces `path` by `content` in one move, so that a reader sees the old file or the new one."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_bytes(content)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def sha256(path: Path) -> str:
    """sha256 of a file's bytes, read in blocks."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
