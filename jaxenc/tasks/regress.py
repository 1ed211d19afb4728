"""A score for one text or two: similarity, ratings."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np

from jaxenc.errors import UserError
from jaxenc.families.contract import ModelConfig
from jaxenc.objectives.heads import HeadsConfig
from jaxenc.tasks import scores
from jaxenc.tasks.framing import Framing
from jaxenc.tasks.records import Record
from jaxenc.tasks.task import Features
from jaxenc.tasks.text_head import on_text
from jaxenc.tasks.texts import TextExample, TextTask, submitted

HEAD = "regressor"
METRICS = ("pearson", "spearman")
LARGEST = 1e18  # of what is learned: the loss is a sum of squares in float32, which ends at 3.4e38


@dataclasses.dataclass(frozen=True)
class Scored(TextExample):
    """score: as in the file, None if it is unknown."""

    score: float | None = None

    @property
    def right(self) -> float | None:
        """See `Example.right`."""
        return self.score


@dataclasses.dataclass(frozen=True)
class Regress(TextTask[Scored]):
    """Regression of a score on one text or a pair, by squared error.

    bounds: lowest and highest score. () = none; scores outside are errors, and submitted answers are clipped.
    scaled: whether the model learns (score - lowest) / (highest - lowest), as in google-research/electra, instead of the score.
    metric: score of the dev set that is quoted first, `pearson` or `spearman`.
    submits: names of the benchmark's files, as of `Classify`.
    """

    kind: ClassVar[str] = "regress"

    bounds: tuple[float, ...] = ()
    scaled: bool = False
    metric: str = "pearson"
    submits: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.metric not in METRICS:
            raise UserError(f"task.metric is {self.metric!r}", fix=f"use {' or '.join(METRICS)}")
        if self.bounds and not (len(self.bounds) == 2 and -math.inf < self.bounds[0] < self.bounds[1] < math.inf):
            raise UserError(f"task.bounds is {self.bounds}", fix="give the lowest and the highest score, or ()")
        if self.scaled and not self.bounds:
            raise UserError("task.scaled is set without task.bounds", fix="give the lowest and the highest score")

    def example(self, record: Record, name: str, part: str, labelled: bool) -> Scored:
        """See `TextTask.example`."""
        score = record.number(self.label)
        within = score is None or not self.bounds or self.bounds[0] <= score <= self.bounds[1]
        if labelled and score is None:
            what = f"the column {self.label} holds no score"
            raise UserError(what, record.where, "fill it in or leave the row out; a test split without scores is for data.test")
        if labelled and not within:
            raise UserError(
                f"the score is {score:g}", record.where, f"task.bounds is {self.bounds[0]:g} to {self.bounds[1]:g}: fix one of them"
            )
        return Scored(name, record.where, tuple(map(record.text, self.text)), score if within else None, part=part)

    def fitted(self, train: Sequence[Scored]) -> Self:
        """This task. Raises UserError where all of several training examples have one score, which leaves nothing to learn."""
        if len(train) > 1 and len({example.score for example in train}) == 1:
            what = f"all {len(train):,} training examples have the score {train[0].score:g}"
            raise UserError(what, train[0].where, "name the column of the score in task.label, or a file with several scores")
        return self

    def objective(self, model: ModelConfig) -> HeadsConfig:
        """The head on the vector of a text, which the family's own head gives."""
        return on_text(model, HEAD)

    def features(self, examples: Sequence[Scored], framing: Framing) -> Features:
        """Rows with `score`, float32 [examples], NaN where it is not known. Raises UserError for a score beyond LARGEST."""
        lowest, span = self._scale
        targets = [math.nan if one.score is None else (one.score - lowest) / span for one in examples]
        if wrong := next((one for one, target in zip(examples, targets, strict=True) if abs(target) > LARGEST), None):
            what = f"the score is {wrong.score:g}, too large to train on"
            raise UserError(what, wrong.where, f"write scores up to {LARGEST:g}, or set task.bounds and task.scaled=true")
        return self.rows_of(examples, framing, {"score": np.array(targets, np.float32)})

    def answers(self, examples: Sequence[Scored], features: Features, predictions: Mapping[str, np.ndarray]) -> list[Any]:
        """The predicted scores, None for one that is not finite. predictions: {"regressor": [rows]}."""
        found = predictions[HEAD]
        if found.shape != (len(examples),):
            raise ValueError(f"predictions {found.shape} for {len(examples)} examples")
        lowest, span = self._scale
        return [value * span + lowest if math.isfinite(value) else None for value in found.astype(np.float64).tolist()]

    def score(self, answers: Sequence[Any], examples: Sequence[Scored]) -> dict[str, float]:
        """See `scores.regression`."""
        known = [(one.score, answer) for one, answer in zip(examples, answers, strict=True) if one.score is not None]
        return scores.regression([score for score, _ in known], [math.nan if answer is None else answer for _, answer in known])

    def submission(
        self, answers: Sequence[Any], examples: Sequence[Scored], details: Sequence[Mapping[str, Any]] = ()
    ) -> Mapping[str, str]:
        """The files of gluebenchmark.com: a header, then name and score of each example with three decimals, within `bounds`."""
        lowest, highest = self.bounds or (-math.inf, math.inf)
        clipped = [min(max(0.0 if answer is None else answer, lowest), highest) for answer in answers]
        return submitted(self.submits, examples, [f"{score:.3f}" for score in clipped])

    @property
    def _scale(self) -> tuple[float, float]:
        """(what is subtracted from a score, what the difference is divided by)."""
        return (self.bounds[0], self.bounds[1] - self.bounds[0]) if self.scaled else (0.0, 1.0)
