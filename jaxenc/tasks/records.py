"""Rows of labelled files: tables, JSON, Parquet and Arrow, datasets of tensorflow_datasets and of Hugging Face."""

import contextlib
import dataclasses
import io
import itertools
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from jaxenc.data.readers import fields, json_lines, kinds, tables
from jaxenc.data.readers.document import Counts
from jaxenc.data.readers.streams import HEAD
from jaxenc.errors import UserError
from jaxenc.tasks import row_files
from jaxenc.tasks.files import FilesConfig
from jaxenc.tasks.row_files import Form, MissingColumn, Row

# Between the names that a column may have.
OR = "|"
# The fields of a task that are options of commands too.
OPTIONS = ("text", "label")
_TABULAR = (".tsv", ".tab", ".txt", ".csv")
# The readers' messages name options of `jaxenc data`; a task has these instead.
_OPTIONS = (
    ("try --encoding ", "try data.encoding="),
    ("--encoding", "data.encoding"),
    ("--tfds-dir", "TFDS_DATA_DIR"),
    ("remove it from --input", "name another file"),
    (", or name another --format", ", or save it as .jsonl"),
)


@dataclasses.dataclass(frozen=True)
class Record:
    """One row. where: file and line, or the number of the row. values: {column as requested: value}, without optional columns that the file
    lacks."""

    where: str
    values: Mapping[str, Any]

    def text(self, column: str) -> str:
        """The text of a column, which may be empty. Raises UserError for a null and for any other type."""
        value = self.values[column]
        if value is None:
            raise UserError(f"the column {column} holds no text (null)", self.where, "fill it in, or leave the row out")
        if not isinstance(value, str):
            what = f"the column {column} holds {_shown(value)}, which is not a text"
            raise UserError(what, self.where, "fix it, or name a column of texts")
        return value

    def number(self, column: str) -> float | None:
        """The number in a column, None for a null, an empty cell and a missing column. Raises UserError unless it is a finite number."""
        value = self.values.get(column)
        if value is None or value == "":
            return None
        try:
            # Python reads 1_000 as a number.
            known = (isinstance(value, (int, float)) and not isinstance(value, bool)) or (isinstance(value, str) and "_" not in value)
            number = float(value) if known else math.nan
        except (ValueError, OverflowError):  # of a whole number in JSON with hundreds of digits
            number = math.nan
        if not math.isfinite(number):
            raise UserError(f"the column {column} holds {_shown(value)}, which is not a number", self.where, "fix it, or leave the row out")
        return number

    def name(self, column: str) -> str:
        """The value of a column as the name of a class, '' for a null and a missing column: 1 and 1.0 are '1', true is 'true'."""
        value = self.values.get(column)
        if value is not None and not isinstance(value, (str, int, float)):
            what = f"the column {column} holds {_shown(value)}, which is not a label"
            raise UserError(what, self.where, "fix it, or name another column")
        return as_name(value)


def as_name(value: str | float | None) -> str:
    """A value as the name of a class, '' for a null and NaN: 1 and 1.0 are '1', true is 'true'."""
    if value is None or value != value:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value).strip()


def read(name: str, required: Sequence[str], optional: Sequence[str] = (), files: FilesConfig = FilesConfig()) -> Iterator[Record]:
    """The rows of a file, in order, with the requested columns.

    name: a .tsv, .csv, .txt, .jsonl, .json or .parquet file, also compressed; a folder of such files; tfds:NAME[/CONFIG]:SPLIT; or a folder
    of `datasets.save_to_disk` with its split, DIR/SPLIT. A .json holds a list of records, or an object with such a list under `data`.
    required, optional: columns, with dots for nested ones; `A|B` is the first of A and B that the file has. A table has a header unless
    none of the required columns is in its first row and each may be a number: then columns are numbered from 1.
    files: its `encoding`, `ragged` and `broken_rows` are used.

    In .tsv and .txt files quotes are part of the text, as in the files of GLUE. Blank lines are skipped. Raises UserError, with file and
    row, for a missing column (naming the existing ones), a row of another width, bytes that are not text, and a file without rows.
    """
    required, optional = tuple(required), tuple(optional)
    form = Form(
        of_columns=lambda names, where: _top_columns(names, where, required, optional),
        of_row=lambda where, row: picked(row, where, required, optional).values,
        of_text=lambda *file: _of_text(*file, required, optional, files),
        coding=files.encoding,
        named="data.encoding=cp1252",
    )
    try:
        yield from itertools.starmap(Record, row_files.rows(name, form))
    except UserError as error:
        what, fix = error.what, error.fix
        for option, ours in _OPTIONS:
            what, fix = what.replace(option, ours), fix.replace(option, ours)
        raise error.reworded(what, fix=fix) from error


@contextlib.contextmanager
def choosing(**fields: Sequence[str]) -> Iterator[None]:
    """Within it, an error about a missing column names the field of the task that chooses the column, and its option if it has one. fields:
    {field: its columns}."""
    try:
        yield
    except MissingColumn as error:
        if field := next((name for name, columns in fields.items() if error.column in columns), ""):
            raise error.chosen(f"with {f'--{field} or ' if field in OPTIONS else ''}task.{field}") from error
        raise


