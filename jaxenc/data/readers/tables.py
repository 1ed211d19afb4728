"""Tables as text: CSV and TSV, a column of each row."""

import collections
import csv
import io
import itertools
import re
from collections.abc import Collection, Iterator

from jaxenc.data.readers import fields
from jaxenc.data.readers.document import Counts, Document, Reading, documents_of
from jaxenc.data.readers.encoding import decoded
from jaxenc.data.readers.streams import line_blocks
from jaxenc.errors import UserError

LONGEST = 1 << 28  # bytes of a line
CELL = 1 << 24  # characters of a cell; a quote that is never closed makes the rest of the file one cell
_DELIMITERS = (",", ";", "\t", "|")
_SAID = re.compile(r"sep=(.)\r?\n?")
_SPAN = 100  # lines that a row of a TSV may span


def documents(name: str, file: io.BufferedReader, reading: Reading, counts: Counts, delimiter: str) -> Iterator[Document]:
    r"""A document for each row: the text of one column; the source of each is `name` and the number of the row's first line.

    The first row is the header, which names the columns; where `reading.field` is a number that the header does not have, there is none
    and the field is the number of the column, from 1. delimiter: `,` (or `;`, tab or `|`, where the header has the column or several ones
    only then, or where Excel's line `sep=;` before it says so), or tab. Quoted cells may hold line ends, delimiters and doubled quotes.
    In a TSV a quote that opens no such cell stands for itself.
    Blank rows are left out. Raises UserError naming file and line for a row of another width and for a quote that is not closed.
    """
    lines = _lines(name, file, counts)
    header = next((line for line in lines if line.strip()), "")
    lines = itertools.chain([header], lines)
    if delimiter != "\t" and (said := _SAID.fullmatch(header)):
        delimiter, lines = said[1], itertools.chain(["\n"], itertools.islice(lines, 1, None))  # the numbers of lines stay
    elif delimiter != "\t":
        delimiter = _delimiter(header, reading.field)
    rows = _quoted(name, lines, delimiter) if delimiter != "\t" else _tsv(lines)
    width = index = -1
    for number, row in rows:
        if not any(cell.strip() for cell in row):
            continue
        if index < 0:
            width, index, is_header = len(row), *_place(row, reading.field, f"{name}:{number}")
            if is_header:
                continue
        if len(row) != width:
            raise UserError(
                f"has {len(row)} columns, and the first row has {width}", f"{name}:{number}", "quote cells with delimiters in them"
            )
        yield from documents_of(row[index], f"{name}:{number}", counts)


def rows(name: str, file: io.BufferedReader, counts: Counts, names: Collection[str], literal: bool) -> Iterator[tuple[int, list[str]]]:
    """(number of its first line, cells) of each row, the header too; blank lines are left out.

    literal: tabs separate cells and quotes stand for themselves, as in the files of GLUE. Otherwise the file is a CSV, in which quoted
    cells may hold line ends, delimiters and doubled quotes. Its delimiter is the one with which the first line has a column of `names`;
    without such a column it is a tab where the first line has one, and the file is read literally, or else a comma.
    Raises UserError naming file and line for a quote that is not closed.
    """
    lines = _lines(name, file, counts)
    number, first = next(((number, line) for number, line in enumerate(lines, 1) if line.strip()), (1, ""))
    lines = itertools.chain(["\n"] * (number - 1), [first], lines)  # the numbers of lines stay
    if not literal:
        has = lambda delimiter: any(cell.strip() in names for cell in next(csv.reader([first], delimiter=delimiter), ()))
        delimiter = next(filter(has, _DELIMITERS), "\t" if "\t" in first else ",")
        literal = delimiter == "\t" and not has(delimiter)
    cut = lambda line: line.removesuffix("\n").removesuffix("\r").split("\t")
    found = enumerate(map(cut, lines), 1) if literal else _quoted(name, lines, delimiter)
    return ((number, cells) for number, cells in found if len(cells) > 1 or any(cell.strip() for cell in cells))


def _delimiter(header: str, field: str) -> str:
    """The delimiter with which the header has the column; or else the one that cuts a header which commas do not."""
    cut = {delimiter: next(csv.reader([header], delimiter=delimiter)) for delimiter in _DELIMITERS}
    wanted = {field} if field else set(fields.USUAL)
    several = [delimiter for delimiter in _DELIMITERS if len(cut[delimiter]) > 1 and not field.isdecimal()]
    return next((delimiter for delimiter in _DELIMITERS if wanted & set(cut[delimiter])), next(iter(several), ","))


def _place(row: list[str], field: str, where: str) -> tuple[int, bool]:
    """(index of the column, whether `row` is a header)."""
    if field.isdecimal() and field not in row:
        if not 1 <= int(field) <= len(row):
            raise UserError(f"has {len(row)} columns, and --field is {field}", where, f"use 1 to {len(row)}")
        return int(field) - 1, False
    names = [cell.strip() for cell in row]
    return names.index(fields.column(names, field, where)), True


def _lines(name: str, file: io.BufferedReader, counts: Counts) -> Iterator[str]:
    for first, block in line_blocks(file, LONGEST):
        if len(block) > LONGEST and not block.endswith(b"\n"):
            raise UserError(f"this line is longer than {LONGEST:,} bytes", f"{name}:{first}", "check that this is a table")
        text = decoded(block, name, counts)
        if "\r" in text and "\n" not in text:
            text = text.replace("\r", "\n")
        yield from io.StringIO(text, newline="\n")


def _quoted(name: str, lines: Iterator[str], delimiter: str) -> Iterator[tuple[int, list[str]]]:
    csv.field_size_limit(max(csv.field_size_limit(), CELL))
    rows = csv.reader(lines, delimiter=delimiter, strict=True)
    while True:
        start = rows.line_num + 1
        try:
            row = next(rows, None)
        except csv.Error as error:
            advice = "close the quote, double quotes inside of a cell, or name another --format"
            raise UserError(f"not a row of a table ({error})", f"{name}:{start}", advice) from error
        if row is None:
            return
        yield start, row


def _tsv(lines: Iterator[str]) -> Iterator[tuple[int, list[str]]]:
    """(number of its first line, cells) of each row. Cells are quoted only where the row then has the width of the first one."""
    csv.field_size_limit(max(csv.field_size_limit(), CELL))
    number, width = 1, 0
    ahead: collections.deque[str] = collections.deque()
    while line := ahead.popleft() if ahead else next(lines, ""):
        cells, used = line.removesuffix("\n").removesuffix("\r").split("\t"), 1
        if any(cell.startswith('"') for cell in cells):
            quotes, parts = line.count('"'), [line]
            while quotes % 2 and len(parts) < _SPAN:
                if len(parts) > len(ahead):
                    ahead.append(next(lines, ""))
                parts.append(ahead[len(parts) - 1])
                quotes += parts[-1].count('"')
            quoted = _quoted_row(parts)
            if quoted and len(quoted) == (width or len(quoted)):
                cells, used = quoted, len(parts)
                for _ in parts[1:]:
                    ahead.popleft()
        width = width or len(cells)
        yield number, cells
        number += used


def _quoted_row(lines: list[str]) -> list[str] | None:
    """The cells of lines that are one row in which quotes open and close cells, or None."""
    try:
        rows = list(csv.reader(lines, delimiter="\t", strict=True))
    except csv.Error:
        return None
    return rows[0] if len(rows) == 1 else None
