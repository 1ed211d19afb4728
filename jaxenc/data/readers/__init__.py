"""Reads files of many kinds, archives, folders and URLs as documents, in order and in bounded memory."""

from collections.abc import Iterator, Sequence

from jaxenc.data.readers.document import Counts, Document, Reading
from jaxenc.data.readers.inputs import check_file, inputs
from jaxenc.data.readers.progress import Progress, reported
from jaxenc.data.readers.sources import Source
from jaxenc.errors import UserError

__all__ = [
    "Counts", "Document", "Progress", "Reading", "Source", "advice", "check_file", "documents", "inputs", "progress_of",
    "reported", "watched",
]  # fmt: skip


def documents(sources: Sequence[Source], reading: Reading, counts: Counts) -> Iterator[Document]:
    """The documents of `sources` (see `inputs`), in order; `counts` is updated while they are read.

    Raises UserError naming the file, with its line or row, for what cannot be read, and when the sources hold no document at all.
    """
    return _documents(sources, reading, counts, Progress(0))


def watched(sources: Sequence[Source], reading: Reading, counts: Counts, what: str) -> Iterator[Document]:
    """As `documents`, with a bar or a progress line on stderr every five seconds: `what`, how much has been read and how long the rest
    takes."""
    progress = progress_of(sources)
    return reported(_documents(sources, reading, counts, progress), what, progress)


def progress_of(sources: Sequence[Source]) -> Progress:
    """The progress of reading `sources`, for `Source.documents` and `reported`; without a total where a size is unknown."""
    sizes = [source.size for source in sources]
    return Progress(sum(sizes) if all(sizes) else 0)


def advice(sources: Sequence[Source], counts: Counts) -> str:
    """A hint for the user about how the sources were read, "" for none: one file without a blank line is one document, and nothing of it
    can be held out."""
    if len(sources) == 1 and counts.undivided_files == 1:
        how = "put a blank line between two documents, or read each line as one with --document line"
        return f"{sources[0].name}: has no blank line, so it is one document: {how}"
    return ""


def _documents(sources: Sequence[Source], reading: Reading, counts: Counts, progress: Progress) -> Iterator[Document]:
    found = False
    for source in sources:
        for document in source.documents(reading, counts, progress):
            found = True
            yield document
    if not found:
        names = ", ".join(source.name for source in sources[:3]) + (f" and {len(sources) - 3:,} more" if len(sources) > 3 else "")
        raise UserError("no document found", names, "name files with at least one line of text")
