"""Documents out of files: plain text, JSON lines, compressed or not, and the embedded corpus; in bounded memory."""

import dataclasses
import gzip
import itertools
import json
import lzma
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO

from jaxenc.data import docstrings
from jaxenc.errors import UserError
from jaxenc.files import user_errors

LINE_BYTES = 1 << 16
JSON_BYTES = 1 << 28  # of one line of JSON: a small compressed file may hold a line without end
DOCUMENT_CHARACTERS = 1 << 22

_OPENERS = {".gz": gzip.open, ".xz": lzma.open}
_JSON = (".jsonl", ".json")


@dataclasses.dataclass(frozen=True)
class Document:
    """source: file and line where it starts; lines: its paragraphs, none of them blank."""

    source: str
    lines: tuple[str, ...]


@dataclasses.dataclass
class Counts:
    """What the readers changed in the input; `documents` adds to it while it runs.

    nul: NUL characters removed. invalid: byte sequences that are no UTF-8, and lone surrogates of JSON, each read as U+FFFD.
    split_lines: cuts made in lines longer than LINE_BYTES, at white space where there is some. split_documents: cuts made in
    documents longer than DOCUMENT_CHARACTERS, between two lines: each part is a document of its own. empty_documents: documents without
    any text, dropped.
    """

    nul: int = 0
    invalid: int = 0
    split_lines: int = 0
    split_documents: int = 0
    empty_documents: int = 0


def documents(inputs: Sequence[str], counts: Counts) -> Iterator[Document]:
    """The documents of `inputs`, in order: names of files, or `docstrings` for the embedded corpus.

    Plain text: `\\n` and `\\r\\n` end a line and nothing else does; a blank line ends a document. `.jsonl`, `.json`: each line is an
    object with `text` (its `\\n` separate paragraphs) or `words` (a list of strings, joined by one blank: text of a language that is
    written without blanks, cut beforehand). `.gz` and `.xz` on top of either. A byte order mark at the start of a file is dropped.

    Raises UserError naming file and line for a missing or empty file, a folder, damaged compression, a line that is no such object
    or longer than JSON_BYTES, and when the inputs hold no document at all.
    """
    if not inputs:
        raise UserError("input: no file is named; use --input FILES, or --input docstrings for the documentation of this Python")
    found = False
    for name in inputs:
        for document in of_input(name, counts):
            found = True
            yield document
    if not found:
        raise UserError(f"{', '.join(inputs)}: no document found; name files with at least one line of text")


def watched(found: Iterable[Document], what: str) -> Iterator[Document]:
    """`found` as it is; every five seconds a line on stderr tells how much of it has been read."""
    done, started, told = 0, time.monotonic(), time.monotonic()
    for document in found:
        yield document
        done += sum(map(len, document.lines))
        if time.monotonic() - told > 5:
            told = time.monotonic()
            print(f"{what}: {done / 1e6:,.1f} M characters read, {done / 1e6 / (told - started):,.1f} M a second", file=sys.stderr)


def of_input(name: str, counts: Counts) -> Iterator[Document]:
    """The documents of one input, in order; none where it holds no text. Raises UserError as `documents` does for a file."""
    if name == docstrings.NAME:
        return (Document(source, lines) for source, lines in docstrings.modules())
    if name.startswith("tfds:"):
        raise UserError(f"{name}: reading from tensorflow_datasets comes later; export its text as .jsonl")
    return _json_documents(name, counts) if is_json(name) else _text_documents(name, counts)


def is_json(name: str) -> bool:
    """Whether the name of a file, without its compression suffix, says JSON lines."""
    path = Path(name)
    return (path.with_suffix("") if path.suffix in _OPENERS else path).suffix in _JSON


def check_file(name: str) -> None:
    """Raises UserError when `name` is no file, or an empty one."""
    path = Path(name)
    if path.is_dir():
        raise UserError(f"{name}: is a folder; name its files, for example {name.rstrip('/')}/*.txt")
    if not path.exists():
        raise UserError(f"{name}: no such file; check the path")
    if path.is_file() and path.stat().st_size == 0:
        raise UserError(f"{name}: is empty; remove it from --input")


