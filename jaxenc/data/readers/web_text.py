"""Common Crawl's WET files: text that was extracted from web pages."""

import io
from collections.abc import Iterator

from jaxenc.data.readers.document import Counts, Document, documents_of
from jaxenc.data.readers.encoding import decoded
from jaxenc.errors import UserError

LONGEST = 1 << 28  # bytes of a record
_HEADER = 1 << 16  # bytes of a line of a record's header


def documents(name: str, file: io.BufferedReader, counts: Counts) -> Iterator[Document]:
    """A document for each page; the source of each is `name` and the page's address.

    Source of the layout: WARC 1.0 (ISO 28500), records of the type `conversion`. Records that describe the file are left out. Raises
    UserError for a WARC file with the pages themselves, and for a damaged file.
    """
    while header := _header(name, file):
        try:
            size = int(header["content-length"])
        except (KeyError, ValueError) as error:
            raise UserError("damaged: a record without its length", name, "get it again") from error
        kind = header.get("warc-type")
        if kind in ("response", "resource", "revisit"):
            raise UserError(
                "holds web pages (WARC) and not their text", name, "use the WET file of the same part, or take the text out first"
            )
        if not 0 <= size <= LONGEST:
            raise UserError(f"damaged: a record of {size:,} bytes", name, "get it again")
        body = file.read(size)
        if len(body) < size:
            raise UserError("damaged: it ends inside a record", name, "get it again")
        if kind == "conversion":
            where = f"{name}:{header.get('warc-target-uri', '')}"
            yield from documents_of(decoded(body, where, counts), where, counts)


def _header(name: str, file: io.BufferedReader) -> dict[str, str]:
    """The header fields of the next record, by lower-case name; {} at the end of the file."""
    line = b"\n"
    while line and not line.strip():
        line = file.readline(_HEADER)
    if line and not line.startswith(b"WARC/"):
        raise UserError("damaged: no record begins where one should", name, "get it again")
    fields = {"version": line.decode("utf-8", "replace").strip()} if line else {}
    while line and (line := file.readline(_HEADER)).strip():
        key, _, value = line.decode("utf-8", "replace").partition(":")
        fields[key.strip().lower()] = value.strip()
    return fields
