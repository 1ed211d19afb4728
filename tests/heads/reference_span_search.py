"""The two heads that predict the end of an answer given its start, row by row in float64 with gradients by hand (google-research/electra
qa_tasks.py and zihangdai/xlnet function_builder.py with run_squad.py)."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

Leaves = dict[str, Any]
Gradients = tuple[float, Leaves, np.ndarray]


def softmax(x: np.ndarray) -> np.ndarray:
    weights = np.exp(x - x.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def gelu(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(the erf form, its slope)"""
    below = 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))
    return x * below, below + x * np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi)


def tanh(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.tanh(x), 1 - np.tanh(x) ** 2


def norm(p: Leaves, x: np.ndarray, epsilon: float) -> tuple[np.ndarray, Callable[[np.ndarray], tuple[Leaves, np.ndarray]]]:
    """(LayerNorm of each row, from its slope to those of its parameters and of x)"""
    deviation = np.sqrt(x.var(axis=-1, keepdims=True) + epsilon)
    normal = (x - x.mean(axis=-1, keepdims=True)) / deviation

    def back(slope: np.ndarray) -> tuple[Leaves, np.ndarray]:
        inner = slope * p["scale"]
        of_x = inner - inner.mean(axis=-1, keepdims=True) - normal * (inner * normal).mean(axis=-1, keepdims=True)
        return {"scale": (slope * normal).sum(axis=0), "bias": slope.sum(axis=0)}, of_x / deviation

    return normal * p["scale"] + p["bias"], back


def layer(p: Leaves, x: np.ndarray) -> np.ndarray:
    return x @ p["kernel"] + p.get("bias", 0)


def of_layer(p: Leaves, x: np.ndarray, slope: np.ndarray) -> tuple[Leaves, np.ndarray]:
    """The gradients of a layer and of its input."""
    bias = {"bias": slope.sum(axis=0)} if "bias" in p else {}
    return {"kernel": x.T @ slope, **bias}, slope @ p["kernel"].T


def joint(p: Leaves, h: np.ndarray, allowed: np.ndarray, cls: int, start: int, end: int, answerable: int) -> Gradients:
    """The loss of one row of the head `joint_spans`, and its gradients."""
    return _of_row(p, h, np.where(allowed, 0, -1000.0), cls, (start, end, answerable), gelu, start_first=True)


def beam(p: Leaves, h: np.ndarray, allowed: np.ndarray, cls: int, start: int, end: int, answerable: int) -> Gradients:
    """As `joint`, of the head `beam_spans`, with an epsilon of 1e-12."""
    return _of_row(p, h, np.where(allowed, 0, -1e30), cls, (start, end, answerable), tanh, start_first=False)


def logits(p: Leaves, h: np.ndarray, mask: np.ndarray, start: int, activation: Callable, start_first: bool) -> tuple[np.ndarray, ...]:
    """(start logits, end logits given a start, and what leads to the latter: both states, the dense layer's sum, its value and slope)"""
    first = layer(p["start"], h)[:, 0] + mask
    given = np.broadcast_to(h[start], h.shape)
    both = np.concatenate([given, h] if start_first else [h, given], axis=1)
    value, slope = activation(layer(p["end_hidden"], both))
    read = norm(p["end_norm"], value, 1e-12)[0] if "end_norm" in p else value
    return first, layer(p["end"], read)[:, 0] + mask, both, value, slope


def no_answer(p: Leaves, h: np.ndarray, first: np.ndarray, cls: int, activation: Callable, start_first: bool) -> tuple[Any, ...]:
    """(logit, both vectors, the dense layer's value and slope)"""
    mean = softmax(first) @ h
    both = np.concatenate([h[cls], mean] if start_first else [mean, h[cls]])[None]
    value, slope = activation(layer(p["no_answer_hidden"], both))
    return layer(p["no_answer"], value)[0, 0], both, value, slope


def _of_row(p: Leaves, h: np.ndarray, mask: np.ndarray, cls: int, labels: tuple, activation: Callable, start_first: bool) -> Gradients:
    start, end, answerable = labels
    width, places = h.shape[1], np.arange(len(h))
    first, last, both, value, slope = logits(p, h, mask, start, activation, start_first)
    p_first, p_last = softmax(first), softmax(last)
    none, summary, of_summary, summary_slope = no_answer(p, h, first, cls, activation, start_first)
    loss = -(np.log(p_first[start]) + np.log(p_last[end])) / 2 + 0.5 * (np.logaddexp(0, none) - (1 - answerable) * none)
    out, dh = {}, np.zeros_like(h)
    # whether there is no answer
    d = np.array([[0.5 * (1 / (1 + np.exp(-none)) - (1 - answerable))]])
    out["no_answer"], d = of_layer(p["no_answer"], of_summary, d)
    out["no_answer_hidden"], d = of_layer(p["no_answer_hidden"], summary, d * summary_slope)
    of_cls, of_mean = (d[0, :width], d[0, width:]) if start_first else (d[0, width:], d[0, :width])
    dh[cls] += of_cls
    dh += np.outer(p_first, of_mean)
    weighted = h @ of_mean
    d_first = p_first * (weighted - p_first @ weighted)
    # the end, given the labelled start
    d = (p_last - (places == end))[:, None] / 2
    read, back = norm(p["end_norm"], value, 1e-12) if "end_norm" in p else (value, None)
    out["end"], d = of_layer(p["end"], read, d)
    if back:
        out["end_norm"], d = back(d)
    out["end_hidden"], d = of_layer(p["end_hidden"], both, d * slope)
    of_start, of_place = (d[:, :width], d[:, width:]) if start_first else (d[:, width:], d[:, :width])
    dh[start] += of_start.sum(axis=0)
    dh += of_place
    # the start
    d_first += (p_first - (places == start)) / 2
    out["start"], d = of_layer(p["start"], h, d_first[:, None])
    return loss, out, dh + d


def searched(p: Leaves, h: np.ndarray, mask: np.ndarray, activation: Callable, start_first: bool, beam: int) -> list[tuple]:
    """[(place, score, [(place, score) of each end])] of the best `beam` starts."""
    log = lambda x: x - x.max() - np.log(np.exp(x - x.max()).sum())
    best = lambda x: [(int(i), x[i]) for i in np.argsort(-x, kind="stable")[:beam]]
    first = log(layer(p["start"], h)[:, 0] + mask)
    return [(i, score, best(log(logits(p, h, mask, i, activation, start_first)[1]))) for i, score in best(first)]


def total(of_row: Callable[..., Gradients], p: Leaves, hidden: np.ndarray, rows: list[tuple[np.ndarray, int, tuple] | None]) -> Gradients:
    """The sum over rows, each (allowed places, place of CLS, labels), None for one that is not counted."""
    loss, grads, slopes = 0.0, zeros(p), np.zeros_like(hidden)
    for r, row in enumerate(rows):
        if row:
            allowed, cls, labels = row
            one, of_params, slopes[r] = of_row(p, hidden[r], allowed, cls, *labels)
            loss, grads = loss + one, added(grads, of_params)
    return loss, grads, slopes


def zeros(p: Mapping[str, Any]) -> Leaves:
    return {name: {leaf: np.zeros(a.shape) for leaf, a in part.items()} for name, part in p.items()}


def added(one: Leaves, other: Leaves) -> Leaves:
    return {name: {leaf: a + other[name][leaf] for leaf, a in part.items()} for name, part in one.items()}
