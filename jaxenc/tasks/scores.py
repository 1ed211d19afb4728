"""Scores of predictions, computed with scikit-learn and SciPy; defined for any answers, also where those libraries define none."""

import importlib.util
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from jaxenc.errors import UserError

# The entry of a score dict that flags answers that are all the same although the labels are not.
DEGENERATE = "degenerate"


def require() -> None:
    """Raises UserError if the libraries are not installed. It is cheap; call it before a training run rather than after it."""
    for module, package in (("scipy", "scipy"), ("sklearn", "scikit-learn")):
        if importlib.util.find_spec(module) is None:
            raise UserError(f"the scores of tasks need the package {package}", fix="install it with `pip install 'jaxenc[tasks]'`")


def classification(labels: Sequence[str], answers: Sequence[str], classes: Sequence[str]) -> dict[str, float]:
    """Accuracy, macro_f1 and matthews of answers; with two classes also f1, that of the second one (the positive class of GLUE's tasks).

    classes: all of them. F1 of a class that is in neither labels nor answers is 0, and macro_f1 is the mean over the classes that are in
    either. matthews is 0 if the labels or the answers are all the same (Matthews 1975 leaves it undefined). All are 0 without examples.
    `degenerate` is 1 if the answers are all the same and the labels are not.
    """
    require()
    from sklearn import metrics

    number = {name: i for i, name in enumerate(classes)}
    true, given = (np.array([number[name] for name in names], np.int64) for names in (labels, answers))
    if not len(true):
        return {"accuracy": 0.0, "macro_f1": 0.0, "matthews": 0.0} | ({"f1": 0.0} if len(classes) == 2 else {})
    out = {
        "accuracy": float((true == given).mean()),
        "macro_f1": float(metrics.f1_score(true, given, average="macro", zero_division=0)),
        "matthews": 0.0 if _constant(true) or _constant(given) else float(metrics.matthews_corrcoef(true, given)),
    }
    if len(classes) == 2:
        out["f1"] = float(metrics.f1_score(true, given, labels=[1], average="macro", zero_division=0))
    return out | _flagged(true, given)


def accuracy(labels: Sequence[Any], answers: Sequence[Any]) -> dict[str, float]:
    """The share of answers that are the label, 0 without examples; `degenerate` as in `classification`."""
    if not labels:
        return {"accuracy": 0.0}
    right = sum(label == answer for label, answer in zip(labels, answers, strict=True))
    same = len(set(answers)) == 1 < len(set(labels))
    return {"accuracy": right / len(labels)} | ({DEGENERATE: 1.0} if same else {})


def regression(scores: Sequence[float], answers: Sequence[float]) -> dict[str, float]:
    """Pearson's and Spearman's correlation and the mean squared error of answers, float64; 0 without examples.

    Both correlations are 0 if the scores or the answers are all the same, if there is only one example, and if any answer is not finite;
    the error is then NaN. `degenerate` as in `classification`.
    """
    require()
    from scipy import stats

    true, given = np.asarray(scores, np.float64).reshape(-1), np.asarray(answers, np.float64).reshape(-1)
    if len(true) != len(given):
        raise ValueError(f"{len(true)} scores and {len(given)} answers")
    finite = bool(np.isfinite(given).all())
    defined = len(true) > 1 and finite and not _flat(true) and not _flat(given)
    return {
        "pearson": float(stats.pearsonr(true, given)[0]) if defined else 0.0,
        "spearman": float(stats.spearmanr(true, given)[0]) if defined else 0.0,
        "mean_squared_error": (float(np.mean(np.square(true - given))) if finite else math.nan) if len(true) else 0.0,
    } | _flagged(true, given)


def multilabel(labels: Sequence[Sequence[str]], answers: Sequence[Sequence[str]], classes: Sequence[str]) -> dict[str, float]:
    """Micro and macro F1 of sets of classes, and accuracy: the share of examples whose whole set is right.

    F1 of a class that no example has and no answer names is 0, and counts in macro_f1. All are 0 without examples. `degenerate` as in
    `classification`.
    """
    require()
    from sklearn import metrics

    marks = lambda rows: np.array([[name in row for name in classes] for row in rows], np.int64).reshape(-1, len(classes))
    true, given = marks(labels), marks(answers)
    if not len(true):
        return {"micro_f1": 0.0, "macro_f1": 0.0, "accuracy": 0.0}
    f1 = lambda average: float(metrics.f1_score(true, given, average=average, zero_division=0)) if len(classes) > 1 else _f1(true, given)
    out = {"micro_f1": f1("micro"), "macro_f1": f1("macro"), "accuracy": float((true == given).all(axis=1).mean())}
    return out | _flagged(true, given)


def _f1(true: np.ndarray, given: np.ndarray) -> float:
    """F1 of the ones."""
    total = int(true.sum() + given.sum())
    return 2 * int((true * given).sum()) / total if total else 0.0


def _flat(values: np.ndarray) -> bool:
    """Whether finite numbers differ at most by rounding, so that their correlation with others would be noise."""
    return bool(np.ptp(values) <= 1e-12 * np.abs(values).max())


def _constant(values: np.ndarray) -> bool:
    return bool((values == values[:1]).all())


def _flagged(true: np.ndarray, given: np.ndarray) -> dict[str, float]:
    return {DEGENERATE: 1.0} if len(true) > 1 and _constant(given) and not _constant(true) else {}
