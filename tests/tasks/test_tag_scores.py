"""Scores of tags against cases counted by hand and an independent count of entities."""

import builtins
import random
from typing import Any

import pytest

from jaxenc.errors import UserError
from jaxenc.tasks import tag_scores
from jaxenc.tasks.tag_scores import accuracy, begun_inside, entities

# true, given, (right, given, true) entities
CASES = {
    "all right": ("B-a I-a O B-b", "B-a I-a O B-b", (2, 2, 2)),
    "a wrong end": ("B-a I-a O", "B-a O O", (0, 1, 1)),
    "a wrong type": ("B-a I-a O", "B-b I-b O", (0, 1, 1)),
    "one missed": ("B-a O B-b", "B-a O O", (1, 1, 2)),
    "one too many": ("B-a O O", "B-a O B-a", (1, 2, 1)),
    "two neighbours read as one": ("B-a B-a", "B-a I-a", (0, 1, 2)),
    "begun inside, which counts as begun": ("B-a I-a O B-b", "I-a I-a O I-b", (2, 2, 2)),
    "a type that changes inside": ("B-a I-a", "B-a I-b", (0, 2, 1)),
    "types with hyphens": ("B-creative-work I-creative-work", "B-creative-work I-creative-work", (1, 1, 1)),
    "across two sentences nothing goes on": ("B-a | I-a", "B-a | I-a", (2, 2, 2)),
    "no entity given": ("B-a O", "O O", (0, 0, 1)),
    "no true entity": ("O O", "B-a O", (0, 1, 0)),
    "no entity at all": ("O O", "O O", (0, 0, 0)),
    "an empty sentence": ("B-a | ", "B-a | ", (1, 1, 1)),
    "single and end tags": ("S-a B-b I-b E-b", "S-a B-b I-b E-b", (2, 2, 2)),
}


def split(text: str) -> list[list[str]]:
    return [part.split() for part in text.split("|")]


def numbers(right: int, given: int, true: int) -> list[float]:
    precision, recall = right / given if given else 0.0, right / true if true else 0.0
    return [precision, recall, 2 * precision * recall / (precision + recall) if right else 0.0]


@pytest.mark.parametrize("true, given, counts", CASES.values(), ids=CASES)
def test_cases_counted_by_hand(true: str, given: str, counts: tuple[int, int, int]) -> None:
    scores = entities(split(true), split(given))
    assert [scores[name] for name in ("precision", "recall", "f1")] == pytest.approx(numbers(*counts))
    assert all(type(value) is float for value in scores.values())


def test_each_type_has_its_own_scores_also_one_that_no_sentence_has() -> None:
    scores = entities(split("B-a O B-b | B-b"), split("B-a O O | B-c"), ["a", "d"])
    assert {name for name in scores if "_" in name} == {f"{score}_{kind}" for score in ("precision", "recall", "f1") for kind in "abcd"}
    assert (scores["f1_a"], scores["f1_b"], scores["f1_c"], scores["f1_d"], scores["recall_b"]) == (1, 0, 0, 0, 0)


def spans(sentences: list[list[str]]) -> set[tuple[int, int, int, str]]:
    """Entities by the rule of conlleval.pl, for O, B and I."""
    found = set()
    for number, tags in enumerate(sentences):
        begin, kind = -1, ""
        for place, tag in enumerate([*tags, "O"]):
            if begin >= 0 and (tag[0] in "OB" or tag[2:] != kind):
                found.add((number, begin, place, kind))
                begin = -1
            if begin < 0 and tag != "O":
                begin, kind = place, tag[2:]
    return found


def test_random_tags_against_a_count_of_spans() -> None:
    draw = random.Random(3)
    tags = ["O", "B-a", "I-a", "B-b", "I-b"]
    for _ in range(200):
        true = [[draw.choice(tags) for _ in range(draw.randrange(6))] for _ in range(draw.randrange(4))]
        given = [[tag if draw.random() < 0.6 else draw.choice(tags) for tag in one] for one in true]
        scores = entities(true, given)
        counts = len(spans(true) & spans(given)), len(spans(given)), len(spans(true))
        assert [scores[name] for name in ("precision", "recall", "f1")] == pytest.approx(numbers(*counts))
        for kind in "ab":
            of = lambda sentences, kind=kind: {span for span in spans(sentences) if span[3] == kind}
            if of(true) | of(given):
                expected = numbers(len(of(true) & of(given)), len(of(given)), len(of(true)))
                assert [scores[f"{name}_{kind}"] for name in ("precision", "recall", "f1")] == pytest.approx(expected)


def test_the_share_of_right_words_counts_words_and_not_sentences() -> None:
    assert accuracy([["a"] * 3, ["b"]], [["a", "a", "b"], ["a"]]) == 0.5
    assert accuracy([], []) == accuracy([[]], [[]]) == 0.0
    with pytest.raises(ValueError, match="shorter"):
        accuracy([["a", "b"]], [["a"]])


def test_entities_that_begin_inside_are_counted() -> None:
    assert begun_inside(split("I-a I-a O I-b | I-a B-a I-a I-b | B-a I-a")) == 4


def test_without_seqeval_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    known = builtins.__import__

    def without(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.startswith("seqeval"):
            raise ImportError(name)
        return known(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(UserError, match=r"pip install 'jaxenc\[tasks\]'"):
        tag_scores.library()
