"""A kind of task that stays outside of jaxenc: the example of docs/extending.md, as it stands there, and what else takes such a task."""

import dataclasses
import json
import re
import runpy
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

import jaxenc
from jaxenc.errors import UserError
from jaxenc.families.bert.model import BertConfig
from jaxenc.tasks import TASKS, recipe, with_built_in
from jaxenc.tasks.classify import Classify
from jaxenc.tasks.task import Task
from jaxenc.tasks.tuning import FineTune
from tests.tasks.tiny_task import WORDS

PAGE = Path(__file__).parents[2] / "docs" / "extending.md"


def example() -> str:
    """The script of the page."""
    (found,) = re.findall(r"```python\n(# votes.py\n.*?)```", PAGE.read_text(), re.DOTALL)
    return found


@pytest.mark.usefixtures("one_device")
def test_the_example_of_the_page(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    """It trains, scores, loads and answers; a second run continues the first; evaluate takes the task as load does."""
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(0)
    for name, count in (("votes", 64), ("dev_votes", 21)):
        marks = random.choice(["+", "-"], count)
        lines = [f"{mark} {' '.join(random.choice(WORDS['good' if mark == '+' else 'bad'], 4))}\n" for mark in marks]
        Path(f"{name}.txt").write_text("".join(lines))
    Path("runs").mkdir()
    Path("runs/first").symlink_to(model)
    Path("votes.py").write_text(example())
    votes = runpy.run_path("votes.py", run_name="__main__")["Votes"]
    score, answers = capsys.readouterr().out.splitlines()
    assert float(score) > 0.9 and len(json.loads(answers.lower())) == 2
    written = [json.loads(line)["answer"] for line in Path("runs/votes/seed_0/dev.jsonl").read_text().splitlines()]
    assert len(written) == 21 and set(written) == {True, False}

    tasks = with_built_in(votes)
    loaded = jaxenc.load("runs/votes", tasks=tasks)
    assert loaded.task == votes() and loaded.predict(["b c d b", "x y z x"]) == [True, False]
    assert jaxenc.evaluate("runs/votes", tasks=tasks).numbers["right"] == pytest.approx(float(score))
    for reads in (jaxenc.load, jaxenc.evaluate):
        with pytest.raises(UserError, match="votes"):
            reads("runs/votes")
    runpy.run_path("votes.py", run_name="__main__")
    assert capsys.readouterr().out.splitlines() == [score, answers]


@dataclasses.dataclass(frozen=True)
class Other(Classify):
    """Classes under a kind of one's own."""

    kind: ClassVar[str] = "other"


def test_the_published_numbers_for_a_task_of_ones_own() -> None:
    """`recipe.resolve` knows the kind of the task that it is given, and sets its fields."""
    given = FineTune(Other(), published="text")
    found = recipe.resolve(given, BertConfig(), {"task.label": "stars", "train.epochs": 2.0})
    assert found.task == Other(label="stars") and found.optim.lr != given.optim.lr and found.train.epochs == 2.0


@dataclasses.dataclass(frozen=True)
class Taken(Classify):
    """A class of one's own with the kind of a built-in task."""


class Bare(Task):
    """Neither a dataclass nor named."""

    kind: ClassVar[str] = "bare"


@pytest.mark.parametrize(
    "own, message",
    [
        (Taken, "task Taken: the kind 'classify' is taken; give it another `kind`"),
        (Bare, "Bare is not a task; give a frozen dataclass that subclasses jaxenc.tasks.task.Task and has a `kind`"),
        (Classify(), r"is not a task; give a frozen dataclass"),
    ],
)
def test_what_is_no_task_of_ones_own(own: type, message: str) -> None:
    with pytest.raises(UserError, match=message):
        with_built_in(own)
    assert "votes" not in TASKS
