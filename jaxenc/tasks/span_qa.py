"""Questions whose answers are spans of a text: SQuAD 1.1 and 2.0."""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np

from jaxenc.config import at_least
from jaxenc.errors import UserError
from jaxenc.families import MODELS
from jaxenc.families.contract import ModelConfig
from jaxenc.objectives.heads import HeadsConfig
from jaxenc.tasks import span_rows, squad_answers, squad_files, squad_score
from jaxenc.tasks.files import FilesConfig
from jaxenc.tasks.framing import Framing
from jaxenc.tasks.span_rows import HEADS, SPANS
from jaxenc.tasks.squad_answers import Answers, Candidates
from jaxenc.tasks.squad_files import Question
from jaxenc.tasks.squad_windows import WindowShape
from jaxenc.tasks.task import Features, Task

METRICS = ("f1", "exact")
# The columns of a record, and its name where it has one.
QUESTION, CONTEXT, ID = "question", "context", "id"
# What evaluate-v2.0.py takes: the answers, and the null scores (--na-prob-file).
PREDICTIONS, NULL_ODDS = "predictions.json", "null_odds.json"


@dataclasses.dataclass(frozen=True)
class SpanQa(Task[Question]):
    """Questions about a text, each answered by a part of the text (Devlin et al. 2018, sections 4.2 and 4.3; Rajpurkar et al. 2016, 2018).

    Files are those of SQuAD (squad_files.py). A context longer than a row is cut into windows that overlap (squad_windows.py). Scores are
    in percent, as those of SQuAD's scripts. Raises UserError for a setting that does not fit.

    impossible: whether a question may have no answer, as in SQuAD 2.0; its answer is then ''.
    answer_head: head that finds the answers: `spans`, `joint_spans` or `beam_spans`. '' = the one that the family publishes.
    stride: tokens from the start of one window to the start of the next.
    max_query: most tokens of a question; a longer one is cut.
    max_answer: most tokens of an answer.
    n_best: how many starts and ends the head `spans` combines, and answers that are listed.
    null_threshold: with `impossible`, the null score above which the answer is ''. The scores of the dev set also have `best_f1` and
        `best_exact`, those of the best threshold on these same questions, as evaluate-v2.0.py reports them.
    metric: score of the dev set that is quoted first: `f1` or `exact`.
    """

    kind: ClassVar[str] = "span_qa"

    impossible: bool = False
    answer_head: str = ""
    stride: int = 128
    max_query: int = 64
    max_answer: int = 30
    n_best: int = 20
    null_threshold: float = 0.0
    metric: str = "f1"

    def __post_init__(self) -> None:
        at_least(1, "task", self, "stride", "max_query", "max_answer", "n_best")
        if self.answer_head and self.answer_head not in HEADS:
            raise UserError(f"task.answer_head is {self.answer_head!r}", fix=f"use {', '.join(HEADS)}, or '' for that of the family")
        if self.metric not in METRICS:
            raise UserError(f"task.metric is {self.metric!r}", fix=f"use {', '.join(METRICS)}")

    @property
    def columns(self) -> tuple[str, ...]:
        """See `Task.columns`."""
        return (QUESTION, CONTEXT)

    def examples(self, files: FilesConfig, split: str) -> list[Question]:
        """See `Task.examples`; those of `test` may lack answers. Raises UserError as `squad_files.read`, for an id that two files have, and
        where `impossible` is false for a question without an answer."""
        found: dict[str, Question] = {}
        for file in files.names(split):
            for question in squad_files.read(files.own_format(file)):
                if question.name in found:
                    where = found[question.name].where
                    raise UserError(f"{where} has this id too", question.where, "give every question an id of its own")
                found[question.name] = question
        if not found:
            raise UserError("there are no questions", ", ".join(files.names(split)), f"name a file with questions in data.{split}")
        chosen = list(found.values())[: files.limit(split) or None]
        if split != "test":
            self._check(chosen)
        return chosen

    def _check(self, questions: Sequence[Question]) -> None:
        for question in questions:
            if not question.labelled:
                fix = "add its answers or leave it out; a file without answers is for data.test"
                raise UserError("the question has no list of answers", question.where, fix)
            if question.impossible and not self.impossible:
                fix = "set task.impossible=true, as tasks/squad:2 does, or leave such questions out"
                raise UserError("the question has no answer, and task.impossible is false", question.where, fix)

    def fitted(self, train: Sequence[Question]) -> Self:
        """This task. Raises UserError where no training question has an answer that is where its file says, or none in its context."""
        if not any(one.impossible or one.target for one in train):
            what = f"none of the {len(train):,} training questions has an answer that its context holds at answer_start"
            raise UserError(what, train[0].where, "count answer_start in characters of the context, from 0")
        return self

    def objective(self, model: ModelConfig) -> HeadsConfig:
        """See `Task.objective`. Raises UserError for a family without the head."""
        return HeadsConfig(heads=(self._head(model),))

    def features(self, examples: Sequence[Question], framing: Framing) -> Features:
        """See `span_rows.features`."""
        specials = framing.length - framing.room(2)
        shape = WindowShape(framing.length, self.stride, self.max_query, specials)
        return span_rows.features(examples, framing, shape, self._head(framing.model))

    def answers(self, examples: Sequence[Question], features: Features, predictions: Mapping[str, np.ndarray]) -> list[str]:
        """The text of each answer, cut from the context. predictions: of the head `spans` its logits, "spans" [rows, length, 2], of the
        others what they found, as "joint_spans_start"."""
        return [self._chosen(one) for one in self._decoded(examples, features, predictions)]

    def within(self, length: int) -> Self:
        """See `Task.within`: a question takes a quarter of a row at most, and windows overlap by half or more."""
        quarter, third = max(length // 4, 1), max(length // 3, 1)
        return dataclasses.replace(self, max_query=min(self.max_query, quarter), stride=min(self.stride, third))

    def details(self, examples: Sequence[Question], features: Features, predictions: Mapping[str, np.ndarray]) -> list[dict[str, Any]]:
        """`n_best`: the likeliest answers, each with its text, its first character in the context, its end (exclusive) and its probability
        in this list. `null_score`, with `impossible`: the higher, the less the model believes that there is an answer."""
        found = []
        for one in self._decoded(examples, features, predictions):
            names = ("text", "start", "end", "probability")
            listed = [{name: getattr(span, name) for name in names} for span in one.n_best]
            found.append({"n_best": listed, **({"null_score": one.null_score} if self.impossible else {})})
        return found

    def score(self, answers: Sequence[str], examples: Sequence[Question]) -> dict[str, float]:
        """`exact` and `f1` in percent, and with `impossible` those of the questions with an answer (`HasAns_`) and of the others
        (`NoAns_`). 0 where no question is labelled."""
        known = {one.name: answer for one, answer in zip(examples, answers, strict=True) if one.labelled}
        if not known:
            return dict.fromkeys(METRICS, 0.0)
        found = squad_score.score([one for one in examples if one.labelled], known)
        return {name: value for name, value in found.items() if name in METRICS or (self.impossible and name.endswith(METRICS))}

    def judge(self, examples: Sequence[Question], features: Features, predictions: Mapping[str, np.ndarray]) -> dict[str, float]:
        """`score`, and with `impossible` the best scores that a threshold on the null score reaches, with these thresholds: see
        `squad_score.best_thresholds`."""
        decoded = self._decoded(examples, features, predictions)
        scores = self.score([self._chosen(one) for one in decoded], examples)
        if not self.impossible:
            return scores
        of_name = {example.name: one for example, one in zip(examples, decoded, strict=True)}
        best, null = {name: one.text for name, one in of_name.items()}, {name: one.null_score for name, one in of_name.items()}
        return scores | squad_score.best_thresholds(examples, best, null)

    def notes(self, examples: Sequence[Question], features: Features) -> list[str]:
        """See `Task.notes`: answers that are not where the file says, and those that the tokenizer drops."""
        unknown = features.example[features.rows["start"] == span_rows.UNKNOWN].tolist()
        dropped = len({number for number in unknown if examples[number].target})
        lines = [squad_files.lost(examples)] + [f"answers that the tokenizer drops, not trained on: {dropped:,}"] * (dropped > 0)
        return [line for line in lines if line]

    def submission(
        self, answers: Sequence[str], examples: Sequence[Question], details: Sequence[Mapping[str, Any]] = ()
    ) -> Mapping[str, str]:
        """What SQuAD's scripts take: {id: answer}, and with `impossible` {id: null score}."""
        names = [example.name for example in examples]
        files = {PREDICTIONS: dict(zip(names, answers, strict=True))}
        if self.impossible and details:
            files[NULL_ODDS] = {name: one["null_score"] for name, one in zip(names, details, strict=True)}
        return {file: json.dumps(content, ensure_ascii=False, indent=1) + "\n" for file, content in files.items()}

    def of_record(self, record: Mapping[str, Any], where: str) -> Question:
        """See `Task.of_record`."""
        for column in self.columns:
            if not isinstance(record.get(column), str):
                raise UserError(f"{column} is missing or is not a text", where, f"give every record a {QUESTION} and a {CONTEXT}")
        name = record.get(ID)
        return Question(str(name) if name else where, where, record[QUESTION], record[CONTEXT], (), False)

    def new_examples(self, file: str) -> Sequence[Question]:
        """See `Task.new_examples`: files of SQuAD, whose answers are dropped."""
        found = squad_files.read(file) if squad_files.is_squad(file) else ()
        return [dataclasses.replace(one, answers=(), impossible=False) for one in found]

    def _head(self, model: ModelConfig) -> str:
        """The name of the head for a model."""
        head = self.answer_head or model.answers
        if head in model.head_names:
            return head
        if self.answer_head and model.answers:
            what = f"task.answer_head is {head}, which no model of kind {model.kind} has"
            raise UserError(what, fix="leave it empty for the head of the family")
        able = ", ".join(kind for kind, other in MODELS.items() if other.answers)
        raise UserError(f"a model of kind {model.kind} finds no answers in a text", fix=f"use a model of kind {able}")

    def _chosen(self, found: Answers) -> str:
        return found.chosen(self.null_threshold) if self.impossible else found.text

    def _decoded(self, examples: Sequence[Question], features: Features, predictions: Mapping[str, np.ndarray]) -> list[Answers]:
        """What the predictions of all windows of each question say."""
        bounds = np.searchsorted(features.example, np.arange(len(examples) + 1))
        of_logits = SPANS in predictions
        decoded = []
        for example, first, end in zip(examples, bounds[:-1], bounds[1:], strict=True):
            found = [self._of_row(features.places[row], predictions, row) for row in range(first, end)]
            spans = [(place.window, candidates) for place, (candidates, _) in zip(features.places[first:end], found, strict=True)]
            null = [value for _, value in found]
            if of_logits and self.impossible:
                decoded.append(squad_answers.decode_with_null(example.context, spans, null, self.n_best))
            else:
                decoded.append(squad_answers.decode(example.context, spans, self.n_best, null if self.impossible else ()))
        return decoded

    def _of_row(self, place: span_rows.Place, predictions: Mapping[str, np.ndarray], row: int) -> tuple[Candidates, Any]:
        """(candidates, what says that there is no answer) of one row: the logits of both ends at CLS, or the logit of the head. Places of
        padding are left out: how many there are depends on the other rows of a batch."""
        if SPANS in predictions:
            start, end = predictions[SPANS][row, : place.used].T
            found = squad_answers.from_logits(place.window, place.first, start, end, self.n_best, self.max_answer)
            return found, (float(start[place.none]), float(end[place.none]))
        head = next(head for head in HEADS if f"{head}_start" in predictions)
        given = [predictions[f"{head}_{name}"][row] for name in ("start", "end", "start_score", "end_score")]
        return squad_answers.from_beam(place.window, place.first, *given, self.max_answer), float(predictions[f"{head}_no_answer"][row])
