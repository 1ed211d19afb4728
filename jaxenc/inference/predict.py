"""Answers of a fine-tuned model to new examples, in batches of rows of similar length."""

import contextlib
import dataclasses
import itertools
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jax import Array

from jaxenc.data.batch import Batch, Field
from jaxenc.data.readers.progress import EVERY
from jaxenc.errors import UserError
from jaxenc.inference.inputs import compiled_length, power_of_two
from jaxenc.progress import Bars
from jaxenc.tasks import unlabelled
from jaxenc.tasks.files import CONVERT, FIXED
from jaxenc.tasks.framing import Framing
from jaxenc.tasks.records import OR, Record
from jaxenc.tasks.row_files import MissingColumn
from jaxenc.tasks.task import Example, Task
from jaxenc.tasks.texts import TextTask
from jaxenc.training.predict import concatenated

BATCH = 32
# Batches whose rows are sorted by length together and are in memory at a time.
WINDOW = 64
# What a recipe calls an argument of a prediction.
_ADVICE = (
    ("raise train.length, shorten the text, or set task.truncation=longest", "shorten the text, or use --truncation longest"),
    ("remove it from --input", "name another file"),
)


@dataclasses.dataclass(frozen=True, eq=False)
class Answered:
    """examples: some examples, in order. answers: the task's answer to each, a JSON value. details: what else is known about each, such as
    {"probabilities": {class: number}}. shortened: how many of the examples lost tokens."""

    examples: Sequence[Example]
    answers: Sequence[Any]
    details: Sequence[Mapping[str, Any]]
    shortened: int

    def lines(self, ascii_only: bool = False) -> Iterator[str]:
        """One line of JSON per example: id, answer, details."""
        for example, answer, details in zip(self.examples, self.answers, self.details, strict=True):
            yield json.dumps({"id": example.name, "answer": answer, **details}, ensure_ascii=ascii_only) + "\n"


@dataclasses.dataclass(frozen=True, eq=False)
class Predictor:
    """A task on the model that was fine-tuned for it.

    framing: how the model reads texts. fields: those of the model's objective. compute: from rows to {head: [rows, ...]}, on the device,
    without waiting for the result.
    """

    task: Task
    framing: Framing
    fields: Mapping[str, Field]
    compute: Callable[[Batch], Mapping[str, Array]]

    def answers(self, records: Iterable[Record | Example], batch: int = BATCH) -> Iterator[Answered]:
        """The answers to `records`, or to examples without labels, each once and in order, a part at a time; memory does not grow with
        their number.

        batch: rows per batch; it changes numbers by rounding only. An example without an id is named by its number, from 0. Raises
        UserError for a record without the task's columns and for one that does not fit.
        """
        if batch < 1:
            raise UserError(f"the batch is {batch}", fix="it takes 1 or more examples")
        numbered = enumerate(records)
        try:
            while examples := [self._example(*one) for one in itertools.islice(numbered, WINDOW * batch)]:
                yield self._answered(examples, batch)
        except MissingColumn as error:
            raise error.settled() from error
        except UserError as error:
            fix = error.fix
            for theirs, ours in _ADVICE:
                fix = fix.replace(theirs, ours)
            raise error.reworded(fix=fix) from error

    def _example(self, number: int, record: Record | Example) -> Example:
        if isinstance(record, Example):
            return record
        example = self.task.of_record(record.values, record.where)
        return dataclasses.replace(example, name=str(number)) if example.name == record.where else example

    def _answered(self, examples: Sequence[Example], batch: int) -> Answered:
        features = self.task.features(examples, self.framing)
        predictions = self._predictions(features.rows, batch)
        found = self.task.answers(examples, features, predictions), self.task.details(examples, features, predictions)
        return Answered(examples, *found, features.shortened)

    def _predictions(self, rows: Batch, batch: int) -> dict[str, np.ndarray]:
        """{head: [rows, ...]} in the order of `rows`. A batch is computed while the one before it moves to the host."""
        used = (rows["segments"] > 0).sum(axis=-1).reshape(len(rows["segments"]), -1).max(axis=-1)
        # The longest first, so that too little memory shows at once.
        order = np.argsort(-used, kind="stable")
        chosen = [order[start : start + batch] for start in range(0, len(order), batch)]
        batches = (self._padded({name: array[some] for name, array in rows.items()}, int(used[some[0]])) for some in chosen)
        dispatched = map(self.compute, batches)
        parts: list[dict[str, np.ndarray]] = []
        for some, (on_device, _) in zip(chosen, itertools.pairwise(itertools.chain(dispatched, [None])), strict=True):
            parts.append({name: array[: len(some)] for name, array in jax.device_get(on_device).items()})
        back = np.argsort(order, kind="stable")
        return {name: concatenated([part[name] for part in parts])[back] for name in parts[0]}

    def _padded(self, rows: Batch, used: int) -> Batch:
        """`rows` in one of few shapes: cut to a `compiled_length` that holds `used` tokens, and with empty rows up to a power of two."""
        count, full = rows["segments"].shape[0], rows["segments"].shape[-1]
        length = min(compiled_length(used), full)
        places = slice(full - length, full) if self.framing.left else slice(length)
        empty = power_of_two(count, 1) - count
        cut = {}
        for name, array in rows.items():
            at = tuple(places if axis == "length" else slice(None) for axis in self.fields[name].shape)
            cut[name] = np.pad(array[(slice(None), *at)], [(0, empty), *[(0, 0)] * (array.ndim - 1)])
        return cut


