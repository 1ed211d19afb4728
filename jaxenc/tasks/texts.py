"""What tasks on one text or two share: reading them from files, and their rows."""

import abc
import dataclasses
import itertools
import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, TypeVar

import numpy as np

from jaxenc.errors import UserError
from jaxenc.tasks import records, scores
from jaxenc.tasks.files import FilesConfig
from jaxenc.tasks.framing import TRUNCATIONS, Framing
from jaxenc.tasks.records import Record
from jaxenc.tasks.task import Example, Features, Task

# The place of a row of a file in which quotes are part of the text; a text as a CSV quotes it, where a quote within it is written twice.
LITERAL = re.compile(r"\.(tsv|tab|txt)(\.\w+)?:\d+$", re.IGNORECASE)
QUOTED = re.compile(r'"(?:[^"]|"")*"')


@dataclasses.dataclass(frozen=True)
class TextExample(Example):
    """texts: one or two. part: the name of the file that it is from, without folder and suffix."""

    texts: tuple[str, ...]
    part: str = dataclasses.field(default="", kw_only=True)


E = TypeVar("E", bound=TextExample)


@dataclasses.dataclass(frozen=True)
class TextTask(Task[E]):
    """A task of one text or of a pair (Devlin et al. 2018, section 4.1).

    text: columns of the text, or of both texts; `A|B` is the first of A and B that the file has.
    label: column of the label.
    id: column of an example's name. '' = its number in the split, from 0.
    truncation: which text is cut where a row has no room: `longest` (token by token), `first`, `second`, or `refuse`.
    double_unordered: whether each training pair is also used with its texts swapped, as ELECTRA does for MRPC and STS-B.
    """

    pads_left: ClassVar[bool] = True

    text: tuple[str, ...] = ("text",)
    label: str = "label"
    id: str = ""
    truncation: str = "longest"
    double_unordered: bool = False

    def __post_init__(self) -> None:
        if len(self.text) not in (1, 2):
            raise UserError(f"task.text names {len(self.text)} columns", fix="name one, or two for pairs")
        if self.truncation not in TRUNCATIONS:
            raise UserError(f"task.truncation is {self.truncation!r}", fix=f"use {', '.join(TRUNCATIONS)}")
        read = [one for column in (*self.text, *self.label_columns) for one in column.split(records.OR)]
        if "" in read:
            raise UserError("task.text or task.label names a column of no name", fix="name a column, or give its number")
        if twice := next((one for one in read if read.count(one) > 1), ""):
            raise UserError(f"task.text and task.label name the column {twice} twice", fix="give texts and label columns of their own")
        if self.double_unordered and len(self.text) == 1:
            raise UserError("task.double_unordered is set, and task.text names one column", fix="name two, or unset it")

    @property
    def columns(self) -> tuple[str, ...]:
        """See `Task.columns`: those of the texts."""
        return self.text

    @property
    def label_columns(self) -> tuple[str, ...]:
        """The columns that hold the label."""
        return (self.label,)

    @abc.abstractmethod
    def example(self, record: Record, name: str, part: str, labelled: bool) -> E:
        """The example of a record. labelled: whether its label must be known. Raises UserError for a label that the task does not have."""

    def examples(self, files: FilesConfig, split: str) -> list[E]:
        """See `Task.examples`. Doubled pairs come first in their own order and then all swapped (google-research/electra
        finetune/classification/classification_tasks.py)."""
        scores.require()
        rows = itertools.islice(records.of_split(files, split, self.text, self.label_columns, self._ids), files.limit(split) or None)
        named = enumerate(rows)
        with records.choosing(text=self.text, **{"label" if self.label else "labels": self.label_columns}):
            found = [self.example(record, self._name(record, str(number)), part, split != "test") for number, (record, part) in named]
        if self.double_unordered and split == "train":
            found += [dataclasses.replace(example, texts=example.texts[::-1]) for example in found]
        return found

    def of_record(self, record: Mapping[str, Any], where: str) -> E:
        """See `Task.of_record`."""
        found = records.picked(record, where, self.text, self._ids)
        return self.example(found, self._name(found, where), "", False)

    def rows_of(self, examples: Sequence[E], framing: Framing, labels: Mapping[str, np.ndarray]) -> Features:
        """Features with one row per example and the labels of the task's head, [examples, ...]. places: i32 [examples, texts], how many
        tokens of each text are in its row."""
        columns = [framing.ids([example.texts[i] for example in examples]) for i in range(len(self.text))]
        framed = framing.rows(list(zip(*columns, strict=True)), [example.where for example in examples])
        numbers = np.arange(len(examples), dtype=np.int32)
        return Features({**framed.rows, **labels}, numbers, framed.kept, int(framed.shortened.sum()))

    def notes(self, examples: Sequence[E], features: Features) -> list[str]:
        """See `Task.notes`: texts that are empty, or of which the tokenizer keeps nothing, and those of a .tsv that look quoted."""
        empty = int((features.places == 0).any(axis=1).sum())
        quoted = sum(bool(QUOTED.fullmatch(text)) for one in examples if LITERAL.search(one.where) for text in one.texts)
        is_quoted = f"texts that begin and end with a quote, as writers of CSV quote them: {quoted:,}; if so, save the file as .csv"
        return [f"{empty:,} of {len(examples):,} examples have a text without a token"] * (empty > 0) + [is_quoted] * (quoted > 0)

    @property
    def _ids(self) -> tuple[str, ...]:
        return (self.id,) if self.id else ()

    def _name(self, record: Record, otherwise: str) -> str:
        return (self.id and record.name(self.id)) or otherwise


def submitted(submits: Sequence[str], examples: Sequence[TextExample], answers: Sequence[str]) -> dict[str, str]:
    """{file: content} of gluebenchmark.com: a header, then name and answer of each example. submits: as of `Classify`. A file that is for
    another part of the split than these examples are from is left out, never filled with theirs."""
    found = {}
    for one in submits:
        part, _, file = one.rpartition("=")
        rows = [f"{example.name}\t{answer}\n" for example, answer in zip(examples, answers, strict=True) if part in ("", example.part)]
        if rows:
            found[file] = "index\tprediction\n" + "".join(rows)
    return found