def of_split(
    files: FilesConfig, split: str, required: Sequence[str], labels: Sequence[str], optional: Sequence[str] = ()
) -> Iterator[tuple[Record, str]]:
    """(record, name of its file without folder and suffix) of each row of a split, `train`, `dev` or `test`.

    labels: columns that only `test` may lack. No broken row of `test` is skipped, because a benchmark expects an answer to every row.
    Raises UserError as `read`.
    """
    allowed = files if split != "test" else dataclasses.replace(files, broken_rows=0)
    required, optional = ((*required, *labels), optional) if split != "test" else (required, (*labels, *optional))
    for name in files.names(split):
        part = os.path.basename(name).rpartition(":")[2].partition(".")[0]
        yield from ((record, part) for record in read(name, required, optional, allowed))


def picked(record: Mapping[str, Any], where: str, required: Sequence[str], optional: Sequence[str] = ()) -> Record:
    """The columns of one record. Raises UserError as `read`."""
    values = {}
    for column in (*required, *optional):
        value = next((value for one in column.split(OR) if (value := fields.nested(record, one)) is not fields.MISSING), fields.MISSING)
        if value is fields.MISSING and column in required:
            raise _missing(column, list(record), where)
        if value is not fields.MISSING:
            values[column] = value.item() if isinstance(value, np.generic) else value
    return Record(where, values)


def _of_text(
    where: str, name: str, text: io.BufferedReader, counts: Counts, required: Sequence[str], optional: Sequence[str], files: FilesConfig
) -> Iterator[Row]:
    suffix = os.path.splitext(name)[1].lower()
    if suffix in _TABULAR and kinds.text_kind(text.peek(HEAD)[:HEAD], name) != "jsonl":
        wanted = {one for column in (*required, *optional) for one in column.split(OR) if not one.isdecimal()}
        rows = tables.rows(where, text, counts, wanted, literal=suffix != ".csv")
        yield from _of_table(where, rows, required, optional, files)
        return
    for place, record in _of_json(json_lines.records(where, text, counts)):
        yield place, picked(record, place, required, optional).values


def _of_json(records: Iterator[tuple[str, dict[str, Any]]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The records, or those in the list `data` of a file that holds one object."""
    for place, record in records:
        data = record.get("data")
        if isinstance(data, list) and data and all(isinstance(one, dict) for one in data):
            yield from ((f"{place.rpartition(':')[0]}:record {number}", one) for number, one in enumerate(data, 1))
        else:
            yield place, record


def _of_table(
    name: str, rows: Iterator[tuple[int, list[str]]], required: Sequence[str], optional: Sequence[str], files: FilesConfig
) -> Iterator[Row]:
    number, first = next(rows, (0, []))
    if not first:
        return
    header = [cell.strip() for cell in first]
    places, numbered = _places(header, f"{name}:{number}", required, optional)
    if numbered:
        rows = itertools.chain([(number, first)], rows)
    least = max(places.values(), default=-1) + 1
    broken = 0
    for number, cells in rows:
        if len(cells) != len(first) and not (numbered and files.ragged and len(cells) >= least):
            broken += 1
            if broken <= files.broken_rows:
                continue
            raise row_files.uneven(cells, first, f"{name}:{number}")
        yield f"{name}:{number}", {column: cells[place] for column, place in places.items()}


def _places(header: Sequence[str], where: str, required: Sequence[str], optional: Sequence[str]) -> tuple[dict[str, int], bool]:
    """({column: its index in a row}, whether the columns are numbered and the first row is not a header)."""
    # A number is never a column name: in a file without a header it may well occur in the first row.
    named = {column: [one for one in column.split(OR) if one in header and not one.isdecimal()] for column in (*required, *optional)}
    numbers = {column: [int(one) for one in column.split(OR) if one.isdecimal()] for column in named}
    if any(named[column] for column in required) or not all(numbers[column] for column in required):
        if missing := [column for column in required if not named[column]]:
            raise _missing(missing[0], header, where)
        chosen = {column: found[0] for column, found in named.items() if found}
        if twice := next((one for one in chosen.values() if header.count(one) > 1), ""):
            raise UserError(f"has several columns {twice}", where, "rename all but the one to read")
        return {column: header.index(one) for column, one in chosen.items()}, False
    if wrong := [column for column in required if not 0 < numbers[column][0] <= len(header)]:
        raise UserError(f"has {len(header)} columns, and task names column {numbers[wrong[0]][0]}", where, f"use 1 to {len(header)}")
    return {column: found[0] - 1 for column, found in numbers.items() if found and 0 < found[0] <= len(header)}, True


def _top_columns(names: Sequence[str], where: str, required: Sequence[str], optional: Sequence[str]) -> list[str]:
    """The top-level columns to read of a columnar file."""
    tops = {}
    for column in (*required, *optional):
        found = [top for one in column.split(OR) for top in (one, one.split(".")[0]) if top in names]
        if not found and column in required:
            raise _missing(column, names, where)
        tops |= dict.fromkeys(found)
    return list(tops)


def _missing(column: str, names: Sequence[str], where: str) -> MissingColumn:
    found = ", ".join(map(repr, names[:12])) + (f" and {len(names) - 12} more" if len(names) > 12 else "")
    what = f"has no column {' or '.join(column.split(OR))}"
    return MissingColumn(what, where, column=column, found=found).chosen("in the field of the task for it")


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
