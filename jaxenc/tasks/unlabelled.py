"""Rows of a user's file with all of their columns, to be answered by a fine-tuned model."""

import io
import itertools
import os
from collections.abc import Iterator, Sequence

from jaxenc.data.readers import encoding, json_lines, tables
from jaxenc.data.readers.document import Counts
from jaxenc.data.readers.streams import HEAD, line_blocks
from jaxenc.errors import UserError
from jaxenc.tasks import row_files
from jaxenc.tasks.records import OR, Record
from jaxenc.tasks.row_files import Form, Row

# The column for the text of a line, if the task names no columns.
TEXT = "text"
_TABLES = (".tsv", ".tab", ".csv")
_JSON = (".jsonl", ".json", ".ndjson")
_TEXT = (".txt", "")
READ = (*_TEXT[:1], *_TABLES, *_JSON, ".parquet", ".arrow")
_LONGEST = 1 << 28  # bytes of a line


def read(name: str, wanted: Sequence[str], coding: str = "") -> Iterator[Record]:
    """The rows of a file, in order, each with all of its columns.

    name: a .txt, .tsv, .csv, .jsonl, .json, .parquet or .arrow file; a file without a suffix, and `-`, standard input, holds one text per
    line, or JSON if it begins with `{"`. Files may be compressed. wanted: the columns that the task reads, `A|B` for either. The text of a
    line goes to the first of them; an empty line is an empty text. A table has a header unless none of `wanted` is in its first row and
    each may be a number: then columns are numbered from 1. In a .tsv, quotes are part of the text. coding: of text, "" for UTF-8 or a byte
    order mark.

    Raises UserError, with file and row, for any other suffix, for a row of another width, for bytes that are not text, and for a file
    without rows.
    """
    form = Form(
        of_columns=lambda names, where: list(names),
        of_row=lambda where, row: row,
        of_text=lambda *file: _of_text(*file, wanted),
        coding=coding,
        named="--encoding cp1252",
    )
    yield from itertools.starmap(Record, row_files.rows(name, form))


def _of_text(where: str, name: str, text: io.BufferedReader, counts: Counts, wanted: Sequence[str]) -> Iterator[Row]:
    suffix = os.path.splitext(name)[1].lower()
    if suffix in _TABLES:
        names = {one for column in wanted for one in column.split(OR)}
        yield from _of_table(where, tables.rows(where, text, counts, names, literal=suffix != ".csv"), wanted)
    elif suffix in _JSON or (not suffix and text.peek(HEAD)[:HEAD].lstrip().startswith(b'{"')):
        yield from json_lines.records(where, text, counts)
    elif suffix not in _TEXT:
        raise UserError(f"a file of the kind {suffix} is not read", where, f"save it as one of {', '.join(READ)}")
    else:
        yield from _of_lines(where, text, wanted, counts)


def _of_lines(where: str, file: io.BufferedReader, wanted: Sequence[str], counts: Counts) -> Iterator[Row]:
    if len(wanted) > 1:
        held = f"holds one text a line, and the task reads {', '.join(wanted)}"
        raise UserError(held, where, "name a .tsv, .csv or .jsonl file with these columns")
    column = wanted[0].split(OR)[0] if wanted else TEXT
    for first, block in line_blocks(file, _LONGEST):
        if len(block) > _LONGEST and not block.endswith(b"\n"):
            raise UserError(f"this line is longer than {_LONGEST:,} bytes", f"{where}:{first}", "check that this is a text a line")
        lines = encoding.decoded(block, where, counts).removesuffix("\n").split("\n")
        yield from ((f"{where}:{number}", {column: line.removesuffix("\r")}) for number, line in enumerate(lines, first))


def _of_table(where: str, rows: Iterator[tuple[int, list[str]]], wanted: Sequence[str]) -> Iterator[Row]:
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
            raise row_files.uneven(cells, first, f"{where}:{number}")
        yield f"{where}:{number}", dict(zip(header, cells, strict=True))


def _is_numbered(header: Sequence[str], wanted: Sequence[str]) -> bool:
    named = any(one in header for column in wanted for one in column.split(OR))
    return bool(header and wanted) and not named and all(any(map(str.isdecimal, column.split(OR))) for column in wanted)
