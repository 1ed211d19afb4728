"""Any number of classes for one text or two: topics, emotions, kinds of toxic comments."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np

from jaxenc.errors import UserError
from jaxenc.families.contract import ModelConfig
from jaxenc.objectives.heads import HeadsConfig
from jaxenc.tasks import labels, scores
from jaxenc.tasks.framing import Framing
from jaxenc.tasks.records import Record, as_name
from jaxenc.tasks.task import Features
from jaxenc.tasks.text_head import on_text
from jaxenc.tasks.texts import TextExample, TextTask

HEAD = "multilabel"
METRICS = ("micro_f1", "macro_f1", "accuracy")
SEPARATORS = ";；、，؛،"  # which files may have in place of the comma
PRESENT = {"1": True, "true": True, "0": False, "false": False}


@dataclasses.dataclass(frozen=True)
class Labelled(TextExample):
    """labels: the names of its classes, in the order of the file; None if they are unknown."""

    labels: tuple[str, ...] | None = None

    @property
    def right(self) -> list[str] | None:
        """See `Example.right`."""
        return None if self.labels is None else list(self.labels)


@dataclasses.dataclass(frozen=True)
class Multilabel(TextTask[Labelled]):
    """Multi-label classification of one text or of a pair: each class is present or absent, independently of the others.

    The column of the labels holds a list of names, or names separated by `separator`. If `label` is '', each class of `labels` has a column
    of its own with 1 or 0, true or false.

    labels: classes in the order of the logits. () = those of the training examples, sorted. `A|B` is the class A, which files may also
        write as B.
    separator: character between the names in a cell.
    threshold: probability above which a class is part of the answer.
    metric: score of the dev set that is quoted first: `micro_f1`, `macro_f1` or `accuracy` (the whole set right).
    """

    kind: ClassVar[str] = "multilabel"

    labels: tuple[str, ...] = ()
    separator: str = ","
    threshold: float = 0.5
    metric: str = "micro_f1"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.metric not in METRICS:
            raise UserError(f"task.metric is {self.metric!r}", fix=f"use {', '.join(METRICS)}")
        if not 0 <= self.threshold < 1:
            raise UserError(f"task.threshold is {self.threshold}", fix="use a probability, 0 or more and below 1")
        if not self.label and not self.labels:
            raise UserError("task.label and task.labels are empty", fix="name the column of the labels, or the columns of all classes")
        if not self.separator:
            raise UserError("task.separator is empty", fix="name the character between two labels")
        labels.check(self.labels)

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the classes, in the order of the logits."""
        return labels.classes(self.labels)

    @property
    def label_columns(self) -> tuple[str, ...]:
        """The column of the labels, or those of all classes."""
        return (self.label,) if self.label else self.labels

    def example(self, record: Record, name: str, part: str, labelled: bool) -> Labelled:
        """See `TextTask.example`."""
        found = self._named(record) if self.label else self._marked(record)
        if found is None and labelled:
            none = "[] for no label" if self.label else "0 in the columns of all classes for no label"
            raise UserError("holds no labels", record.where, f"write {none}; a test split without labels is for data.test")
        if found and self.labels and (unknown := [one for one in found if one not in self.classes]):
            raise labels.wrong(unknown[0], self.labels, record.where)
        return Labelled(name, record.where, tuple(map(record.text, self.text)), found, part=part)

    def fitted(self, train: Sequence[Labelled]) -> Self:
        """This task with the classes of the training examples; see `labels.of_examples`."""
        if self.labels:
            return self
        pairs = [(example, label) for example in train for label in example.labels or ()]
        if not pairs:
            raise UserError("no training example has a label", train[0].where, "name the column of the labels in task.label")
        return dataclasses.replace(self, labels=labels.of_examples([one for one, _ in pairs], [label for _, label in pairs], self.label))

    def ordered(self, classes: Sequence[str]) -> Self:
        """This task with its classes in the order of a checkpoint's; see `labels.ordered`."""
        return dataclasses.replace(self, labels=labels.ordered(self.labels, classes))

    def objective(self, model: ModelConfig) -> HeadsConfig:
        """The head on the vector of a text, which the family's own head gives."""
        return on_text(model, HEAD, self.classes)

    def features(self, examples: Sequence[Labelled], framing: Framing) -> Features:
        """Rows with `classes`, i32 [examples, classes], 1 or 0, -1 where they are not known. Raises UserError for a label that the task
        does not have."""
        present = np.full((len(examples), len(self.labels)), -1, np.int32)
        for row, example in enumerate(examples):
            if example.labels is not None:
                if unknown := [label for label in example.labels if label not in self.classes]:
                    raise labels.wrong(unknown[0], self.labels, example.where)
                present[row] = [name in example.labels for name in self.classes]
        return self.rows_of(examples, framing, {"classes": present})

    def answers(self, examples: Sequence[Labelled], features: Features, predictions: Mapping[str, np.ndarray]) -> list[Any]:
        """The names of the classes above `threshold`. predictions: {"multilabel": probabilities [rows, classes]}."""
        found = predictions[HEAD]
        if found.shape != (len(examples), len(self.labels)):
            raise ValueError(f"predictions {found.shape} for {len(examples)} examples and {len(self.labels)} classes")
        return [[name for name, present in zip(self.classes, row, strict=True) if present] for row in (found > self.threshold).tolist()]

    def details(self, examples: Sequence[Labelled], features: Features, predictions: Mapping[str, np.ndarray]) -> list[dict[str, Any]]:
        """`probabilities`: of each class, independently of the others."""
        return [{"probabilities": dict(zip(self.classes, row, strict=True))} for row in predictions[HEAD].tolist()]

    def score(self, answers: Sequence[Any], examples: Sequence[Labelled]) -> dict[str, float]:
        """See `scores.multilabel`."""
        known = [(one.labels, answer) for one, answer in zip(examples, answers, strict=True) if one.labels is not None]
        return scores.multilabel([true for true, _ in known], [answer for _, answer in known], self.classes)

    def _named(self, record: Record) -> tuple[str, ...] | None:
        """The classes named in one column."""
        value = record.values.get(self.label)
        if value is None or value != value:  # a null of pandas is NaN
            return None
        parts = value if isinstance(value, list) else value.split(self.separator) if isinstance(value, str) else [value]
        if isinstance(value, str) and not self.labels:
            self._check_separator(value, record.where)
        if not all(isinstance(part, (str, int, float)) for part in parts):
            raise UserError(f"the column {self.label} holds {parts}, which are not labels", record.where, "write a list of names")
        spelled = labels.spelled(self.labels)
        return tuple(dict.fromkeys(spelled.get(name, name) for part in parts if (name := as_name(part))))

    def _check_separator(self, cell: str, where: str) -> None:
        """Raises UserError for another separator than the default: the whole cell would become a class."""
        other = next((one for one in SEPARATORS if one in cell), "")
        if other and self.separator == Multilabel.separator:
            what = f"the column {self.label} holds {cell!r}, and task.separator is {self.separator!r}"
            raise UserError(what, where, f"set task.separator={other} if these are several labels, or name all classes in task.labels")

    def _marked(self, record: Record) -> tuple[str, ...] | None:
        """The classes whose own columns are true."""
        marks = {name: record.name(column).lower() for name, column in zip(self.classes, self.labels, strict=True)}
        if not any(marks.values()):
            return None
        if wrong := [name for name, mark in marks.items() if mark not in PRESENT]:
            raise UserError(f"the column {wrong[0]} holds {marks[wrong[0]]!r}", record.where, "write 1 or 0, true or false")
        return tuple(name for name, mark in marks.items() if PRESENT[mark])
