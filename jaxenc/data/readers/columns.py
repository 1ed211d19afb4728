"""Tables of columns: Parquet, and Arrow's IPC as files (Feather) and as streams, a batch of rows at a time."""

from collections.abc import Iterator
from typing import IO, Any

from jaxenc.data.readers import fields
from jaxenc.data.readers.document import Counts, Document, Reading, documents_of
from jaxenc.errors import UserError

ROWS = 256  # rows of a batch
BUFFER = 1 << 20  # bytes of read-ahead


def documents(name: str, file: IO[bytes], reading: Reading, counts: Counts, kind: str) -> Iterator[Document]:
    """A document for each row with text; the source of each is `name` and the number of its row, from 1.

    file: seekable. kind: `parquet` or `arrow`. The text is in the column that `reading` names, with dots for nested columns; without a name
    it is `text` or `words`, or the only one. Of Parquet only that column is read.

    Raises UserError for a missing column or one without text, which names the columns that exist, and for a damaged file.
    """
    try:
        import pyarrow
    except ImportError as error:
        raise UserError("needs the package pyarrow", name, "install it with `pip install 'jaxenc[data]'`") from error
    row = 0
    try:
        for field, batch in (_parquet if kind == "parquet" else _arrow)(name, file, reading.field):
            for record in batch:
                row += 1
                where = f"{name}:{row}"
                yield from documents_of(fields.text_of(record, field, where, counts), where, counts)
    except (pyarrow.ArrowException, OSError, EOFError, UnicodeDecodeError, MemoryError) as error:
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise UserError(f"cannot be read after row {row:,} ({reason})", name, "make the file again") from error


def _parquet(name: str, file: IO[bytes], wanted: str) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    import pyarrow.parquet

    table = pyarrow.parquet.ParquetFile(file, buffer_size=BUFFER, pre_buffer=False)
    field = _text_column(table.schema_arrow, wanted, name)
    for batch in table.iter_batches(ROWS, columns=[field], use_threads=False):
        batch.validate(full=True)
        yield field, batch.to_pylist()


def _arrow(name: str, file: IO[bytes], wanted: str) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    import pyarrow.ipc

    is_file = file.read(6) == b"ARROW1"
    file.seek(0)
    table = pyarrow.ipc.open_file(file) if is_file else pyarrow.ipc.open_stream(file)
    field = _text_column(table.schema, wanted, name)
    top = table.schema.names.index(field if field in table.schema.names else field.split(".")[0])
    batches = (table.get_batch(i) for i in range(table.num_record_batches)) if is_file else iter(table)
    for batch in batches:
        part = batch.select([top])
        for start in range(0, part.num_rows, ROWS):
            rows = part.slice(start, ROWS)
            rows.validate(full=True)  # pyarrow would follow offsets that point outside the data
            yield field, rows.to_pylist()


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
