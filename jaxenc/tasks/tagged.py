"""Sentences of tagged words, from files of columns and from records; unknown tags are refused."""

import dataclasses
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from jaxenc.data import remote
from jaxenc.data.readers import compressed
from jaxenc.data.readers.document import Counts
from jaxenc.data.readers.sources import READABLE
from jaxenc.data.readers.streams import HEAD
from jaxenc.errors import UserError
from jaxenc.files import user_errors
from jaxenc.storage import is_url
from jaxenc.tasks import conll, tag_scores
from jaxenc.tasks.task import Example

# The columns of records, unless the task names others. A text is split at white space.
WORDS, TAGS, TEXT = "tokens", "tags", "text"
BIO, SCHEMES = "bio", ("bio", "none")
# Files of columns, where sentences are predicted: a .txt has a sentence a line there.
OF_COLUMNS = (".conll", ".conllu", ".conllx", ".bio", ".iob", ".iob2")


@dataclasses.dataclass(frozen=True)
class Tagged(Example):
    """words: of one sentence. tags: one per word, () if they are unknown."""

    words: tuple[str, ...]
    tags: tuple[str, ...] = ()

    @property
    def right(self) -> list[str] | None:
        """See `Example.right`."""
        return list(self.tags) or None


@dataclasses.dataclass(frozen=True)
class Columns:
    """The columns of words and tags, and the valid tags; the fields are those of `Tag`. labels: () for any tag of the scheme."""

    words: str
    tags: str
    labels: tuple[str, ...]
    scheme: str

    def of_file(self, file: str, labelled: bool, first: int) -> list[Tagged]:
        """The sentences of a file of columns (conll.py), numbered from `first` where they have no name.

        labelled: whether tags must be known. Raises UserError, with file and line, for an invalid tag and for a file without tags that
        must have them.
        """
        found = []
        for number, one in enumerate(conll.sentences(file, self.words, self.tags), first):
            if labelled and not one.tags:
                raise UserError("has no tags", file, "name a file with a word and its tag per line; one without tags is for data.test")
            self.check(one.tags, [f"{file}:{line}" for line in one.lines[: len(one.tags)]])
            found.append(Tagged(one.name or str(number), f"{file}:{one.lines[0]}", one.words, one.tags))
        return found

    def of_records(self, records: Iterable[tuple[str, Mapping[str, Any]]], labelled: bool, first: int) -> list[Tagged]:
        """The sentences of (where, record), as `of_file`. A record has a list of words and a list of tags: names, or their numbers in
        `labels`."""
        found = []
        for number, (where, record) in enumerate(records, first):
            one = dataclasses.replace(self.of_record(record, where), name=str(number))
            column = self.tags or TAGS
            value = record.get(column)
            if labelled and value is None:
                raise UserError(f"has no column {column}", where, f"set task.tags to one of {', '.join(record)}")
            tags = () if value is None else tuple(self._named(tag, where) for tag in _listed(value, column, where))
            if value is not None and len(tags) != len(one.words):
                raise UserError(f"has {len(one.words)} words and {len(tags)} tags", where, "give one tag per word")
            self.check(tags, [where] * len(tags))
            found.append(dataclasses.replace(one, tags=tags))
        return found

    def words_of(self, file: str) -> list[Tagged]:
        """The sentences of a file of columns without their tags, numbered from 0 where they have no name; [] if its name says that it is
        none. Raises UserError for a .txt whose lines are words with tags of `labels`: read as text, each would be a sentence."""
        name = file.lower().removesuffix(compressed.suffix_of(file))
        if name.endswith(OF_COLUMNS):
            found = conll.sentences(file, self.words)
            return [Tagged(one.name or str(i), f"{file}:{one.lines[0]}", one.words) for i, one in enumerate(found)]
        if name.endswith(".txt") and (is_url(file) or os.path.isfile(file)) and self._are_tagged(_head(file)):
            raise UserError("has a word and its tag a line, and a .txt is read as a sentence a line", file, "save it as a .conll file")
        return []

    def _are_tagged(self, lines: Sequence[str]) -> bool:
        rows = [line.split() for line in lines if line.strip() and not line.startswith((conll.COMMENT, conll.DOCUMENT_START))]
        columns = list(zip(*rows, strict=False))[1:] if len({len(row) for row in rows}) == 1 else []
        return len(rows) > 1 and any({*column} <= {*self.labels} for column in columns)

    def of_record(self, record: Mapping[str, Any], where: str) -> Tagged:
        """A sentence without tags: the list of words of a record or, in its place or under the key `text`, a text, which is split at white
        space. Raises UserError for a record without words."""
        column = self.words or WORDS
        value = record.get(column, record.get(TEXT))
        if value is None:
            raise UserError(f"has no column {column}", where, f'give a list of words: {{"{column}": ["Hello", "world"]}}')
        words = value.split() if isinstance(value, str) else _listed(value, column, where)
        if not words:
            raise UserError(f"the column {column} holds no words", where, "leave the row out, or give it a list of words")
        if other := [word for word in words if not isinstance(word, str)]:
            raise UserError(f"the column {column} holds {other[0]!r}, which is not a word", where, "give a list of words")
        return Tagged(where, where, tuple(words))

    def check(self, tags: Sequence[str], wheres: Sequence[str]) -> None:
        """Raises UserError for an invalid tag. wheres: the file and line of each."""
        for tag, where in zip(tags, wheres, strict=True):
            if self.labels and tag not in self.labels:
                known = ", ".join(self.labels)
                raise UserError(f"the tag {tag!r} is none of {known}", where, "fix it, or name all tags in task.labels")
            if self.scheme == BIO and not tag_scores.is_tag(tag):
                fix = "set task.scheme=none for tags of single words, or task.tags to the column of BIO tags"
                raise UserError(f"the tag {tag!r} begins with no B- or I-", where, fix)

    def _named(self, tag: Any, where: str) -> str:
        if isinstance(tag, str):
            return tag
        number = isinstance(tag, (int, np.integer))
        if number and 0 <= tag < len(self.labels):
            return self.labels[tag]
        fix = "name the tags in task.labels, in the order of their numbers" if number else "give the names of tags"
        raise UserError(f"the tag {tag!r} has no name", where, fix)


def _head(file: str) -> list[str]:
    """The first lines of a file, each whole."""
    with user_errors(file, READABLE), open(remote.local_copy(file), "rb", buffering=HEAD) as raw:
        unpacked, _ = compressed.unpacked(raw, file, Counts())
        return unpacked.peek(HEAD)[:HEAD].rpartition(b"\n")[0].decode("utf-8", "replace").split("\n")


def _listed(value: Any, column: str, where: str) -> list[Any]:
    if not isinstance(value, (list, tuple, np.ndarray)):
        raise UserError(f"the column {column} holds {value!r:.40}, which is not a list", where, "give a list with one item per word")
    return list(value)
