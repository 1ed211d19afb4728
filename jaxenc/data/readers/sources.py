"""Where text comes from: a file, the embedded corpus, a split of tensorflow_datasets. Each can be pickled and opened in another process."""

import dataclasses
import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from jaxenc.data import docstrings
from jaxenc.data.readers import (
    archives,
    columns,
    compressed,
    encoding,
    json_lines,
    kinds,
    subtitles,
    tables,
    text,
    tfds,
    web_text,
    wikipedia,
)
from jaxenc.data.readers.document import Counts, Document, Reading
from jaxenc.data.readers.progress import Progress
from jaxenc.data.readers.streams import HEAD, seekable
from jaxenc.errors import UserError
from jaxenc.files import sha256, user_errors

READABLE = "check that the file can be read"


class Source(Protocol):
    """name: as messages write it; size: in bytes, 0 where it is unknown."""

    name: str
    size: int

    def identity(self) -> str:
        """sha256 of the content, or of what identifies it."""

    def version(self) -> str:
        """What tells at once that the content may have changed since."""

    def documents(self, reading: Reading, counts: Counts, progress: Progress) -> Iterator[Document]:
        """Its documents in order, in bounded memory. Raises UserError."""


@dataclasses.dataclass(frozen=True)
class File:
    """A file on this machine. path: where to open it; of a copy, `name` is the original."""

    name: str
    size: int
    path: str

    def identity(self) -> str:
        """sha256 of its bytes."""
        with user_errors(self.name, READABLE):
            return sha256(Path(self.path))

    def version(self) -> str:
        """Its size and the time of its last write."""
        with user_errors(self.name, READABLE):
            facts = os.stat(self.path)
        return f"{facts.st_size} {facts.st_mtime_ns}"

    def documents(self, reading: Reading, counts: Counts, progress: Progress) -> Iterator[Document]:
        """The documents of the file, or of each file in an archive in the order of their names."""
        with user_errors(self.name, READABLE), open(self.path, "rb", buffering=HEAD) as file:
            progress.begins(file.raw.tell)
            yield from _documents(self.name, file, reading, counts)
        progress.ends(self.size)


@dataclasses.dataclass(frozen=True)
class Docstrings:
    """The embedded corpus."""

    name: str = docstrings.NAME
    size: int = 0

    def identity(self) -> str:
        """As `docstrings.identity`."""
        return docstrings.identity()

    def version(self) -> str:
        """Always the same: a running Python keeps its modules."""
        return ""

    def documents(self, reading: Reading, counts: Counts, progress: Progress) -> Iterator[Document]:
        """A document for each module."""
        return (Document(source, lines) for source, lines in docstrings.modules())


@dataclasses.dataclass(frozen=True)
class TfdsSplit:
    """A split of a dataset that tensorflow_datasets prepared. name: tfds:NAME[/CONFIG][:VERSION][:SPLIT]."""

    name: str
    size: int
    folder: str

    def identity(self) -> str:
        """sha256 of the dataset's full name and version, the split, and the names and sizes of its files."""
        return tfds.identity(self.name, self.folder)

    def version(self) -> str:
        """Its identity, which reads no content."""
        return self.identity()

    def documents(self, reading: Reading, counts: Counts, progress: Progress) -> Iterator[Document]:
        """A document for each example."""
        yield from tfds.documents(self.name, self.folder, reading, counts)
        progress.ends(self.size)


def _documents(name: str, file: io.BufferedReader, reading: Reading, counts: Counts, depth: int = 0) -> Iterator[Document]:
    """The documents of an open file. Its first bytes decide what it is, and then its name."""
    where, (file, name) = name, compressed.unpacked(file, name, counts)
    head = file.peek(HEAD)[:HEAD]
    if archives.is_archive(head):
        if depth == compressed.DEEPEST:
            raise UserError(f"archives are nested more than {depth} deep", where, "unpack them first")
        with archives.archive_errors(where):
            for member, part in archives.members(file, where, counts):
                yield from _documents(member, part, reading, counts, depth + 1)
    elif kind := kinds.table_kind(head, name, reading.format):
        with seekable(file, where) as whole:
            yield from columns.documents(where, whole, reading, counts, kind)
    else:
        yield from _text_documents(where, name, encoding.utf8(file, where, reading.encoding, counts), reading, counts)


def _text_documents(where: str, name: str, file: io.BufferedReader, reading: Reading, counts: Counts) -> Iterator[Document]:
    """where: as messages name the file; name: without a suffix for compression."""
    head = file.peek(HEAD)[:HEAD]
    kind = reading.format if reading.format != "auto" else kinds.text_kind(head, name)
    if kind == "jsonl":
        yield from json_lines.documents(where, file, reading, counts)
    elif kind in ("csv", "tsv"):
        yield from tables.documents(where, file, reading, counts, "," if kind == "csv" else "\t")
    elif reading.field:
        advice = "leave out --field, name only what has one ('FOLDER/*.jsonl'), or say what it is with --format"
        raise UserError(f"is read as {kind}, which has no field {reading.field}", where, advice)
    elif kind == "subtitles":
        yield from subtitles.documents(where, file, counts)
    elif kind == "wikipedia":
        yield from wikipedia.documents(where, file, counts)
    elif kind == "wet":
        yield from web_text.documents(where, file, counts)
    elif kind == "wikiextractor":
        yield from wikipedia.extracted(where, file, counts)
    else:
        yield from text.documents(where, file, reading, counts)
