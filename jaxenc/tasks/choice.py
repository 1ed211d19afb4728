"""The right one of several texts: SWAG, RACE, CommonsenseQA."""

import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np

from jaxenc.config import at_least
from jaxenc.errors import UserError
from jaxenc.families.contract import ModelConfig
from jaxenc.objectives.heads import HeadsConfig
from jaxenc.tasks import records, scores
from jaxenc.tasks.files import FilesConfig
from jaxenc.tasks.framing import TRUNCATIONS, Framing
from jaxenc.tasks.records import Record
from jaxenc.tasks.task import Example, Features, Task
from jaxenc.tasks.text_head import on_text

HEAD = "choice"


@dataclasses.dataclass(frozen=True)
class Chosen(Example):
    """prompt: the first text of every pair. choices: the second texts. label: the number of the right choice, from 0;
    -1 if it is unknown."""

    prompt: str
    choices: tuple[str, ...]
    label: int = -1

    @property
    def right(self) -> int | None:
        """See `Example.right`."""
        return self.label if self.label >= 0 else None


@dataclasses.dataclass(frozen=True)
class Choice(Task[Chosen]):
    """Multiple choice: a softmax over one score for each pair of prompt and choice (Devlin et al. 2018, section 4.4).

    prompt: columns of the first text, joined by a blank; `A|B` is the first of A and B that the file has.
    question: column whose text precedes each choice, joined by a blank. '' = none.
    blank: mark in the question that a choice replaces, such as RACE's `_`. '' = none; a question without it comes before the choice.
    choices: column with the list of choices, or the columns of all choices.
    keys: column with the list of the choices' names, such as A to E. '' = labels are numbers from 0 or letters from A.
    label: column of the right choice.
    id: column of an example's name. '' = its number in the split, from 0.
    metric: score of the dev set that is quoted first: `accuracy`.
    count: choices in a row; examples with fewer are filled with empty ones, which are never chosen. 0 = the most of any training example.
    truncation: which text is cut where a row has no room: `longest` (token by token), `first`, `second`, or `refuse`.
    """

    kind: ClassVar[str] = "choice"
    pads_left: ClassVar[bool] = True

    prompt: tuple[str, ...] = ("prompt",)
    question: str = ""
    blank: str = ""
    choices: tuple[str, ...] = ("choices",)
    keys: str = ""
    label: str = "label"
    id: str = ""
    count: int = 0
    metric: str = "accuracy"
    truncation: str = "longest"

    def __post_init__(self) -> None:
        if not self.prompt or not self.choices:
            raise UserError("task.prompt or task.choices is empty", fix="name the columns of both")
        if self.metric != "accuracy":
            raise UserError(f"task.metric is {self.metric!r}", fix="use accuracy")
        if self.truncation not in TRUNCATIONS:
            raise UserError(f"task.truncation is {self.truncation!r}", fix=f"use {', '.join(TRUNCATIONS)}")
        at_least(0, "task", self, "count")

    @property
    def columns(self) -> tuple[str, ...]:
        """See `Task.columns`."""
        return (*self.prompt, *((self.question,) if self.question else ()), *self.choices)

    def examples(self, files: FilesConfig, split: str) -> list[Chosen]:
        """See `Task.examples`. A record with lists of questions, options and answers, as in the files of RACE, is an example for each."""
        optional = tuple(column for column in (self.keys, self.id) if column)
        rows = records.of_split(files, split, self.columns, (self.label,), optional)
        singles = (single for record, _ in rows for single in self._unrolled(record))
        numbered = enumerate(itertools.islice(singles, files.limit(split) or None))
        with records.choosing(prompt=self.prompt, question=(self.question,), choices=self.choices, label=(self.label,)):
            return [self._example(record, str(number), split != "test") for number, record in numbered]

    def fitted(self, train: Sequence[Chosen]) -> Self:
        """This task with the number of choices that the training examples have."""
        return self if self.count else dataclasses.replace(self, count=max(len(example.choices) for example in train))

    def objective(self, model: ModelConfig) -> HeadsConfig:
        """The head that scores the vector of each pair."""
        return on_text(model, HEAD, choices=self.count)

    def features(self, examples: Sequence[Chosen], framing: Framing) -> Features:
        """The rows are [examples, count, length]; an empty choice is padding."""
        if many := next((example for example in examples if len(example.choices) > self.count), None):
            fix = f"set task.count={len(many.choices)} or more for training"
            raise UserError(f"has {len(many.choices)} choices, and the rows of the model have {self.count}", many.where, fix)
        prompts = framing.ids([example.prompt for example in examples])
        ids = framing.ids([choice for example in examples for choice in example.choices])
        places = [(row, choice) for row, example in enumerate(examples) for choice in range(len(example.choices))]
        pairs = [(prompts[row], one) for (row, _), one in zip(places, ids, strict=True)]
        framed = framing.rows(pairs, [examples[row].where for row, _ in places])
        rows, columns = np.array(places, np.int64).reshape(-1, 2).T
        out = {}
        for name, values in framed.rows.items():
            empty = framing.tokenizer.vocabulary.pad if name == "tokens" else 0
            out[name] = np.full((len(examples), self.count, values.shape[1]), empty, np.int32)
            out[name][rows, columns] = values
        labels = np.array([example.label for example in examples], np.int32)
        shortened = len(set(rows[framed.shortened].tolist()))
        return Features({**out, "choice": labels}, np.arange(len(examples), dtype=np.int32), (), shortened)

    def answers(self, examples: Sequence[Chosen], features: Features, predictions: Mapping[str, np.ndarray]) -> list[Any]:
        """The number of the likeliest choice, the first of equals. predictions: {"choice": [rows, count]}."""
        found = predictions[HEAD]
        if found.shape != (len(examples), self.count):
            raise ValueError(f"predictions {found.shape} for {len(examples)} examples with {self.count} choices")
        return [int(row[: len(example.choices)].argmax()) for row, example in zip(found, examples, strict=True)]

    def score(self, answers: Sequence[Any], examples: Sequence[Chosen]) -> dict[str, float]:
        """See `scores.accuracy`."""
        known = [(example.label, answer) for example, answer in zip(examples, answers, strict=True) if example.label >= 0]
        return scores.accuracy([label for label, _ in known], [answer for _, answer in known])

    def of_record(self, record: Mapping[str, Any], where: str) -> Chosen:
        """See `Task.of_record`."""
        found = records.picked(record, where, self.columns, tuple(column for column in (self.id,) if column))
        return self._example(found, where, False)

    def _unrolled(self, record: Record) -> Iterator[Record]:
        """The record, or one for each of its questions."""
        questions = record.values.get(self.question)
        if not isinstance(questions, list):
            yield record
            return
        lists = [column for column in (self.question, self.label, *self.choices) if isinstance(record.values.get(column), list)]
        if any(len(record.values[column]) != len(questions) for column in lists):
            raise UserError("its lists of questions, options and answers differ in length", record.where, "fix or remove this record")
        for number in range(len(questions)):
            values = {column: record.values[column][number] for column in lists}
            if self.id and self.id in record.values:
                values[self.id] = f"{record.name(self.id)}-{number}"
            yield Record(f"{record.where}:question {number + 1}", {**record.values, **values})

    def _example(self, record: Record, name: str, labelled: bool) -> Chosen:
        listed, keys = self._listed(record)
        question = record.text(self.question) if self.question else ""
        ends = [choice.replace("\n", " ") for choice in listed]
        if self.blank and self.blank in question:
            choices = [question.replace(self.blank, end) for end in ends]
        else:
            choices = [f"{question} {end}" if question else end for end in ends]
        prompt = " ".join(map(record.text, self.prompt))
        return Chosen((self.id and record.name(self.id)) or name, record.where, prompt, tuple(choices), self._label(record, keys, labelled))

    def _listed(self, record: Record) -> tuple[list[str], list[str]]:
        """(the choices of a record, their keys)."""
        values = [record.values[column] for column in self.choices]
        found = values[0] if len(values) == 1 else values
        keys = record.values.get(self.keys)
        if isinstance(found, list) and found and all(isinstance(one, dict) for one in found):  # as CommonsenseQA is distributed
            found, keys = [one.get("text") for one in found], [one.get("label") for one in found]
        if not isinstance(found, list) or len(found) < 2 or not all(isinstance(one, str) for one in found):
            raise UserError(f"{' and '.join(self.choices)} do not hold two or more texts", record.where, "write a list of texts")
        keys = keys if isinstance(keys, list) and len(keys) == len(found) else [chr(ord("A") + i) for i in range(len(found))]
        return found, list(map(str, keys))

    def _label(self, record: Record, keys: list[str], labelled: bool) -> int:
        name = record.name(self.label)
        if not name or (not labelled and name == "-1"):
            if labelled:
                what = f"the column {self.label} holds no label"
                raise UserError(what, record.where, "fill it in or leave the row out; a test split without labels is for data.test")
            return -1
        if name in keys:
            return keys.index(name)
        if name.isdecimal() and int(name) < len(keys):
            return int(name)
        raise UserError(
            f"the label is {name!r}, and there are {len(keys)} choices", record.where, f"write 0 to {len(keys) - 1}, or {', '.join(keys)}"
        )
