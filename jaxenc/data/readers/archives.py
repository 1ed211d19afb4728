"""The files in an archive, .zip or .tar, in the order of their names."""

import contextlib
import io
import lzma
import os
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from typing import IO

from jaxenc.data.readers.document import Counts
from jaxenc.data.readers.streams import HEAD, seekable
from jaxenc.errors import UserError

# Suffixes of files without readable text: they are skipped in folders, globs and archives.
NOT_TEXT = frozenset(
    "png jpg jpeg gif bmp tif tiff webp ico svg heic psd mp3 wav flac ogg m4a aac mp4 mkv avi mov webm wmv ttf otf woff woff2 eot pdf doc"
    " docx xls xlsx ppt pptx odt ods odp epub mobi exe dll so dylib a o obj pyc pyo class jar whl bin iso img dmg deb rpm pkl pickle npy"
    " npz pt pth ckpt safetensors h5 hdf5 onnx model sqlite db lock idx md5 sha1 sha256 crc".split()
)
_DESKTOP = ("thumbs.db", "desktop.ini")
_OFFICE = {"[Content_Types].xml": "a document of Microsoft Office", "mimetype": "a document of OpenOffice or an e-book"}


def is_hidden(name: str) -> bool:
    """Whether a path in a folder or an archive is hidden, is in a hidden folder, or is a file of the desktop (Thumbs.db)."""
    parts = name.replace("\\", "/").split("/")
    return any((part.startswith(".") and part not in (".", "..")) or part == "__MACOSX" for part in parts) or parts[-1].lower() in _DESKTOP


def is_skipped(name: str) -> bool:
    """Whether a path in a folder or an archive is hidden, or says by its suffix that it holds no text."""
    return is_hidden(name) or os.path.splitext(name)[1][1:].lower() in NOT_TEXT


def is_archive(head: bytes) -> bool:
    """Whether the first 512 bytes of a file are those of a .zip or a .tar."""
    return head.startswith((b"PK\3\4", b"PK\5\6")) or head[257:262] == b"ustar"


def members(file: IO[bytes], name: str, counts: Counts) -> Iterator[tuple[str, io.BufferedReader]]:
    """(name, file) of each member that may hold text. Read each file before asking for the next, all within `archive_errors`.

    Members for which `is_skipped` is true are skipped and counted, and so are links, devices and empty files. An archive that is not
    seekable is copied first (`seekable`). Raises UserError for encrypted archives and office documents.
    """
    with seekable(file, name) as whole:
        yield from _zip(whole, name, counts) if whole.read(2) == b"PK" else _tar(whole, name, counts)


@contextlib.contextmanager
def archive_errors(name: str) -> Iterator[None]:
    """Raises UserError for a damaged archive, also while a member is read."""
    try:
        yield
    except (zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, struct.error, EOFError, NotImplementedError) as error:
        raise UserError(f"the archive is damaged ({error})", name, "make it again") from error


def _zip(file: IO[bytes], name: str, counts: Counts) -> Iterator[tuple[str, io.BufferedReader]]:
    with zipfile.ZipFile(file) as archive:
        # Not is_dir(), which fails for the empty name that a damaged member may have.
        found = sorted((member for member in archive.infolist() if not member.filename.endswith("/")), key=lambda member: member.filename)
        office = next((what for member, what in _OFFICE.items() if any(f.filename == member for f in found)), "")
        if office:
            raise UserError(f"is {office}, not text", name, "save it as plain text first")
        for member in found:
            if not _kept(member.filename, member.file_size, counts):
                continue
            if member.flag_bits & 1:
                raise UserError("is encrypted", f"{name}/{member.filename}", "unpack the archive first")
            with archive.open(member) as part:
                yield f"{name}/{member.filename}", io.BufferedReader(part, HEAD)


def _tar(file: IO[bytes], name: str, counts: Counts) -> Iterator[tuple[str, io.BufferedReader]]:
    file.seek(0)
    with tarfile.open(fileobj=file, mode="r:") as archive:
        for member in sorted(archive, key=lambda member: member.name):
            if member.isfile() and _kept(member.name, member.size, counts):
                with archive.extractfile(member) as part:
                    yield f"{name}/{member.name}", io.BufferedReader(part, HEAD)
            counts.skipped_files += not (member.isfile() or member.isdir())


def _kept(name: str, size: int, counts: Counts) -> bool:
    if is_skipped(name):
        counts.skipped_files += 1
        return False
    counts.empty_files += not size
    return bool(size)
