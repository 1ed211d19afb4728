"""Meanings of fields, from the docstrings of their dataclasses."""

import dataclasses
import re

import pytest

from jaxenc import fields
from jaxenc.config import flatten, to_dict
from jaxenc.families import MODELS
from jaxenc.objectives import OBJECTIVES
from jaxenc.training.run import Run

RUNS = [Run(objective=kind()) for kind in OBJECTIVES.values()] + [Run(model=kind()) for kind in MODELS.values()]
PARTS = sorted({type(getattr(run, field.name)) for run in RUNS for field in dataclasses.fields(run)}, key=lambda cls: cls.__name__)


@dataclasses.dataclass(frozen=True)
class Inner:
    """A part.

    depth, height: in metres, as Smith et al. 2019 (model.py) measure them. Never below 0.
    """

    depth: int = 1
    height: int = 2


@dataclasses.dataclass(frozen=True)
class Outer(Inner):
    """A whole that
    goes on. It has more.

    name: what it is called,
        in lower case. `x` is usual.
    height: from the ground.
    This line is no entry, and depth: here is none either.
    """

    kind = "outer"
    name: str = "n"
    part: Inner = Inner(depth=3)
    bare: float = 0.5


def test_entries_are_first_sentences_and_the_nearest_class_counts() -> None:
    assert list(fields.listing(Outer())) == [
        ("kind", "outer", "A whole that goes on"),
        ("depth", 1, "in metres, as Smith et al. 2019 (model.py) measure them"),
        ("height", 2, "from the ground"),
        ("name", "n", "what it is called, in lower case"),
        ("part.depth", 3, "in metres, as Smith et al. 2019 (model.py) measure them"),
        ("part.height", 2, "in metres, as Smith et al. 2019 (model.py) measure them"),
        ("bare", 0.5, ""),
    ]


@pytest.mark.parametrize("run", RUNS, ids=lambda run: f"{run.objective.kind}-{run.model.kind}")
def test_every_field_of_every_kind_has_a_meaning_of_one_line(run: Run) -> None:
    listed = list(fields.listing(run))
    assert {path: value for path, value, _ in listed} == dict(flatten(to_dict(run)))
    wrong = {path: meaning for path, _, meaning in listed if not 10 <= len(meaning) <= 120 or meaning.count("`") % 2}
    assert not wrong


@pytest.mark.parametrize("cls", PARTS, ids=lambda cls: cls.__name__)
def test_whatever_is_listed_is_a_field(cls: type) -> None:
    """A renamed field takes its entry with it. Class attributes, such as the token types of XLNet, may be listed."""
    assert [name for name in fields.meanings(cls) if name not in {field.name for field in dataclasses.fields(cls)} | set(dir(cls))] == []


@pytest.mark.parametrize("cls", PARTS, ids=lambda cls: cls.__name__)
def test_no_entry_is_lost_in_a_paragraph(cls: type) -> None:
    """`name: meaning` in the middle of a line is not found by the listing."""
    doc, names = cls.__doc__, "|".join(field.name for field in dataclasses.fields(cls))
    assert re.findall(rf"\. ((?:{names})(?:, \w+)*): ", doc) == []
