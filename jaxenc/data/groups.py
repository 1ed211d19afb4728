"""Documents cut into groups, the unit of work of a build. Where a group ends depends on the inputs alone, not on the workers."""

import dataclasses
from collections.abc import Iterable, Iterator, Sequence

from jaxenc.data.readers import Counts, Document, Progress, Reading, Source

PART_BYTES = 1 << 22
PART_END = Document("", ())  # comes after the last document of a part


@dataclasses.dataclass(frozen=True)
class Group:
    """name: of the part and of the group in it; names sort in the order of the text. documents: the lines of each."""

    name: str
    documents: tuple[tuple[str, ...], ...]


@dataclasses.dataclass(frozen=True)
class Text:
    """All text of a build: its sources in order, and how they become documents."""

    sources: tuple[Source, ...]
    reading: Reading

    @property
    def parts(self) -> list[tuple[Source, ...]]:
        """Runs of neighbouring sources, each read by one process: of PART_BYTES or more, except the last.

        A source of unknown size (0) ends a run. No group crosses from one part into the next, so parts can be read in any order and in
        parallel.
        """
        out: list[tuple[Source, ...]] = []
        run: list[Source] = []
        size = 0
        for source in self.sources:
            run.append(source)
            size += source.size or PART_BYTES
            if size >= PART_BYTES:
                out.append(tuple(run))
                run, size = [], 0
        return [*out, tuple(run)] if run else out

    def documents(self, counts: Counts, progress: Progress) -> Iterator[Document]:
        """The documents of all parts in order, PART_END after each part. Raises UserError as `readers.documents`."""
        for part in self.parts:
            yield from of_part(part, self.reading, counts, progress)


def of_part(part: Sequence[Source], reading: Reading, counts: Counts, progress: Progress) -> Iterator[Document]:
    """The documents of one part, PART_END after them. Raises UserError as `readers.documents`."""
    for source in part:
        yield from source.documents(reading, counts, progress)
    yield PART_END


def groups(found: Iterable[Document], characters: int, part: int = 0) -> Iterator[Group]:
    """Groups of at least `characters` each, except the last of a part. found: as of `Text.documents`; part: number of its first part."""
    held: list[tuple[str, ...]] = []
    size = number = 0
    for document in found:
        if document.lines:
            held.append(document.lines)
            size += sum(map(len, document.lines))
        if held and (size >= characters or not document.lines):
            yield Group(f"{part:06d}-{number:08d}", tuple(held))
            held, size, number = [], 0, number + 1
        if not document.lines:
            part, number = part + 1, 0
