"""One class for one text or two: sentiment, acceptability, paraphrases, entailment."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np

from jaxenc.errors import UserError
from jaxenc.families.contract import ModelConfig
from jaxenc.objectives.heads import HeadsConfig
from jaxenc.tasks.files import FilesConfig
from jaxenc.tasks.framing import TRUNCATIONS, Framing
from jaxenc.tasks.task import Example, Features, Task

HEAD = "classifier"


@dataclasses.dataclass(frozen=True)
class Classified(Example):
    """texts: one or two. label: '' where it is not known."""

    texts: tuple[str, ...]
    label: str = ""


@dataclasses.dataclass(frozen=True)
class Classify(Task[Classified]):
    """Single-label classification of one text or of a pair (Devlin et al. 2018, section 4.1).

    text: the columns of the text, or of both texts. label: the column of the label; id: that of the example's id, '' for its number.
    labels: the classes in the order of the logits; () = those of the training examples, sorted. metric: of the dev set.
    truncation: see `Framing`.
    """

    kind: ClassVar[str] = "classify"
    pads_left: ClassVar[bool] = True

    text: tuple[str, ...] = ("text",)
    label: str = "label"
    id: str = ""
    labels: tuple[str, ...] = ()
    metric: str = "accuracy"
    truncation: str = "longest"

    def __post_init__(self) -> None:
        if len(self.text) not in (1, 2):
            raise UserError(f"task.text names {len(self.text)} columns", fix="name one, or two for pairs")
        if self.truncation not in TRUNCATIONS:
            raise UserError(f"task.truncation is {self.truncation!r}", fix=f"use {', '.join(TRUNCATIONS)}")

    def examples(self, files: FilesConfig, split: str) -> list[Classified]:
        raise NotImplementedError

    def fitted(self, train: Sequence[Classified]) -> Self:
        return self if self.labels else dataclasses.replace(self, labels=tuple(sorted({example.label for example in train})))

    def objective(self, model: ModelConfig) -> HeadsConfig:
        return HeadsConfig(heads=(model.pools, HEAD), labels=self.labels)

    def features(self, examples: Sequence[Classified], framing: Framing) -> Features:
        columns = [framing.ids([example.texts[i] for example in examples]) for i in range(len(self.text))]
        framed = framing.rows(list(zip(*columns, strict=True)), [example.where for example in examples])
        number = {label: i for i, label in enumerate(self.labels)}
        labels = np.array([number.get(example.label, -1) for example in examples], np.int32)
        return Features({**framed.rows, "label": labels}, np.arange(len(examples), dtype=np.int32), (), int(framed.shortened.sum()))

    def answers(self, examples: Sequence[Classified], features: Features, predictions: Mapping[str, np.ndarray]) -> list[Any]:
        return [self.labels[i] for i in predictions[HEAD].argmax(axis=-1)]

    def score(self, answers: Sequence[Any], examples: Sequence[Classified]) -> dict[str, float]:
        raise NotImplementedError

    def of_record(self, record: Mapping[str, Any], where: str) -> Classified:
        raise NotImplementedError
