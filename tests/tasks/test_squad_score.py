"""EM and F1 against loops, on a thousand files of predictions, and the cases that the definition decides."""

import math

import numpy as np
import pytest

from jaxenc.tasks import squad_score
from jaxenc.tasks.squad_files import Question
from tests.tasks import reference_squad

WORDS = ["the", "The", "a", "an", "theatre", "Paris,", "paris", "in", "IN", "1995", "(1995)", "U.S.", "l'été", "—", ".", "", "Ann", "b"]


def question(name: str, *golds: str) -> Question:
    return Question(name, f"file: question {name}", "?", " ".join(golds), tuple((gold, 0) for gold in golds), not golds)


def test_a_thousand_files_of_predictions_are_scored_as_by_loops() -> None:
    """Overall, with and without answers, and the best thresholds, with equal null scores among them: 8 questions a file."""
    random = np.random.default_rng(0)
    text = lambda most: " ".join(random.choice(WORDS, random.integers(0, most + 1)))
    for _ in range(1000):
        questions = [question(f"q{i}", *(text(4) for _ in range(random.integers(0, 4)))) for i in range(8)]
        golds = {q.name: [gold for gold, _ in q.answers] for q in questions}
        answers = {name: str(random.choice(own)) if own and random.random() < 0.5 else text(3) for name, own in golds.items()}
        null = {q.name: float(random.integers(-3, 4)) for q in questions}
        pairs = {name: reference_squad.exact_and_f1(golds[name], answers[name]) for name in golds}
        wanted = {}
        for prefix, names in (
            ("", list(golds)),
            ("HasAns_", [name for name in golds if golds[name]]),
            ("NoAns_", [name for name in golds if not golds[name]]),
        ):
            if names:
                exact, f1 = (100 * sum(pairs[name][k] for name in names) / len(names) for k in (0, 1))
                wanted |= {f"{prefix}exact": exact, f"{prefix}f1": f1, f"{prefix}total": len(names)}
        assert squad_score.score(questions, answers) == pytest.approx(wanted, abs=1e-9)
        found = squad_score.best_thresholds(questions, answers, null)
        for k, part in enumerate(("exact", "f1")):
            scores = {name: pair[k] for name, pair in pairs.items()}
            best, threshold = reference_squad.best_threshold(list(golds), golds, answers, scores, null)
            assert (found[f"best_{part}"], found[f"best_{part}_thresh"]) == (pytest.approx(best), threshold)


@pytest.mark.parametrize(
    "gold, answer, exact, f1",
    [
        ("The Eiffel Tower", "eiffel tower.", 1, 1),
        ("an A. Smith", "smith", 1, 1),  # without its dot, `A.` is an article
        ("theatre", "atre", 0, 0),
        ("the-atre", "theatre", 1, 1),  # punctuation goes before articles do
        ("x y z", "x z", 0, 0.8),
        ("x x", "x", 0, 2 / 3),
        ("U.S.", "us", 1, 1),
        ("5–6", "5-6", 0, 0),  # a dash outside ASCII is no punctuation
        ("Paris", "", 0, 0),
    ],
)  # fmt: skip
def test_the_definition(gold: str, answer: str, exact: float, f1: float) -> None:
    assert (squad_score.exact(gold, answer), squad_score.f1(gold, answer)) == (exact, pytest.approx(f1))


def test_nothing_equals_nothing() -> None:
    """A question without an answer is right when it is answered by '', or by what normalisation removes."""
    questions = [question("none"), question("article", "the"), question("wrong")]
    found = squad_score.score(questions, {"none": "", "article": "a", "wrong": "x"})
    assert found["exact"] == found["f1"] == pytest.approx(200 / 3) and found["NoAns_exact"] == 50 and found["HasAns_f1"] == 100


def test_no_questions_have_no_score() -> None:
    assert math.isnan(squad_score.score([], {})["exact"]) and squad_score.score([], {})["total"] == 0
    assert math.isnan(squad_score.best_thresholds([], {}, {})["best_f1"])


def test_a_question_without_labels_or_without_an_answer_is_refused() -> None:
    unlabelled = Question("q", "file: question q", "?", "", (), impossible=False)
    for one, answers in ((unlabelled, {"q": ""}), (question("q", "x"), {})):
        with pytest.raises(ValueError, match="file: question q"):
            squad_score.score([one], answers)
