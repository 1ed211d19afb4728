"""JSON: an object on each line, one array of objects, or objects over several lines."""

import io
import json
import re
from collections.abc import Iterator
from typing import Any

from jaxenc.data.readers.document import Counts, Document, Reading, documents_of
from jaxenc.data.readers.encoding import decoded
from jaxenc.data.readers.fields import text_of
from jaxenc.data.readers.streams import HEAD, line_blocks
from jaxenc.errors import UserError

LONGEST = 1 << 28  # bytes of one record: a small compressed file may unpack to an endless one
_BETWEEN = re.compile(r"[\s,]*")
_NEAR = 16  # an error in the last characters read, this many, means that the record is not read to its end yet


def documents(name: str, file: io.BufferedReader, reading: Reading, counts: Counts) -> Iterator[Document]:
    """A document for each record that has text; the source of each is `name` and the number of its line, or of the record.

    The text is in the field that `reading` names (`fields.text_of`). Of CirrusSearch dumps the index lines are skipped, and pages that
    are not articles are skipped and counted.

    Raises UserError naming file and line for what is not a record, for one without the field, and for one longer than LONGEST bytes.
    """
    for where, record in records(name, file, counts):
        if len(record) == 1 and isinstance(record.get("index"), dict):
            continue
        if record.get("namespace") and "wiki" in record:
            counts.skipped_pages += 1
            continue
        yield from documents_of(text_of(record, reading.field, where, counts), where, counts)


def records(name: str, file: io.BufferedReader, counts: Counts) -> Iterator[tuple[str, dict[str, Any]]]:
    """(file and line, or number of the record; record) of each object: one a line, in one array, or one after another over several lines.

    Raises UserError naming file and line for what is not an object, and for one longer than LONGEST bytes.
    """
    head = file.peek(HEAD)[:HEAD].lstrip()
    over_lines = head.startswith(b"[") or (b"\n" in head and head.split(b"\n", 1)[0].rstrip().endswith((b"{", b"[", b",")))
    for where, record in (_over_lines if over_lines else _on_lines)(name, file, counts):
        if not isinstance(record, dict):
            raise UserError("not an object", where, 'write {"text": "..."} or {"words": ["...", ...]}')
        yield where, record


def _on_lines(name: str, file: io.BufferedReader, counts: Counts) -> Iterator[tuple[str, Any]]:
    for first, block in line_blocks(file, LONGEST):
        if len(block) > LONGEST and not block.endswith(b"\n"):
            raise UserError(
                f"not a JSON object on one line, of at most {LONGEST:,} bytes (it goes on)",
                f"{name}:{first}",
                "write one object a line, or shorten it",
            )
        for number, line in enumerate(decoded(block, name, counts).split("\n"), first):
            if line and not line.isspace():
                try:
                    record = json.loads(line)
                except (ValueError, RecursionError) as error:
                    where = f"{name}:{number}"
                    raise UserError(
                        f"not a JSON object on one line, of at most {LONGEST:,} bytes ({error})", where, "write one object a line"
                    ) from error
                yield f"{name}:{number}", record


def _over_lines(name: str, file: io.BufferedReader, counts: Counts) -> Iterator[tuple[str, Any]]:
    """The records of one array, or one after another, whatever the line ends."""
    blocks, decode = line_blocks(file, 0), json.JSONDecoder().raw_decode
    text, number = decoded(next(blocks)[1], name, counts), 1
    at = _BETWEEN.match(text).end()
    array = text.startswith("[", at)
    at += array
    while True:
        where = f"{name}:record {number}"
        at = _BETWEEN.match(text, at).end()
        if at < len(text) and not (array and text[at] == "]"):
            try:
                record, at = decode(text, at)
            except (ValueError, RecursionError) as error:
                reason = error
            else:
                yield where, record
                number += 1
                continue
            goes_on = isinstance(reason, json.JSONDecodeError) and (
                reason.pos > len(text) - _NEAR or reason.msg.startswith("Unterminated string")
            )
            if not goes_on or len(text) - at > LONGEST:
                raise UserError(
                    f"not a JSON object, of at most {LONGEST:,} bytes ({reason})", where, "fix or shorten this record"
                ) from reason
        elif at < len(text):
            break
        held = [text[at:]]
        # Twice as much each time, so that a long record is not parsed again for each block.
        while sum(map(len, held)) <= 2 * len(held[0]) and (block := next(blocks, (0, b""))[1]):
            held.append(decoded(block, name, counts))
        if len(held) == 1:
            break
        text, at = "".join(held), 0
    if text[at + array :].strip() or array != text.startswith("]", at):
        raise UserError("the file ends inside an array or a record, or goes on after it", f"{name}:record {number}", "make it again")
