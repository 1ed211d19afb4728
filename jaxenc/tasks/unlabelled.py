"""Rows of a user's file with all of their columns, to be answered by a fine-tuned model."""

import io
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jaxenc.data.readers import archives, columns, compressed, encoding, inputs, json_lines, kinds, tables, tfds
from jaxenc.data.readers.document import Counts, Reading
from jaxenc.data.readers.streams import HEAD, line_blocks, seekable
from jaxenc.errors import UserError
from jaxenc.files import user_errors
from jaxenc.tasks.records import OR, Record

# The column for the text of a line, if the task names no columns.
TEXT = "text"
_TABLES = (".tsv", ".tab", ".csv")
_JSON = (".jsonl", ".json", ".ndjson")
_LONGEST = 1 << 28  # bytes of a line


def read(name: str, wanted: Sequence[str], coding: str = "") -> Iterator[Record]:
    """The rows of a file, in order, each with all of its columns.

    name: a .tsv, .csv, .jsonl, .json or .parquet file; any other file, and `-`, standard input, holds one text per line, or JSON if it
    begins with `{"`. Files may be compressed. wanted: the columns that the task reads, `A|B` for either. The text of a line goes to the
    first of them; an empty line is an empty text. A table has a header unless none of `wanted` is in its first row and each may be a
    number: then columns are numbered from 1. In a .tsv, quotes are part of the text. coding: of text, "" for UTF-8 or a byte order mark.

    Raises UserError, with file and row, for a row of another width, for bytes that are not text, and for a file without rows.
    """
    counts, found = Counts(), False
    for source in inputs([name], Reading(encoding=coding), counts):
        if source.name.startswith(tfds.PREFIX):
            rows = ((f"{source.name}:{number}", row) for number, row in enumerate(tfds.examples(source.name), 1))
            for where, row in rows:
                found = True
                yield Record(where, row)
            continue
        with user_errors(source.name, "check that the file can be read"), open(source.path, "rb", buffering=HEAD) as file:
            for where, row in _of_file(source.name, file, wanted, coding, counts):
                if counts.invalid and any("\ufffd" in value for value in row.values() if isinstance(value, str)):
                    raise UserError("holds bytes that are not text in its encoding", where, "name it, such as --encoding cp1252")
                found = True
                yield Record(where, row)
    if not found:
        raise UserError("has no rows", name, "name a file with a row for each example")


def _of_file(
    where: str, file: io.BufferedReader, wanted: Sequence[str], coding: str, counts: Counts
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    file, name = compressed.unpacked(file, where, counts)
    head, suffix = file.peek(HEAD)[:HEAD], os.path.splitext(name)[1].lower()
    if archives.is_archive(head):
        raise UserError("is an archive", where, "unpack it, and name the file in it")
    if kind := kinds.table_kind(head, name, "auto"):
        with seekable(file, where) as whole:
            rows = columns.records(where, whole, kind, lambda names: list(names))
            yield from ((f"{where}:{number}", row) for number, row in enumerate(rows, 1))
        return
    text = encoding.utf8(file, where, coding, counts)
    if suffix in _TABLES:
        names = {one for column in wanted for one in column.split(OR)}
        yield from _of_table(where, tables.rows(where, text, counts, names, literal=suffix != ".csv"), wanted)
    elif suffix in _JSON or (suffix != ".txt" and text.peek(HEAD)[:HEAD].lstrip().startswith(b'{"')):
        yield from json_lines.records(where, text, counts)
    else:
        yield from _of_lines(where, text, wanted, counts)


def _of_lines(where: str, file: io.BufferedReader, wanted: Sequence[str], counts: Counts) -> Iterator[tuple[str, dict[str, Any]]]:
    if len(wanted) > 1:
        held = f"holds one text a line, and the task reads {', '.join(wanted)}"
        raise UserError(held, where, "name a .tsv, .csv or .jsonl file with these columns")
    column = wanted[0].split(OR)[0] if wanted else TEXT
    for first, block in line_blocks(file, _LONGEST):
        if len(block) > _LONGEST and not block.endswith(b"\n"):
            raise UserError(f"this line is longer than {_LONGEST:,} bytes", f"{where}:{first}", "check that this is a text a line")
        lines = encoding.decoded(block, where, counts).removesuffix("\n").split("\n")
        yield from ((f"{where}:{number}", {column: line.removesuffix("\r")}) for number, line in enumerate(lines, first))


def _of_table(where: str, rows: Iterator[tuple[int, list[str]]], wanted: Sequence[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    number, first = next(rows, (0, []))
    header = [cell.strip() for cell in first]
    numbered = _is_numbered(header, wanted)
    if numbered:
        header = [str(place) for place in range(1, len(first) + 1)]
        yield f"{where}:{number}", dict(zip(header, first, strict=True))
    elif twice := next((one for column in wanted for one in column.split(OR) if header.count(one) > 1), ""):
        raise UserError(f"has several columns {twice}", f"{where}:{number}", "rename all but the one to read")
    for number, cells in rows:
        if len(cells) != len(first):
            what = f"has {len(cells)} columns, and the first row has {len(first)}"
            fix = "write one cell for each column; texts with tabs or commas need a .csv with quotes, or a .jsonl"
            raise UserError(what, f"{where}:{number}", fix)
        yield f"{where}:{number}", dict(zip(header, cells, strict=True))


def _is_numbered(header: Sequence[str], wanted: Sequence[str]) -> bool:
    named = any(one in header for column in wanted for one in column.split(OR))
    return bool(header and wanted) and not named and all(any(map(str.isdecimal, column.split(OR))) for column in wanted)
