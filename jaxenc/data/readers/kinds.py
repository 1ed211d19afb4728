"""What a file is, by its first bytes and its name."""

import os
import re

from jaxenc.errors import UserError
from jaxenc.files import POINTER

# Files without readable text: (first bytes, what such a file is, what to do).
_REFUSED = (
    (b"%PDF", "a PDF document", "take its text out first, for example with pdftotext"),
    (b"\x89PNG", "an image", "leave it out"),
    (b"\xff\xd8\xff", "an image", "leave it out"),
    (b"GIF8", "an image", "leave it out"),
    (b"\xd0\xcf\x11\xe0", "a document of Microsoft Office", "save it as plain text first"),
    (b"{\\rtf", "a document in rich text (RTF)", "save it as plain text first"),
    (b"%!PS", "a PostScript document", "take its text out first"),
    (b"\x7fELF", "a program", "leave it out"),
    (b"SQLite format 3\0", "a database (SQLite)", "export its text as .jsonl or .csv"),
    (b"\x89HDF", "an HDF5 file", "export its text as .jsonl"),
    (b"\x93NUMPY", "an array of NumPy", "export its text as .jsonl"),
    (b"Obj\x01", "an Avro file", "export it as Parquet"),
    (b"ORC", "an ORC file", "export it as Parquet"),
    (b"FEA1", "a Feather file of version 1", "write it again with pyarrow, or export it as Parquet"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive", "unpack it, or make a .zip or .tar of it"),
    (b"Rar!", "a RAR archive", "unpack it, or make a .zip or .tar of it"),
    (b"\x04\x22\x4d\x18", "compressed with LZ4", "unpack it, or compress it with gzip, xz, bzip2 or Zstandard"),
    (b"\x1f\x9d", "compressed with compress (.Z)", "unpack it, or compress it with gzip"),
    (POINTER, "a pointer of git-lfs and not the file itself", "get the file with `git lfs pull`"),
    (b"ID3", "a sound file", "leave it out"),
    (b"OggS", "a sound file", "leave it out"),
    (b"RIFF", "a sound, image or video file", "leave it out"),
)
_MARKUP = ((rb"(?i)<!doctype html|<html", "a web page (HTML)"), (rb"<\?xml|<!DOCTYPE", "XML"))
_BY_SUFFIX = {
    ".jsonl": "jsonl", ".json": "jsonl", ".ndjson": "jsonl", ".csv": "csv", ".tsv": "tsv", ".tab": "tsv", ".srt": "subtitles",
    ".vtt": "subtitles",
}  # fmt: skip
_TABLES = ((b"PAR1", "parquet"), (b"ARROW1\0\0", "arrow"))
# An Arrow stream starts with these bytes and the size of its schema in bytes.
_STREAM = b"\xff\xff\xff\xff"
_SCHEMA = 1 << 24
_TABLE_SUFFIXES = {".parquet": "parquet", ".arrow": "arrow", ".feather": "arrow"}


def table_kind(head: bytes, name: str, wanted: str) -> str:
    """`parquet` or `arrow` for such a file, "" for others. wanted: the format that was asked for.

    Raises UserError for a kind of file that holds no text, and for a file of another format than `wanted` or its name says.
    """
    kind = next((kind for first, kind in _TABLES if head.startswith(first)), "")
    if head.startswith(_STREAM) and 0 < int.from_bytes(head[4:8], "little") < _SCHEMA:
        kind = "arrow"
    if not kind and (found := next(((what, fix) for first, what, fix in _REFUSED if head.startswith(first)), None)):
        raise UserError(f"is {found[0]}", name, found[1])
    needed = wanted if wanted != "auto" else kind or _TABLE_SUFFIXES.get(os.path.splitext(name)[1].lower(), "")
    if kind != needed and (kind or needed in _TABLE_SUFFIXES.values()):
        says = "--format says" if wanted != "auto" else "its name says"
        raise UserError(f"{says} {needed}, but its content is {kind or 'not'}", name, "check which it is")
    return kind


def text_kind(head: bytes, name: str) -> str:
    """The reader for a text file: `text`, `jsonl`, `csv`, `tsv`, `subtitles`, `wikipedia`, `wikiextractor` or `wet`.

    head: its first bytes as UTF-8; name: without a suffix for compression. JSON is known by its first record too, whatever the name.
    Raises UserError for web pages and other XML.
    """
    start = head.lstrip()
    if re.match(rb"(<\?xml[^>]*>\s*)?<mediawiki\b", start):
        return "wikipedia"
    if re.match(rb'<doc id="[^"\n]*" (rev|url)', start):
        return "wikiextractor"
    if re.match(rb"WARC/1\.[01]\r?\n", start):
        return "wet"
    kind = _BY_SUFFIX.get(os.path.splitext(name)[1].lower(), "text")
    if kind == "text":
        if what := next((what for pattern, what in _MARKUP if re.match(pattern, start)), ""):
            raise UserError(f"is {what}", name, "take its text out first, or read the markup too with --format text")
        if start.startswith(b"WEBVTT"):
            return "subtitles"
        if re.match(rb'\[?\s*\{\s*"[^"\n]*"\s*:', start):
            return "jsonl"
    return kind