def _raw_lines(name: str, limit: int) -> Iterator[tuple[int, bytes]]:
    """(number, bytes with the line end) of each line; a line longer than `limit` bytes comes in parts."""
    check_file(name)
    opener = _OPENERS.get(Path(name).suffix, open)
    number = 1
    try:
        with user_errors(name, "check that the file can be read"), opener(name, "rb") as file:
            for raw in _parts(file, limit):
                yield number, raw.removeprefix(b"\xef\xbb\xbf") if number == 1 else raw
                number += raw.endswith(b"\n")
    except (lzma.LZMAError, EOFError, gzip.zlib.error) as error:
        raise UserError(f"{name}:{number}: the compressed data is damaged ({error}); make the file again") from error


def _parts(file: IO[bytes], limit: int) -> Iterator[bytes]:
    """Lines with their ends; a part of a long line stops after the last blank in it, or else between two characters."""
    rest = b""
    while block := file.readline(limit - len(rest)):
        part = rest + block
        rest = b""
        if len(part) >= limit and not part.endswith(b"\n"):
            cut = part.rfind(b" ") + 1 or _character_start(part)
            part, rest = part[:cut], part[cut:]
        yield part
    if rest:
        yield rest


def _character_start(raw: bytes) -> int:
    """Where the last character of `raw` starts: a byte that does not continue a UTF-8 sequence, at most three bytes before the end."""
    return next((i for i in range(len(raw) - 1, max(len(raw) - 4, 0), -1) if raw[i] & 0xC0 != 0x80), len(raw))


def _clean(raw: bytes, counts: Counts) -> str:
    text = raw.decode("utf-8", "replace")
    counts.invalid += text.count("\ufffd") - raw.count("\ufffd".encode())
    return _without_nul(text, counts)


def _without_nul(text: str, counts: Counts) -> str:
    counts.nul += text.count("\0")
    return text.replace("\0", "")


def _text_documents(name: str, counts: Counts) -> Iterator[Document]:
    for filled, run in itertools.groupby(_text_lines(name, counts), key=lambda line: bool(line[1].strip())):
        if filled:
            yield from _bounded(name, run, counts)


def _text_lines(name: str, counts: Counts) -> Iterator[tuple[int, str]]:
    """(number, text) of each line or part of a line; a blank part is left out, since a blank line would end the document."""
    whole = True
    for number, raw in _raw_lines(name, LINE_BYTES):
        starts, whole = whole, raw.endswith(b"\n")
        text = _clean(raw.removesuffix(b"\n").removesuffix(b"\r") if whole else raw, counts)
        if starts or text.strip():
            counts.split_lines += not starts
            yield number, text


def _bounded(name: str, lines: Iterable[tuple[int, str]], counts: Counts) -> Iterator[Document]:
    """One document of the (line number, text) pairs, or several where it would exceed DOCUMENT_CHARACTERS."""
    start, held, size = 0, [], 0
    for number, line in lines:
        if held and size + len(line) > DOCUMENT_CHARACTERS:
            counts.split_documents += 1
            yield Document(f"{name}:{start}", tuple(held))
            held, size = [], 0
        start = start if held else number
        held.append(line)
        size += len(line)
    if held:
        yield Document(f"{name}:{start}", tuple(held))


def _json_documents(name: str, counts: Counts) -> Iterator[Document]:
    for number, raw in _raw_lines(name, JSON_BYTES):
        line = _clean(raw, counts)
        if not line.strip():
            continue
        text, surrogates = _well_formed(_without_nul(_text_of(line, f"{name}:{number}"), counts))
        counts.invalid += surrogates
        counts.empty_documents += not text.strip()
        paragraphs = text.replace("\r\n", "\n").split("\n")
        yield from _bounded(name, ((number, piece) for line in paragraphs for piece in _pieces(line, counts)), counts)


def _text_of(line: str, where: str) -> str:
    try:
        data = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{where}: not a JSON object on one line, of at most {JSON_BYTES:,} bytes ({error})") from error
    text = data.get("text") if isinstance(data, dict) else None
    words = data.get("words") if isinstance(data, dict) else None
    if isinstance(text, str):
        return text
    if isinstance(words, list) and all(isinstance(word, str) for word in words):
        return " ".join(words)
    raise UserError(f'{where}: needs {{"text": "..."}} or {{"words": ["...", ...]}}')


def _well_formed(text: str) -> tuple[str, int]:
    """`text` with U+FFFD for every lone surrogate (JSON can write one, UTF-8 cannot), and their number."""
    try:
        text.encode()
    except UnicodeEncodeError:
        clean = "".join("\ufffd" if 0xD800 <= ord(c) < 0xE000 else c for c in text)
        return clean, clean.count("\ufffd") - text.count("\ufffd")
    return text, 0


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
