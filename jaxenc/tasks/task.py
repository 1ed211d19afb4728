"""The contract of a fine-tuning task: its examples, the rows that a model reads from them, its answers and their scores."""

import abc
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np

from jaxenc.data.batch import Batch
from jaxenc.families.contract import ModelConfig
from jaxenc.objectives.heads import HeadsConfig
from jaxenc.tasks.files import FilesConfig
from jaxenc.tasks.framing import Framing


@dataclasses.dataclass(frozen=True)
class Example:
    """One example of a task; each kind of task has a subclass with its own fields.

    name: its id in the files or, where they have none, its number in its split, from 0. where: file and row, for messages.
    """

    name: str
    where: str

    @property
    def right(self) -> Any:
        """The right answer, a JSON value such as `Task.answers` gives, None where it is not known."""
        return None


E = TypeVar("E", bound=Example)


@dataclasses.dataclass(frozen=True, eq=False)
class Features:
    """The rows that a model reads for some examples; an example has one row or, cut into windows, several.

    rows: the fields of a batch except `index` and `epoch`, and the labels of the task's heads: [rows, ...]; an unknown label has the value
    that the head ignores. example: i32 [rows], the number of the example that a row belongs to, in ascending order. places: what
    `Task.answers` and `Task.notes` need to know about each row, one item per row, () for nothing. shortened: how many examples lost tokens.
    """

    rows: Batch
    example: np.ndarray
    places: Sequence[Any] = ()
    shortened: int = 0

    def __len__(self) -> int:
        return len(self.example)


class Task(abc.ABC, Generic[E]):
    """A frozen dataclass with the settings of a task; the task.json of a checkpoint holds its fields.

    kind: its name in a recipe. metric: the name of the score that is quoted first and that `train.select=best` compares; larger is better.
    pads_left: whether a family that pads on the left for classification (`Frame.pads_left`) does so for this task.
    head: the head that reads the features of a frozen encoder for this task, '' for a task without one.
    truncation: which text of a row loses tokens, one of `framing.TRUNCATIONS`; '' for a task that offers no choice.
    """

    kind: ClassVar[str]
    metric: str
    truncation: str = ""
    pads_left: ClassVar[bool] = False
    head: ClassVar[str] = ""

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the classes of `head`, in the order of its logits."""
        return ()

    @property
    def shown(self) -> Mapping[str, str]:
        """{score: what a table calls it} where its name does not say of what it is, such as {"f1": "f1 of 'good'"}."""
        return {}

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that `of_record` requires, `A|B` for either; if all of them may be numbers, a table without a header is accepted.
        () if that depends on the record."""
        return ()

    @abc.abstractmethod
    def examples(self, files: FilesConfig, split: str) -> list[E]:
        """The examples of a split, `train`, `dev` or `test`, in the order of the file; those of `test` may lack labels.

        Raises UserError, which names file and row, for what cannot be read and for a label that the task does not have.
        """

    def fitted(self, train: Sequence[E]) -> Self:
        """This task with what its training examples determine, such as the names of the classes if `labels` is ()."""
        return self

    def ordered(self, classes: Sequence[str]) -> Self:
        """This task with its classes in the order of a model's, by name; unchanged for a task without classes. Raises UserError if they
        are not the same classes."""
        return self

    def within(self, length: int) -> Self:
        """This task with settings that suit rows of so many tokens, fewer than it is published with."""
        return self

    @abc.abstractmethod
    def objective(self, model: ModelConfig) -> HeadsConfig:
        """The heads that a model of this family is fine-tuned with, as published. Raises UserError for a family without them."""

    @abc.abstractmethod
    def features(self, examples: Sequence[E], framing: Framing) -> Features:
        """The rows of `examples`. Raises UserError for an example that does not fit and may not be shortened."""

    @abc.abstractmethod
    def answers(self, examples: Sequence[E], features: Features, predictions: Mapping[str, np.ndarray]) -> list[Any]:
        """The task's answer to each example, a JSON value.

        predictions: {head: [rows, ...]} of the rows of `features`, in order, as `Objective.predict` gives them.
        """

    def details(self, examples: Sequence[E], features: Features, predictions: Mapping[str, np.ndarray]) -> list[dict[str, Any]]:
        """What `jaxenc predict` writes with each answer, by name, as JSON values, such as the probabilities of the classes."""
        return [{} for _ in examples]

    @abc.abstractmethod
    def score(self, answers: Sequence[Any], examples: Sequence[E]) -> dict[str, float]:
        """{metric: number} of labelled examples; `metric` is among them. Defined, and finite, for any answers."""

    def notes(self, examples: Sequence[E], features: Features) -> list[str]:
        """What a user should know about how these examples were read, one line each; [] for nothing."""
        return []

    def judge(self, examples: Sequence[E], features: Features, predictions: Mapping[str, np.ndarray]) -> dict[str, float]:
        """The scores of a labelled split: `score` of its answers, and what only the predictions themselves show."""
        return self.score(self.answers(examples, features, predictions), examples)

    def submission(self, answers: Sequence[Any], examples: Sequence[E], details: Sequence[Mapping[str, Any]] = ()) -> Mapping[str, str]:
        """{file name: content}: the answers as the benchmark takes them; {} for a task without such a form. details: of each answer, as
        `details` gives them, for a benchmark that takes more than answers."""
        return {}

    @abc.abstractmethod
    def of_record(self, record: Mapping[str, Any], where: str) -> E:
        """An example without a label from one record of a user, such as {"text": "..."}, for `jaxenc predict`. where: its file and row, for
        messages, and the example's name where the record has no id. Raises UserError for a record without the task's fields."""

    def new_examples(self, file: str) -> Sequence[E]:
        """The examples, without labels, of a file in a format of the task's own, for `jaxenc predict`; () for any other file, whose rows
        are read as records. Raises UserError for a file that is not what it looks like."""
        return ()
