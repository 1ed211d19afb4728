"""The loss of distillation and its slopes in float64, place by place, from what both models say of whole rows. Sanh et al. 2019, section 3,
as distiller.py in examples/research_projects/distillation of huggingface/transformers computes it."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

SAID = ("mlm", "last")


class Loss(NamedTuple):
    """parts: {term: mean}. slopes: the gradient of the weighted sum with respect to the student's logits [batch, length, vocab] and last
    hidden states [batch, length, width]."""

    parts: dict[str, float]
    slopes: dict[str, np.ndarray]


def log_softmax(logits: np.ndarray) -> np.ndarray:
    shifted = logits - logits.max()
    return shifted - np.log(np.exp(shifted).sum())


def loss(
    student: Mapping[str, np.ndarray],
    teacher: Mapping[str, np.ndarray],
    real: np.ndarray,
    predicted: Sequence[tuple[int, int, int]],
    everywhere: bool,
    temperature: float,
    coef: Mapping[str, float],
) -> Loss:
    """student, teacher: {`mlm`: logits, `last`: last hidden states}. real: [batch, length], 0 for padding. predicted: (row, place, id) of
    each prediction. everywhere: whether the distributions are compared at all real places."""
    ours, theirs = ({name: np.float64(said[name]) for name in SAID} for said in (student, teacher))
    slopes = {name: np.zeros_like(value) for name, value in ours.items()}
    parts = dict.fromkeys(("soft", "mlm", "cosine"), 0.0)
    reals = list(zip(*np.nonzero(real), strict=True))
    places = reals if everywhere else [(row, place) for row, place, _ in predicted]
    for at in places:
        log_q, log_p = (log_softmax(said["mlm"][at] / temperature) for said in (ours, theirs))
        p = np.exp(log_p)
        parts["soft"] += temperature**2 * (p * (log_p - log_q)).sum() / len(places)
        slopes["mlm"][at] += coef["soft"] * temperature * (np.exp(log_q) - p) / len(places)
    for row, place, token in predicted:
        log_q = log_softmax(ours["mlm"][row, place])
        parts["mlm"] -= log_q[token] / len(predicted)
        slope = np.exp(log_q)
        slope[token] -= 1
        slopes["mlm"][row, place] += coef["mlm"] * slope / len(predicted)
    for at in reals:
        a, b = ours["last"][at], theirs["last"][at]
        lengths = np.linalg.norm(a) * np.linalg.norm(b)
        cosine = a @ b / lengths
        parts["cosine"] += (1 - cosine) / len(reals)
        slopes["last"][at] -= coef["cosine"] * (b / lengths - cosine * a / (a @ a)) / len(reals)
    return Loss(parts, slopes)
