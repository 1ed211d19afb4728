"""Opens any file of rows: what the readers of labelled and of unlabelled examples share."""

import dataclasses
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Self

from jaxenc.data.readers import archives, columns, compressed, encoding, inputs, kinds, tfds
from jaxenc.data.readers.document import Counts, Reading
from jaxenc.data.readers.sources import File
from jaxenc.data.readers.streams import HEAD, seekable
from jaxenc.errors import UserError
from jaxenc.files import user_errors

Row = tuple[str, Mapping[str, Any]]  # file and line or number of the row; {column: value}


class MissingColumn(UserError):
    """A file or a row lacks a column that is required. column: as requested; found: those that it has, as messages list them."""

    def __init__(self, what: str, where: str = "", fix: str = "", column: str = "", found: str = "") -> None:
        super().__init__(what, where, fix)
        self.column, self.found = column, found

    def chosen(self, how: str) -> Self:
        """The same error with the advice to name another column. how: such as `with --text`."""
        return self.reworded(fix=f"name one of its columns {how}: {self.found}")

    def settled(self) -> Self:
        """The same error with the advice to rename a column, for a task whose columns are fixed by its training."""
        return self.reworded(fix=f"rename the right one of its columns: {self.found}")


@dataclasses.dataclass(frozen=True)
class Form:
    """How a reader takes its rows.

    of_columns: from (names of the columns of a columnar file, its name) to those to read. of_row: from (where, a whole row) of such a file
    or of tfds to the row. of_text: the rows of a text file, from (name, name without the suffix of a compression, its UTF-8, counts).
    coding: of text, '' for UTF-8 or a byte order mark. named: how a user names it, as in `--encoding cp1252`.
    """

    of_columns: Callable[[Sequence[str], str], list[str]]
    of_row: Callable[[str, Mapping[str, Any]], Mapping[str, Any]]
    of_text: Callable[[str, str, io.BufferedReader, Counts], Iterator[Row]]
    coding: str
    named: str


def rows(name: str, form: Form) -> Iterator[Row]:
    """The rows of a file, a folder or an address, in order. Raises UserError, with file and row, for an archive, for bytes that are not
    text and for a name without rows."""
    counts, found = Counts(), False
    for source in inputs([name], Reading(encoding=form.coding), counts):
        for where, row in _of_source(source, form, counts):
            if counts.invalid and any("\ufffd" in value for value in row.values() if isinstance(value, str)):
                raise UserError("holds bytes that are not text in its encoding", where, f"name it, such as {form.named}")
            found = True
            yield where, row
    if not found:
        raise UserError("has no rows", name, "name a file with a row for each example")


def uneven(cells: Sequence[str], first: Sequence[str], where: str) -> UserError:
    """The error for a row of a table that has another width than the first one."""
    fix = "write one cell for each column; texts with tabs or commas need a .csv with quotes, or a .jsonl"
    return UserError(f"has {len(cells)} columns, and the first row has {len(first)}", where, fix)


def _of_source(source: Any, form: Form, counts: Counts) -> Iterator[Row]:
    if source.name.startswith(tfds.PREFIX):
        found = ((f"{source.name}:{number}", row) for number, row in enumerate(tfds.examples(source.name), 1))
        yield from ((where, form.of_row(where, row)) for where, row in found)
        return
    if not isinstance(source, File):
        raise UserError("has no columns", source.name, "name a file with a row for each example")
    with user_errors(source.name, "check that the file can be read"), open(source.path, "rb", buffering=HEAD) as file:
        yield from _of_file(source.name, file, form, counts)


def _of_file(where: str, file: io.BufferedReader, form: Form, counts: Counts) -> Iterator[Row]:
    file, name = compressed.unpacked(file, where, counts)
    head = file.peek(HEAD)[:HEAD]
    if archives.is_archive(head):
        raise UserError("is an archive", where, "unpack it, and name the file in it")
    if not (kind := kinds.table_kind(head, name, "auto")):
        yield from form.of_text(where, name, encoding.utf8(file, where, form.coding, counts), counts)
        return
    with seekable(file, where) as whole:
        for number, row in enumerate(columns.records(where, whole, kind, lambda names: form.of_columns(names, where)), 1):
            yield f"{where}:{number}", form.of_row(f"{where}:{number}", row)
