"""Documents cut into groups, the unit of work of a build. Where a group ends depends on the inputs alone, never on who reads them."""

import dataclasses
from collections.abc import Iterable, Iterator, Sequence

from jaxenc.data import readers
from jaxenc.data.manifest import Input
from jaxenc.data.readers import Counts, Document

PART_BYTES = 1 << 22
PART_END = Document("", ())  # stands after the last document of a part


@dataclasses.dataclass(frozen=True)
class Group:
    """name: of the part and of the group in it; names sort in the order of the text. documents: the lines of each."""

    name: str
    documents: tuple[tuple[str, ...], ...]


def parts(inputs: Sequence[Input]) -> list[tuple[str, ...]]:
    """Runs of neighbouring inputs, for one process to read: of PART_BYTES or more, but for the last. One of unknown size (0) ends a run.

    No group crosses from one part into the next, so parts can be read in any order and at the same time.
    """
    out: list[tuple[str, ...]] = []
    run: list[str] = []
    size = 0
    for item in inputs:
        run.append(item.name)
        size += item.size or PART_BYTES
        if size >= PART_BYTES:
            out.append(tuple(run))
            run, size = [], 0
    return [*out, tuple(run)] if run else out


def documents(parts: Iterable[Sequence[str]], counts: Counts) -> Iterator[Document]:
    """The documents of `parts` in order, PART_END after each part. Raises UserError as `readers.documents`."""
    for part in parts:
        for name in part:
            yield from readers.of_input(name, counts)
        yield PART_END


def groups(found: Iterable[Document], characters: int, part: int = 0) -> Iterator[Group]:
    """Groups of at least `characters` each, but for the last of a part. found: as `documents` gives it; part: number of its first part."""
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
