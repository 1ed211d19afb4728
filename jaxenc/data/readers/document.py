"""What readers take and return: how inputs become documents, a document, and counts of what was changed."""

import codecs
import dataclasses
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping

from jaxenc.errors import UserError

LINE_BYTES = 1 << 16
DOCUMENT_CHARACTERS = 1 << 22
FORMATS = ("auto", "text", "jsonl", "csv", "tsv", "parquet", "arrow", "subtitles", "wikipedia")
DOCUMENTS = ("blank_line", "line")


@dataclasses.dataclass(frozen=True)
class Reading:
    """How inputs become documents.

    field: the column or the key that holds the text; dots lead into nested ones; "" is `text`, or `words` in JSON. A number is a column of
    a table without a header, counted from 1. document: in plain text, what ends a document: `blank_line`, or each `line` is one. format:
    `auto` decides by the first bytes and the name. encoding: of text, "" for UTF-8 or what a byte order mark says. tfds_dir: where
    tensorflow_datasets keeps prepared data, "" for its own default.
    """

    field: str = ""
    document: str = "blank_line"
    format: str = "auto"
    encoding: str = ""
    tfds_dir: str = ""

    def __post_init__(self) -> None:
        for option, value, known in (("--document", self.document, DOCUMENTS), ("--format", self.format, FORMATS)):
            if value not in known:
                raise UserError("not one of its values", f"{option} {value}", f"use {', '.join(known)}")
        try:
            codecs.getincrementaldecoder(self.encoding or "utf-8")
            "a".encode(self.encoding or "utf-8")  # refuses codecs that are not for text, such as base64
        except (LookupError, ValueError) as error:
            raise UserError("Python has no such encoding", f"--encoding {self.encoding}", "name one such as cp1252 or gb18030") from error

    def identity(self, content: str) -> str:
        """Identifies the documents of a source with the identity `content`: that itself, if all fields have their defaults."""
        rules = {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if getattr(self, f.name) != f.default}
        rules.pop("tfds_dir", None)  # where the data is stored does not change it
        return hashlib.sha256(json.dumps([content, rules], sort_keys=True).encode()).hexdigest() if rules else content


@dataclasses.dataclass(frozen=True)
class Document:
    """source: file and line (or row) where it starts; lines: its paragraphs, none of them blank."""

    source: str
    lines: tuple[str, ...]


# Those whose own names would say too little to a user.
NAMES = {
    "nul": "NUL characters removed",
    "invalid": "invalid sequences replaced by U+FFFD",
    "split_lines": "cuts in long lines",
    "split_documents": "cuts in long documents",
    "undivided_files": "files without a blank line",
}


@dataclasses.dataclass
class Counts:
    """What the readers changed in the input or left out; `inputs` and `documents` add to it while they run.

    nul: NUL characters removed. invalid: byte sequences that are not valid in the encoding, and lone surrogates of JSON, each read as
    U+FFFD. split_lines: cuts made in lines longer than LINE_BYTES, at white space where there is some. split_documents: cuts made in
    documents longer than DOCUMENT_CHARACTERS, between two lines: each part is a document of its own. empty_documents: documents without
    any text, dropped; a null is one. trailing_bytes: bytes after the end of compressed data. skipped_files: hidden ones, links, pipes and
    those whose name says that they hold no text; in folders, globs and archives. empty_files: in folders, globs and archives.
    repeated_files: files that were named before. skipped_pages: wiki pages that are redirects or not articles. undivided_files:
    plain-text files of several lines without a blank line, so that each is one document.
    """

    nul: int = 0
    invalid: int = 0
    split_lines: int = 0
    split_documents: int = 0
    empty_documents: int = 0
    trailing_bytes: int = 0
    skipped_files: int = 0
    empty_files: int = 0
    repeated_files: int = 0
    skipped_pages: int = 0
    undivided_files: int = 0

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(*(a + b for a, b in zip(dataclasses.astuple(self), dataclasses.astuple(other), strict=True)))


def described(counts: Mapping[str, int]) -> str:
    """What the readers changed or left out, in words: "skipped files 2, files without a blank line 1"; "" for nothing.

    counts: the fields of `Counts`, by name.
    """
    return ", ".join(f"{NAMES.get(name, name.replace('_', ' '))} {count:,}" for name, count in counts.items() if count)


def documents_of(text: str, where: str, counts: Counts) -> Iterable[Document]:
    r"""The document of one text, whose `\n` separate paragraphs; none where it is blank, several where it exceeds DOCUMENT_CHARACTERS.

    `\r\n` is a line end too, and so is a lone `\r` in a text without `\n`. Lone surrogates, which JSON and Python can write and UTF-8
    cannot, become U+FFFD.
    """
    if not text.isascii():
        text = _well_formed(text, counts)
    if "\0" in text:
        counts.nul += text.count("\0")
        text = text.replace("\0", "")
    if "\r" in text:
        text = text.replace("\r\n", "\n") if "\n" in text else text.replace("\r", "\n")
    lines = tuple([line for line in text.split("\n") if line and not line.isspace()])
    if not lines:
        counts.empty_documents += 1
        return ()
    if len(text) <= LINE_BYTES:
        return (Document(where, lines),)
    return bounded(where, (piece for line in lines for piece in _pieces(line, counts)), counts)


def bounded(where: str, lines: Iterable[str], counts: Counts) -> Iterator[Document]:
    """One document of the lines, or several where it would exceed DOCUMENT_CHARACTERS."""
    held: list[str] = []
    size = 0
    for line in lines:
        if held and size + len(line) > DOCUMENT_CHARACTERS:
            counts.split_documents += 1
            yield Document(where, tuple(held))
            held, size = [], 0
        held.append(line)
        size += len(line)
    if held:
        yield Document(where, tuple(held))


def _well_formed(text: str, counts: Counts) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        clean = "".join("\ufffd" if 0xD800 <= ord(c) < 0xE000 else c for c in text)
        counts.invalid += clean.count("\ufffd") - text.count("\ufffd")
        return clean
    return text


def _pieces(line: str, counts: Counts) -> Iterator[str]:
    """`line` in parts of at most LINE_BYTES characters, cut after the last blank of a part where there is one."""
    start = 0
    while len(line) - start > LINE_BYTES:
        cut = line.rfind(" ", start, start + LINE_BYTES) + 1 or start + LINE_BYTES
        counts.split_lines += 1
        yield line[start:cut]
        start = cut
    if line[start:].strip():
        yield line[start:]
