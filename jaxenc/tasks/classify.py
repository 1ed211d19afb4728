"""One class for one text or two: sentiment, acceptability, paraphrases, entailment."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np

from jaxenc.errors import UserError
from jaxenc.families.contract import ModelConfig
from jaxenc.objectives.heads import HeadsConfig
from jaxenc.tasks import labels, scores
from jaxenc.tasks.framing import Framing
from jaxenc.tasks.records import Record
from jaxenc.tasks.task import Features
from jaxenc.tasks.text_head import on_text
from jaxenc.tasks.texts import TextExample, TextTask, submitted

HEAD = "classifier"
METRICS = ("accuracy", "f1", "macro_f1", "matthews")
UNLABELLED = "-1"  # how Hugging Face writes the labels of GLUE's test splits; a class where the training examples have it


@dataclasses.dataclass(frozen=True)
class Classified(TextExample):
    """label: the name of its class, '' where it is not known."""

    label: str = ""

    @property
    def right(self) -> str | None:
        """See `Example.right`."""
        return self.label or None


@dataclasses.dataclass(frozen=True)
class Classify(TextTask[Classified]):
    """Single-label classification of one text or of a pair (Devlin et al. 2018, section 4.1).

    labels: classes in the order of the logits. () = those of the training examples, sorted. `A|B` is the class A, which files may also
        write as B.
    metric: score of the dev set that is quoted first: `accuracy`, `f1` (of the second of two classes), `macro_f1` or `matthews`.
    submits: names of the benchmark's files. `FILE` takes the answers to the test split, `PART=FILE` those to its file with the name PART,
        without folder and suffix. () = none.
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
        labels.check(self.labels)
        if self.metric == "f1" and self.labels and len(self.labels) != 2:
            raise UserError(f"task.metric is f1, and there are {len(self.labels)} classes", fix="use macro_f1")

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the classes, in the order of the logits."""
        return labels.classes(self.labels)

    @property
    def shown(self) -> Mapping[str, str]:
        """See `Task.shown`: of two classes, `f1` is that of the second one."""
        return {"f1": f"f1 of {self.classes[1]!r}"} if len(self.classes) == 2 else {}

    def example(self, record: Record, name: str, part: str, labelled: bool) -> Classified:
        """See `TextTask.example`."""
        texts, label = tuple(map(record.text, self.text)), record.name(self.label)
        label = labels.spelled(self.labels).get(label, label)
        if not label or (label == UNLABELLED and self.labels and label not in self.classes):
            if labelled:
                what = f"the column {self.label} holds no label"
                raise UserError(what, record.where, "label the row or leave it out; a test split without labels is for data.test")
            label = ""
        elif self.labels and label not in self.classes:
            raise labels.wrong(label, self.labels, record.where)
        return Classified(name, record.where, texts, label, part=part)

    def fitted(self, train: Sequence[Classified]) -> Self:
        """This task with the classes of the training examples; see `labels.of_examples`."""
        found = [example.label for example in train]
        return self if self.labels else dataclasses.replace(self, labels=labels.of_examples(train, found, self.label))

    def ordered(self, classes: Sequence[str]) -> Self:
        """This task with its classes in the order of a checkpoint's; see `labels.ordered`."""
        return dataclasses.replace(self, labels=labels.ordered(self.labels, classes))

    def objective(self, model: ModelConfig) -> HeadsConfig:
        """The head on the vector of a text, which the family's own head gives."""
        return on_text(model, HEAD, self.classes)

    def features(self, examples: Sequence[Classified], framing: Framing) -> Features:
        """Rows with `label`, i32 [examples], -1 where it is not known. Raises UserError for a label that the task does not have."""
        number = {name: i for i, name in enumerate(self.classes)} | {"": -1}
        if wrong := next((example for example in examples if example.label not in number), None):
            raise labels.wrong(wrong.label, self.labels, wrong.where)
        return self.rows_of(examples, framing, {"label": np.array([number[example.label] for example in examples], np.int32)})

    def answers(self, examples: Sequence[Classified], features: Features, predictions: Mapping[str, np.ndarray]) -> list[Any]:
        """The class with the largest probability, the first of equals. predictions: {"classifier": [rows, classes]}."""
        found = predictions[HEAD]
        if found.shape != (len(examples), len(self.labels)):
            raise ValueError(f"predictions {found.shape} for {len(examples)} examples and {len(self.labels)} classes")
        return [self.classes[i] for i in found.argmax(axis=-1)]

    def details(self, examples: Sequence[Classified], features: Features, predictions: Mapping[str, np.ndarray]) -> list[dict[str, Any]]:
        return [{"probabilities": dict(zip(self.classes, row, strict=True))} for row in predictions[HEAD].tolist()]

    def score(self, answers: Sequence[Any], examples: Sequence[Classified]) -> dict[str, float]:
        """See `scores.classification`; where the split has several files, also `metric` of each, as `accuracy_dev_mismatched`."""
        known = [(example, answer) for example, answer in zip(examples, answers, strict=True) if example.label]
        parts: dict[str, list[tuple[Classified, Any]]] = {}
        for example, answer in known:
            parts.setdefault(example.part, []).append((example, answer))
        each = {f"{self.metric}_{part}": self._scored(pairs)[self.metric] for part, pairs in parts.items()} if len(parts) > 1 else {}
        return self._scored(known) | each

    def _scored(self, pairs: Sequence[tuple[Classified, Any]]) -> dict[str, float]:
        return scores.classification([example.label for example, _ in pairs], [answer for _, answer in pairs], self.classes)

    def submission(
        self, answers: Sequence[Any], examples: Sequence[Classified], details: Sequence[Mapping[str, Any]] = ()
    ) -> Mapping[str, str]:
        """The files of gluebenchmark.com: a header, then name and class of each example, with the last spelling that the class has."""
        written = labels.written(self.labels)
        return submitted(self.submits, examples, [written[answer] for answer in answers])
