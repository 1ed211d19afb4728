"""One class for one text or two: sentiment, acceptability, paraphrases, entailment."""

import collections
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np

from jaxenc.errors import UserError
from jaxenc.families.contract import ModelConfig
from jaxenc.objectives.heads import HeadsConfig
from jaxenc.tasks import scores
from jaxenc.tasks.files import FilesConfig
from jaxenc.tasks.framing import Framing
from jaxenc.tasks.records import OR, Record
from jaxenc.tasks.task import Features
from jaxenc.tasks.texts import TextExample, TextTask

HEAD = "classifier"
METRICS = ("accuracy", "f1", "macro_f1", "matthews")
UNLABELLED = ("", "-1")  # -1: as Hugging Face writes the test splits of GLUE


@dataclasses.dataclass(frozen=True)
class Classified(TextExample):
    """label: the name of its class, '' where it is not known."""

    label: str = ""


@dataclasses.dataclass(frozen=True)
class Classify(TextTask[Classified]):
    """Single-label classification of one text or of a pair (Devlin et al. 2018, section 4.1).

    labels: classes in the order of the logits. () = those of the training examples, sorted. `A|B` is the class A, which files may also
        write as B.
    metric: score of the dev set that is quoted first: `accuracy`, `f1` (of the second of two classes), `macro_f1` or `matthews`.
    submits: names of the benchmark's files, one for each file of the test split. () = none.
    """

    kind: ClassVar[str] = "classify"
    head: ClassVar[str] = HEAD

    labels: tuple[str, ...] = ()
    metric: str = "accuracy"
    submits: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.metric not in METRICS:
            raise UserError(f"task.metric is {self.metric!r}", fix=f"use {', '.join(METRICS)}")
        if len(self.labels) == 1:
            raise UserError(f"task.labels names one class, {self.labels[0]}", fix="name two or more, or none")
        written = [name for label in self.labels for name in label.split(OR)]
        if twice := [name for name in written if written.count(name) > 1]:
            raise UserError(f"task.labels names {twice[0]} twice", fix="give every class names of its own")
        if self.metric == "f1" and self.labels and len(self.labels) != 2:
            raise UserError(f"task.metric is f1, and there are {len(self.labels)} classes", fix="use macro_f1")

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the classes, in the order of the logits."""
        return tuple(label.split(OR)[0] for label in self.labels)

    def example(self, record: Record, name: str, part: str, labelled: bool) -> Classified:
        texts, label = tuple(map(record.text, self.text)), record.name(self.label)
        label = self._spelled().get(label, label)
        if label in UNLABELLED and (self.labels or not label):
            if labelled:
                what = f"the column {self.label} holds no label"
                raise UserError(what, record.where, "label the row or leave it out; a test split without labels is for data.test")
            label = ""
        elif self.labels and label not in self.classes:
            known = ", ".join(self.labels)
            raise UserError(f"the label is {label!r}", record.where, f"fix it, or name it in task.labels, which holds {known}")
        return Classified(name, record.where, texts, label, part=part)

    def fitted(self, train: Sequence[Classified]) -> Self:
        """This task with the classes of the training examples. Raises UserError where they are one class, or are scores or names of the
        examples and no classes."""
        if self.labels:
            return self
        counts = collections.Counter(example.label for example in train)
        if len(counts) == 1:
            what = f"all {len(train):,} training examples have the label {train[0].label}"
            raise UserError(what, train[0].where, "name a file with several labels; one without labels is for data.test")
        if score := next((example for example in train if _is_score(example.label)), None) if all(map(_is_number, counts)) else None:
            fix = "set task.kind=regress for scores, or name the classes in task.labels"
            raise UserError(f"the label is {score.label}, a score and no class", score.where, fix)
        if len(counts) > max(len(train) // 2, 10):
            what = f"the column {self.label} has {len(counts):,} values in {len(train):,} training examples"
            raise UserError(what, train[0].where, "name the column of the label in task.label, or set task.kind=regress for scores")
        return dataclasses.replace(self, labels=tuple(sorted(counts)))

    def ordered(self, classes: Sequence[str]) -> Self:
        """This task with its classes in the order of a checkpoint's, by name, whatever the case. Raises UserError where they differ."""
        if not self.labels:
            return dataclasses.replace(self, labels=tuple(classes))
        by_name = {name.lower(): label for label in self.labels for name in label.split(OR)}
        found = [by_name.get(name.lower()) for name in classes]
        if None in found or len(set(found)) != len(found) or len(found) != len(self.labels):
            what = f"the model has the classes {', '.join(classes)}, and the task has {', '.join(self.classes)}"
            raise UserError(what, fix="give the model's names in task.labels, each with the one that the files have: MODEL|FILE")
        return dataclasses.replace(self, labels=tuple(found))

    def objective(self, model: ModelConfig) -> HeadsConfig:
        return HeadsConfig(heads=(model.pools, HEAD), labels=self.classes)

    def features(self, examples: Sequence[Classified], framing: Framing) -> Features:
        number = {name: i for i, name in enumerate(self.classes)} | {"": -1}
        if wrong := next((example for example in examples if example.label not in number), None):
            what = f"the label is {wrong.label!r}, which no training example has"
            raise UserError(what, wrong.where, f"fix it, or name it in task.labels with {', '.join(self.classes)}")
        return self.rows_of(examples, framing, {"label": np.array([number[example.label] for example in examples], np.int32)})

    def answers(self, examples: Sequence[Classified], features: Features, predictions: Mapping[str, np.ndarray]) -> list[Any]:
        logits = predictions[HEAD]
        if logits.shape != (len(examples), len(self.labels)):
            raise ValueError(f"logits {logits.shape} of {len(examples)} examples and {len(self.labels)} classes")
        return [self.classes[i] for i in logits.argmax(axis=-1)]

    def score(self, answers: Sequence[Any], examples: Sequence[Classified]) -> dict[str, float]:
        """See `scores.classification`; where the split has several files, also `metric` of each, as `accuracy_dev_mismatched`."""
        known = [(example, answer) for example, answer in zip(examples, answers, strict=True) if example.label]
        by = lambda pairs: scores.classification([one.label for one, _ in pairs], [answer for _, answer in pairs], self.classes)
        parts = dict.fromkeys(example.part for example, _ in known)
        each = {f"{self.metric}_{part}": by([pair for pair in known if pair[0].part == part])[self.metric] for part in parts}
        return by(known) | (each if len(parts) > 1 else {})

    def submission(self, answers: Sequence[Any], examples: Sequence[Classified]) -> Mapping[str, str]:
        """The files of gluebenchmark.com: a header, then name and class of each example, with the last spelling that the class has."""
        written = {label.split(OR)[0]: label.split(OR)[-1] for label in self.labels}
        parts = dict.fromkeys(example.part for example in examples)
        rows = lambda part: (f"{one.name}\t{written[answer]}\n" for one, answer in zip(examples, answers, strict=True) if one.part == part)
        return {file: "index\tprediction\n" + "".join(rows(part)) for file, part in zip(self.submits, parts, strict=False)}

    def examples(self, files: FilesConfig, split: str) -> list[Classified]:
        scores.require()
        return super().examples(files, split)

    def _spelled(self) -> dict[str, str]:
        """{spelling in files: class}."""
        return {name: label.split(OR)[0] for label in self.labels for name in label.split(OR)}


def _is_number(text: str) -> bool:
    try:
        return bool(np.isfinite(float(text)))
    except ValueError:
        return False


def _is_score(text: str) -> bool:
    return not float(text).is_integer()
