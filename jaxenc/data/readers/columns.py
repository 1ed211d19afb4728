"""Tables of columns: Parquet, and Arrow's IPC as files (Feather) and as streams, a batch of rows at a time."""

import json
from collections.abc import Callable, Iterator
from typing import IO, Any

from jaxenc.data.readers import fields
from jaxenc.data.readers.document import Counts, Document, Reading, documents_of
from jaxenc.errors import UserError

ROWS = 256  # rows of a batch
BUFFER = 1 << 20  # bytes of read-ahead

# From the names of all columns to those that are read, with dots for nested ones.
Choose = Callable[[list[str]], list[str]]


def documents(name: str, file: IO[bytes], reading: Reading, counts: Counts, kind: str) -> Iterator[Document]:
    """A document for each row with text; the source of each is `name` and the number of its row, from 1.

    file: seekable. kind: `parquet` or `arrow`. The text is in the column that `reading` names, with dots for nested columns; without a name
    it is `text` or `words`, or the only one. Of Parquet only that column is read.

    Raises UserError for a missing column or one without text, which names the columns that exist, and for a damaged file.
    """
    found = _rows(name, file, kind, lambda schema: [_text_column(schema, reading.field, name)])
    for row, (field, record) in enumerate(found, 1):
        where = f"{name}:{row}"
        yield from documents_of(fields.text_of(record, field[0], where, counts), where, counts)


def records(name: str, file: IO[bytes], kind: str, choose: Choose) -> Iterator[dict[str, Any]]:
    """The rows as {column: value}, with only the columns that `choose` picks from the names of all; the labels of a dataset of Hugging Face
    are their names, and "" where they are unknown. file, kind: as in `documents`. Raises UserError for a damaged file."""
    labels: dict[str, Any] = {}

    def chosen(schema: Any) -> list[str]:
        names = choose(schema.names)
        labels.update({name: classes for name in names if (classes := _classes(schema, name))})
        return names

    for _, record in _rows(name, file, kind, chosen):
        yield record | {column: _named(record[column], classes) for column, classes in labels.items()}


def _rows(name: str, file: IO[bytes], kind: str, choose: Callable[[Any], list[str]]) -> Iterator[tuple[list[str], dict[str, Any]]]:
    """(columns that `choose` picks by the schema, row) of each row. Raises UserError for a damaged file."""
    try:
        import pyarrow
    except ImportError as error:
        raise UserError("needs the package pyarrow", name, "install it with `pip install 'jaxenc[data]'`") from error
    row = 0
    try:
        for chosen, batch in (_parquet if kind == "parquet" else _arrow)(file, choose):
            for record in batch:
                row += 1
                yield chosen, record
    except (pyarrow.ArrowException, OSError, EOFError, UnicodeDecodeError, MemoryError) as error:
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise UserError(f"cannot be read after row {row:,} ({reason})", name, "make the file again") from error


def _parquet(file: IO[bytes], choose: Callable[[Any], list[str]]) -> Iterator[tuple[list[str], list[dict[str, Any]]]]:
    import pyarrow.parquet

    table = pyarrow.parquet.ParquetFile(file, buffer_size=BUFFER, pre_buffer=False)
    chosen = choose(table.schema_arrow)
    for batch in table.iter_batches(ROWS, columns=chosen, use_threads=False):
        batch.validate(full=True)
        yield chosen, batch.to_pylist()


def _arrow(file: IO[bytes], choose: Callable[[Any], list[str]]) -> Iterator[tuple[list[str], list[dict[str, Any]]]]:
    import pyarrow.ipc

    is_file = file.read(6) == b"ARROW1"
    file.seek(0)
    table = pyarrow.ipc.open_file(file) if is_file else pyarrow.ipc.open_stream(file)
    names, chosen = table.schema.names, choose(table.schema)
    tops = [names.index(field if field in names else field.split(".")[0]) for field in chosen]
    batches = (table.get_batch(i) for i in range(table.num_record_batches)) if is_file else iter(table)
    for batch in batches:
        part = batch.select(tops)
        for start in range(0, part.num_rows, ROWS):
            rows = part.slice(start, ROWS)
            rows.validate(full=True)  # pyarrow would follow offsets that point outside the data
            yield chosen, rows.to_pylist()


def _classes(schema: Any, name: str) -> list[str]:
    """The names of the labels in a column, as `datasets` notes them in the schema; [] for a column without."""
    try:
        feature = json.loads((schema.metadata or {}).get(b"huggingface", b"{}")).get("info", {}).get("features", {}).get(name)
    except (ValueError, AttributeError):
        return []
    if isinstance(feature, list) and len(feature) == 1:  # a sequence, as older versions write it
        feature = feature[0]
    while isinstance(feature, dict) and isinstance(feature.get("feature"), dict):
        feature = feature["feature"]
    names = feature.get("names") if isinstance(feature, dict) and feature.get("_type") == "ClassLabel" else None
    return names if isinstance(names, list) and all(isinstance(one, str) for one in names) else []


def _named(value: Any, classes: list[str]) -> Any:
    if isinstance(value, list):
        return [_named(one, classes) for one in value]
    known = isinstance(value, int) and value < len(classes)
    return (classes[value] if value >= 0 else "") if known else value  # -1: a split without labels


def _text_column(schema: Any, wanted: str, name: str) -> str:
    """The column to read. Raises UserError for a missing column and for one whose type is not text."""
    import pyarrow

    field = fields.column(schema.names, wanted, name)
    kind: Any = None
    if field in schema.names:
        kind = schema.field(field).type
        while pyarrow.types.is_list(kind) or pyarrow.types.is_large_list(kind) or pyarrow.types.is_dictionary(kind):
            kind = kind.value_type
        types = pyarrow.types
        text = (types.is_string, types.is_large_string, types.is_string_view, types.is_binary, types.is_large_binary, types.is_null)
        if not any(is_kind(kind) for is_kind in text):
            held = ", ".join(f"{f.name} ({f.type})" for f in schema)
            raise UserError(f"the column {field} holds {kind} and no text", name, f"name the one that does with --field: {held[:500]}")
    return field
