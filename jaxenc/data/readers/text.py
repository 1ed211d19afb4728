"""Plain text: lines are paragraphs, and a blank line, or each line, ends a document."""

import io
from collections.abc import Iterator

from jaxenc.data.readers import document as rules
from jaxenc.data.readers.document import LINE_BYTES, Counts, Document, Reading
from jaxenc.data.readers.encoding import decoded
from jaxenc.data.readers.streams import BLOCK, HEAD, Stream, character_start, line_blocks, unified


def documents(name: str, file: io.BufferedReader, reading: Reading, counts: Counts) -> Iterator[Document]:
    r"""The documents of a UTF-8 file; the source of each is `name` and the number of its first line.

    `\n` and `\r\n` end a line and nothing else does, except that a lone `\r` does where the first HEAD bytes have one and no `\n`.
    A line longer than LINE_BYTES is cut. Raises UserError for a file that is not text.
    """
    by_line = reading.document == "line"
    held: list[str] = []
    size = start = found = lines = 0
    for number, texts, continues in _texts(name, file, counts):
        for at, line in enumerate(texts, number):
            if not line or line.isspace():
                if held and not continues:  # a blank part of a long line is not a blank line
                    yield Document(f"{name}:{start}", tuple(held))
                    held = []
                continue
            counts.split_lines += continues
            lines += not continues
            if held and by_line and not continues:
                yield Document(f"{name}:{start}", tuple(held))
                held = []
            elif held and size + len(line) > rules.DOCUMENT_CHARACTERS:
                counts.split_documents += 1
                yield Document(f"{name}:{start}", tuple(held))
                held, size, start = [], 0, at
                found -= 1
            if not held:
                size, start, found = 0, at, found + 1
            held.append(line)
            size += len(line)
    if held:
        yield Document(f"{name}:{start}", tuple(held))
    counts.undivided_files += found == 1 and lines > 1


def _texts(name: str, file: io.BufferedReader, counts: Counts) -> Iterator[tuple[int, list[str], bool]]:
    """(number of the first line, texts of lines, whether they continue a line that was cut); parts of a cut line come one by one."""
    head = file.peek(HEAD)[:HEAD]
    if b"\r" in head and b"\n" not in head:
        file = io.BufferedReader(Stream(unified(file)), BLOCK)
    rest, continues = b"", False  # of a long line whose first parts were yielded
    for first, block in line_blocks(file, LINE_BYTES):
        raw = (rest + block).split(b"\n")
        if not continues and max(map(len, raw)) < LINE_BYTES:
            yield first, _ended(decoded(block, name, counts).removesuffix("\n").split("\n")), False
            continue
        for number, line in enumerate(raw, first):
            whole = number < first + len(raw) - 1
            parts, rest = _parts(line, whole)
            for part in parts:
                text = decoded(part, name, counts)
                yield number, _ended([text]) if whole and part is parts[-1] else [text], continues
                continues = True
            if whole:
                continues = False
    if rest:
        yield first, _ended([decoded(rest, name, counts)]), continues


def _ended(lines: list[str]) -> list[str]:
    return [line.removesuffix("\r") for line in lines]


def _parts(line: bytes, whole: bool) -> tuple[list[bytes], bytes]:
    """(parts of a line, the rest of one that goes on in the next block). A part of a long line ends after its last blank, or else between
    two characters. whole: whether the line ends here."""
    parts = []
    while len(line) + whole > LINE_BYTES or (len(line) == LINE_BYTES and not whole):
        part = line[:LINE_BYTES]
        cut = part.rfind(b" ") + 1 or character_start(part)
        parts.append(line[:cut])
        line = line[cut:]
    return ([*parts, line], b"") if whole else (parts, line)
