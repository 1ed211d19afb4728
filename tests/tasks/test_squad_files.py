"""Files of SQuAD: both layouts, answers that are not where the file says, and what is refused."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jaxenc.errors import UserError
from jaxenc.tasks import squad_files

CONTEXT = "Line one.\r\nNo\u00a0break,\u2009thin,  double 🙂🙂 Zürich is here."


def record(**fields: Any) -> dict:
    """A flat record with one answer."""
    start = CONTEXT.index("Zürich")
    return {"id": "q1", "question": "Where?", "context": CONTEXT, "answers": {"text": ["Zürich"], "answer_start": [start]}} | fields


def nested(*items: dict) -> dict:
    return {"version": "v2.0", "data": [{"title": "t", "paragraphs": [{"context": CONTEXT, "qas": list(items)}]}]}


def item(**fields: Any) -> dict:
    return {"id": "q1", "question": "Where?", "answers": [{"text": "Zürich", "answer_start": CONTEXT.index("Zürich")}]} | fields


def written(path: Path, content: Any) -> Path:
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def test_both_layouts_hold_the_same_question(tmp_path: Path) -> None:
    (one,) = squad_files.read(written(tmp_path / "nested.json", nested(item())))
    (other,) = squad_files.read(written(tmp_path / "flat.json", {"data": [record()]}))
    assert one.answers == other.answers == (("Zürich", CONTEXT.index("Zürich")),) and one.target == one.answers[0]
    assert (one.name, one.question, one.context, one.impossible, one.labelled) == ("q1", "Where?", CONTEXT, False, True)
    assert one.where == f"{tmp_path / 'nested.json'}: question q1"


def test_no_answer_and_no_label(tmp_path: Path) -> None:
    """Version 2.0 says that there is no answer, in the flat form an empty list says so; a test set has no answers at all."""
    unlabelled = {name: value for name, value in item(id="q4").items() if name != "answers"}
    content = nested(
        item(id="q1", answers=[], is_impossible=True, plausible_answers=[{"text": "thin", "answer_start": 0}]),
        item(id="q2", answers=[]),
        item(id="q3", is_impossible=False),
        unlabelled,
    )
    found = squad_files.read(written(tmp_path / "a.json", content))
    assert [(q.impossible, q.labelled, q.target is None) for q in found] == [
        (True, True, True), (True, True, True), (False, True, False), (False, False, True)
    ]  # fmt: skip
    (flat,) = squad_files.read(written(tmp_path / "b.json", {"data": [record(answers={"text": [], "answer_start": []})]}))
    assert flat.impossible


@pytest.mark.parametrize("text", ["No\u00a0break", "thin,  double", "🙂 Zürich", "one.\r\nNo"])
def test_offsets_are_characters_of_the_file(tmp_path: Path, text: str) -> None:
    r"""\r\n, a no-break space, a thin space, two blanks and characters outside of the first plane count as they are."""
    start = CONTEXT.index(text)
    (found,) = squad_files.read(written(tmp_path / "a.json", nested(item(answers=[{"text": text, "answer_start": start}]))))
    assert found.target == (text, start) and squad_files.lost([found]) == ""


@pytest.mark.parametrize(
    "text, start",
    [
        ("Zürich", CONTEXT.replace("\r\n", "\n").index("Zürich")),  # counted after universal newlines
        ("Zürich", len(CONTEXT[: CONTEXT.index("Zürich")].encode())),  # counted in bytes
        ("No break", CONTEXT.index("No\u00a0break")),
        ("here", -5),  # from the end, as Python counts
        ("Zürich", 10**6),
        ("", 3),
    ],
)
def test_an_answer_elsewhere_is_counted_and_not_trained_on(tmp_path: Path, text: str, start: int) -> None:
    """It still counts as a right answer in the scoring; another answer that is there is trained on."""
    wrong, right = {"text": text, "answer_start": start}, item()["answers"][0]
    content = nested(item(answers=[wrong]), item(id="q2", answers=[wrong, right]), item(id="q3"))
    one, two, three = squad_files.read(written(tmp_path / "a.json", content))
    assert one.target is None and one.answers == ((text, squad_files.LOST),) and one.labelled and not one.impossible
    assert two.target == three.target == ("Zürich", right["answer_start"])
    assert squad_files.lost([one, two, three]) == (
        "2 answers are not in the context at answer_start and not trained on; the first belongs to question q1"
    )


def without(name: str) -> Callable[[dict], Any]:
    return lambda one: {key: value for key, value in one.items() if key != name}


@pytest.mark.parametrize(
    "content, where, what",
    [
        ({}, "", "data is missing"),
        ({"data": {}}, "", "data is not a list"),
        ({"data": [3]}, "data[0]", "the entry is not an object"),
        ({"data": [{"paragraphs": 1}]}, "data[0]", "paragraphs is not a list"),
        ({"data": [{"paragraphs": [{"context": "x"}]}]}, "data[0].paragraphs[0]", "qas is missing"),
        ({"data": [{"paragraphs": [{"qas": [7]}]}]}, "data[0].paragraphs[0].qas[0]", "the question is not an object"),
        (nested(item(id=5)), "data[0].paragraphs[0].qas[0]", "id is not a string"),
        (nested(without("question")(item())), "question q1", "question is missing"),
        (nested(item(question=None)), "question q1", "question is not a string"),
        (nested(item(question="\ud83d")), "question q1", "question holds half of a surrogate pair"),
        (nested(item(answers="x")), "question q1", "answers is not a list"),
        (nested(item(answers=["x"])), "question q1", "an answer is not an object"),
        (nested(item(answers=[{"text": "x"}])), "question q1", "answer_start is missing"),
        (nested(item(answers=[{"text": "x", "answer_start": "3"}])), "question q1", "answer_start is not an integer"),
        (nested(item(answers=[{"text": "x", "answer_start": True}])), "question q1", "answer_start is not an integer"),
        (nested(item(is_impossible=1)), "question q1", "is_impossible is not true or false"),
        (nested(item(is_impossible=True)), "question q1", "is_impossible is true and there are answers"),
        (nested(item(), item()), "question q1", "two questions have this id"),
        ({"data": [record(context=3)]}, "question q1", "context is not a string"),
        ({"data": [without("context")(record())]}, "question q1", "context is missing"),
        ({"data": [record(answers={"text": ["x"], "answer_start": []})]}, "question q1", "1 texts of answers and 0 values"),
        ({"data": [record(answers={"text": ["x"]})]}, "question q1: answers", "answer_start is missing"),
    ],
)  # fmt: skip
def test_what_is_malformed_is_one_line_with_its_place(tmp_path: Path, content: Any, where: str, what: str) -> None:
    path = written(tmp_path / "a.json", content)
    with pytest.raises(UserError) as error:
        squad_files.read(path)
    assert str(error.value).startswith(f"{path}: {where}{': ' if where else ''}{what}")


def test_a_file_that_is_no_json_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("{")
    with pytest.raises(UserError, match="not JSON"):
        squad_files.read(tmp_path / "a.json")
    with pytest.raises(UserError, match="No such file"):
        squad_files.read(tmp_path / "b.json")
