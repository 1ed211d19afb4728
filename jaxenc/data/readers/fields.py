"""The field of a record that holds its text."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from jaxenc.data.readers.document import Counts
from jaxenc.errors import UserError

USUAL = ("text", "words")  # the fields that are read without --field
_NAMED = 12  # fields that a message names
MISSING = object()  # what `nested` returns for a name that a record does not have


def text_of(record: Mapping[str, Any], field: str, where: str, counts: Counts) -> str:
    """The text of a record: a string, bytes of UTF-8, a list of either, joined by one blank, or "" for null.

    field: its name, with dots for nested fields; "" for the one of USUAL that the record has. Raises UserError, which starts with `where`
    and names the fields of the record, for a field that is missing or holds something else.
    """
    usual = record.get(field) if field else record.get("text") if record.get("words") is None else None
    if isinstance(usual, str):
        return usual
    if not field:
        found = [name for name in USUAL if record.get(name) is not None]
        if len(found) > 1:
            raise UserError("has both text and words", where, "choose with --field text or --field words")
        field = found[0] if found else next((name for name in USUAL if name in record), "")
        if not field:
            raise UserError("has no text", where, _advice(_names(record)))
    value = nested(record, field)
    if value is MISSING:
        raise UserError(f"has no field {field}", where, _advice(_names(record)))
    parts = value if isinstance(value, list) else [value]
    texts = [part.decode("utf-8", "replace") if isinstance(part, bytes) else part for part in parts if part is not None]
    if not all(isinstance(text, str) for text in texts):
        wrong = next(type(text).__name__ for text in texts if not isinstance(text, str))
        raise UserError(f"the field {field} holds {wrong}, and not a text or a list of texts", where, _advice(_names(record)))
    counts.invalid += sum(text.count("\ufffd") - part.count("\ufffd".encode()) for text, part in _bytes(texts, parts))
    return " ".join(texts)


def column(names: Sequence[str], field: str, where: str) -> str:
    """The field to read of a table with the columns `names`. Raises UserError, with `where` and the columns, if it is missing."""
    if not field and len(names) == 1:
        return names[0]
    found = [name for name in ((field,) if field else USUAL) if name in names or name.split(".")[0] in names]
    if len(found) > 1:
        raise UserError("has both text and words", where, "choose with --field text or --field words")
    if not found:
        raise UserError(f"has no column {field or 'text'}", where, _advice(names))
    if list(names).count(found[0]) > 1:
        raise UserError(f"has several columns {found[0]}", where, "rename all but the one that holds the text")
    return found[0]


def _advice(names: Iterable[str]) -> str:
    names = list(names)
    listed = ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")
    return f"name the one that holds the text with --field: {listed}" if names else "it is empty: leave it out"


def _names(record: Mapping[str, Any]) -> list[str]:
    """The fields of a record; nested ones with a dot."""
    return [
        name
        for outer, value in record.items()
        for name in ([f"{outer}.{inner}" for inner in value] if isinstance(value, Mapping) and value else [outer])
    ]


def nested(record: Mapping[str, Any], field: str) -> Any:
    """The value of a dotted name, None below a null, or MISSING. A key that itself contains the dots comes first."""
    if field in record:
        return record[field]
    value: Any = record
    for name in field.split("."):
        if value is None:
            return None
        if not isinstance(value, Mapping) or name not in value:
            return MISSING
        value = value[name]
    return value


def _bytes(texts: Sequence[str], parts: Sequence[Any]) -> Iterable[tuple[str, bytes]]:
    """(text, bytes that it was decoded from) of the parts that are bytes."""
    return ((text, part) for text, part in zip(texts, (p for p in parts if p is not None), strict=True) if isinstance(part, bytes))
