"""Scores against counts by hand, finite for any answers and without warnings."""

import itertools
import math

import numpy as np
import pytest

from jaxenc.errors import UserError
from jaxenc.tasks import scores

pytestmark = pytest.mark.filterwarnings("error")


def counted_f1(true, given, name):
    right = sum(t == g == name for t, g in zip(true, given, strict=True))
    total = true.count(name) + given.count(name)
    return 2 * right / total if total else 0.0


@pytest.mark.parametrize("true", list(itertools.product("ab", repeat=3)), ids="".join)
def test_classification_by_counts(true):
    """Every answer to three examples; Matthews' correlation by its definition."""
    for given in itertools.product("ab", repeat=3):
        found = scores.classification(true, given, "ab")
        pairs = list(zip(true, given, strict=True))
        tp, tn, fp, fn = (pairs.count(pair) for pair in (("b", "b"), ("a", "a"), ("a", "b"), ("b", "a")))
        root = math.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn))
        f1 = {name: counted_f1(true, given, name) for name in "ab" if name in (*true, *given)}
        assert found["accuracy"] == (tp + tn) / 3
        assert found["matthews"] == pytest.approx((tp * tn - fp * fn) / root if root else 0.0, abs=1e-12)
        assert found["f1"] == pytest.approx(f1.get("b", 0.0)) and found["macro_f1"] == pytest.approx(sum(f1.values()) / len(f1))
        assert (found.get("degenerate") == 1) == (len(set(given)) == 1 and len(set(true)) == 2)


def test_three_classes_have_no_positive_one():
    found = scores.classification(["a", "b", "c", "c"], ["a", "c", "c", "b"], "abc")
    assert set(found) == {"accuracy", "macro_f1", "matthews"} and found["macro_f1"] == pytest.approx((1 + 0 + 0.5) / 3)


def ranks(values):
    """Mean rank of each value."""
    return [sum(one < value for one in values) + (sum(one == value for one in values) + 1) / 2 for value in values]


def correlation(a, b):
    a, b = np.array(a) - np.mean(a), np.array(b) - np.mean(b)
    return float((a * b).sum() / math.sqrt((a * a).sum() * (b * b).sum()))


def test_regression_by_its_definition():
    true, given = [0.0, 5.0, 2.5, 2.5, 4.0], [0.1, 9.0, 2.0, 3.0, 3.0]
    found = scores.regression(true, given)
    assert found["pearson"] == pytest.approx(correlation(true, given), abs=1e-12)
    assert found["spearman"] == pytest.approx(correlation(ranks(true), ranks(given)), abs=1e-12)
    assert found["mean_squared_error"] == pytest.approx(np.mean([(t - g) ** 2 for t, g in zip(true, given, strict=True)]))


@pytest.mark.parametrize(
    "true, given, degenerate",
    [
        ([], [], False),
        ([1.0], [2.0], False),
        ([1.0, 1.0], [1.0, 2.0], False),
        ([1.0, 2.0], [3.0, 3.0], True),
        ([1.0, 2.0], [1e5, 1e5 * (1 + 1e-15)], False),
        ([1.0, 2.0], [math.nan, 2.0], False),
        ([1.0, 2.0], [math.inf, 2.0], False),
    ],
)
def test_correlations_that_are_undefined_are_zero(true, given, degenerate):
    found = scores.regression(true, given)
    assert found["pearson"] == found["spearman"] == 0
    assert math.isnan(found["mean_squared_error"]) == (not all(map(math.isfinite, given)))
    assert ("degenerate" in found) == degenerate


def test_b88_columns_and_rows_of_answers_are_no_matrix():
    assert scores.regression([1.0, 2.0, 4.0], np.array([[1.0], [2.0], [4.0]])) == scores.regression([1.0, 2.0, 4.0], [1.0, 2.0, 4.0])
    with pytest.raises(ValueError, match="3 scores and 2 answers"):
        scores.regression([1.0, 2.0, 4.0], [1.0, 2.0])


def test_multilabel_by_counts():
    true, given = [["a", "b"], [], ["b"], ["a"]], [["a"], [], ["b", "c"], ["b"]]
    found = scores.multilabel(true, given, "abc")
    assert found["micro_f1"] == pytest.approx(2 * 2 / (4 + 4))
    assert found["macro_f1"] == pytest.approx((2 / 3 + 1 / 2 + 0) / 3) and found["accuracy"] == 0.25
    assert scores.multilabel([["a"], []], [["a"], []], "ab")["micro_f1"] == 1
    nothing = scores.multilabel([["a"], []], [[], []], "ab")
    assert (nothing["micro_f1"], nothing["macro_f1"], nothing["degenerate"]) == (0, 0, 1)


def test_accuracy_of_choices():
    assert scores.accuracy([0, 1, 2], [0, 1, 1]) == {"accuracy": pytest.approx(2 / 3)}
    assert scores.accuracy([0, 1], [1, 1]) == {"accuracy": 0.5, "degenerate": 1.0}


def test_nothing_to_score():
    assert scores.classification([], [], "ab") == {"accuracy": 0, "macro_f1": 0, "matthews": 0, "f1": 0}
    assert scores.multilabel([], [], "ab") == {"micro_f1": 0, "macro_f1": 0, "accuracy": 0}
    assert scores.accuracy([], []) == {"accuracy": 0}


def test_a_missing_library_is_named_before_training(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "sklearn" else object())
    with pytest.raises(UserError, match=r"need the package scikit-learn; install it with `pip install 'jaxenc\[tasks\]'`"):
        scores.require()
