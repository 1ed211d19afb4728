"""A kind of task that is defined outside of jaxenc: it is fine-tuned, scored, loaded and asked, with one line in TASKS."""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import jaxenc
from jaxenc.errors import UserError
from jaxenc.families.contract import ModelConfig
from jaxenc.objectives.heads import HeadsConfig
from jaxenc.optim.optimizer import OptimConfig
from jaxenc.tasks import TASKS, recipe
from jaxenc.tasks.files import FilesConfig
from jaxenc.tasks.framing import Framing
from jaxenc.tasks.task import Example, Features, Task
from jaxenc.tasks.text_head import on_text
from jaxenc.tasks.tuning import FineTune, TuneConfig
from tests.tasks.tiny_task import WORDS


@dataclasses.dataclass(frozen=True)
class Vote(Example):
    """One line of a file, such as `+ it is good`. liked: None where it is not known."""

    text: str
    liked: bool | None = None


@dataclasses.dataclass(frozen=True)
class Votes(Task[Vote]):
    """Whether a text is liked, in a file format of its own."""

    kind: ClassVar[str] = "votes"

    metric: str = "right"

    def examples(self, files: FilesConfig, split: str) -> list[Vote]:
        lines = [line for name in files.names(split) for line in Path(name).read_text().splitlines()]
        return [Vote(str(number), f"line {number + 1}", line[2:], line[0] == "+") for number, line in enumerate(lines)]

    def objective(self, model: ModelConfig) -> HeadsConfig:
        return on_text(model, "classifier", ("-", "+"))

    def features(self, examples: Sequence[Vote], framing: Framing) -> Features:
        framed = framing.rows([(ids,) for ids in framing.ids([one.text for one in examples])])
        label = np.array([-1 if one.liked is None else int(one.liked) for one in examples], np.int32)
        return Features({**framed.rows, "label": label}, np.arange(len(examples), dtype=np.int32))

    def answers(self, examples: Sequence[Vote], features: Features, predictions: Mapping[str, np.ndarray]) -> list[Any]:
        return [bool(row[1] > row[0]) for row in predictions["classifier"]]

    def score(self, answers: Sequence[Any], examples: Sequence[Vote]) -> dict[str, float]:
        return {"right": float(np.mean([answer == one.liked for answer, one in zip(answers, examples, strict=True)]))}

    def of_record(self, record: Mapping[str, Any], where: str) -> Vote:
        return Vote(where, where, record["text"])


def test_a_task_of_ones_own(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    for split, count in (("train", 64), ("dev", 21)):
        marks = random.choice(["+", "-"], count)
        lines = [f"{mark} {' '.join(random.choice(WORDS['good' if mark == '+' else 'bad'], 4))}\n" for mark in marks]
        (tmp_path / f"{split}.txt").write_text("".join(lines))
    data = FilesConfig(str(tmp_path), "train.txt", "dev.txt")
    train = TuneConfig(batch=16, length=16, lengths=(16,), epochs=8.0, warmup=0.0)
    tune = FineTune(Votes(), data=data, train=train, optim=OptimConfig(lr=3e-3, warmup=0))
    (outcome,) = jaxenc.finetune(tune, str(model), tmp_path / "runs").seeds
    assert outcome.scores["right"] > 0.9
    answers = [json.loads(line)["answer"] for line in (tmp_path / "runs" / "seed_0" / "dev.jsonl").read_text().splitlines()]
    assert len(answers) == 21 and set(answers) == {True, False}

    with pytest.raises(UserError, match="votes"):
        jaxenc.load(tmp_path / "runs")
    # What the line in TASKS does.
    monkeypatch.setattr(recipe, "KINDS", {"task": {**TASKS, Votes.kind: Votes}})
    loaded = jaxenc.load(tmp_path / "runs")
    assert loaded.task == Votes() and loaded.predict(["b c d b", "x y z x"]) == [True, False]