def of_file(predictor: Predictor, name: str, batch: int = BATCH, coding: str = "") -> Iterator[Answered]:
    """The answers to the examples of a file; see `Task.new_examples`, `unlabelled.read` and `Predictor.answers`. A bar, or a line on
    stderr every few seconds, shows the progress. Raises UserError also for an encoding of a file in the task's own format."""
    started = last = time.monotonic()
    done = first = 0
    own = predictor.task.new_examples(name)
    if own and coding:
        raise UserError(FIXED, f"--encoding {coding}", CONVERT)
    with Bars().shown("predict", unit="examples") as bar, _advising(predictor.task):
        for some in predictor.answers(own or unlabelled.read(name, predictor.task.columns, coding), batch):
            yield some
            done, now = done + len(some.examples), time.monotonic()
            bar.at(done)
            if now - last > EVERY and not bar.drawn:
                last = now
                # The first examples wait for the compilation, which is not their rate.
                rate = f", {(done - first) / (now - started):,.0f} a second" if first else ""
                print(f"predict: {done:,} examples{rate}", file=sys.stderr)
            if not first:
                first, started = done, now


@contextlib.contextmanager
def _advising(task: Task) -> Iterator[None]:
    """In the block, an error about a missing column advises `--text`, for a task that `with_columns` takes."""
    try:
        yield
    except MissingColumn as error:
        if isinstance(task, TextTask):
            raise error.chosen("with --text") from error
        raise


def of_values(task: Task, values: Iterable[Any]) -> Iterator[Record]:
    """Records from a caller's values: a text, a tuple of two texts, or a dict with the task's columns. Raises UserError for others."""
    if isinstance(values, (str, Mapping)) or not isinstance(values, Iterable):
        raise UserError("predict takes a list of examples", fix="give [example] for a single one")
    columns = [column.split(OR)[0] for column in task.columns] or [unlabelled.TEXT]
    for number, value in enumerate(values):
        where = f"examples[{number}]"
        if isinstance(value, Mapping):
            yield Record(where, value)
            continue
        texts = (value,) if isinstance(value, str) else value
        if not isinstance(texts, (tuple, list)) or len(texts) != len(columns):
            what = f"it is {value!r:.60}, and the task reads {', '.join(columns)}"
            raise UserError(what, where, f"give {'a text' if len(columns) == 1 else 'a tuple of texts'}, or a dict with these keys")
        yield Record(where, dict(zip(columns, texts, strict=True)))


def with_columns(task: Task, text: Sequence[str]) -> Task:
    """The task with its texts in other columns. Raises UserError for a task that does not read as many."""
    where = f"--text {','.join(text)}"
    if not isinstance(task, TextTask):
        raise UserError(f"a task of the kind {task.kind} has no columns to choose", where, "leave it out")
    if len(text) != len(task.columns):
        raise UserError(f"the task reads {', '.join(task.columns)}", where, "name one column for each, or leave it out")
    return dataclasses.replace(task, text=tuple(text))
