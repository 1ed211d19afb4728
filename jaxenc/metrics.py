"""Metrics as sums with weights, so that a mean over rows, steps or a whole evaluation is never a mean of means."""

from collections.abc import Mapping

import numpy as np

Sums = Mapping[str, tuple[np.ndarray, np.ndarray]]


def add(total: dict[str, tuple[np.ndarray, np.ndarray]], sums: Sums) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """`total` plus one batch's {name: (sum, weight)}, in float64 on the host. Sums may have any fixed shape."""
    out = dict(total)
    for name, (value, weight) in sums.items():
        before = out.get(name, (np.float64(0), np.float64(0)))
        out[name] = (before[0] + np.asarray(value, np.float64), before[1] + np.asarray(weight, np.float64))
    return out


def means(sums: Sums) -> dict[str, float]:
    """{name: sum / weight}, 0 where the weight is 0. Sums that are not scalars are left out."""
    scalars = {name: (float(v), float(w)) for name, (v, w) in sums.items() if np.ndim(v) == 0}
    return {name: value / weight if weight > 0 else 0.0 for name, (value, weight) in scalars.items()}


def predictions(sums: Sums) -> dict[str, int]:
    """{`X_predictions`: weight of the scalar `X_loss`}: the number of tokens or rows that each mean loss is taken over."""
    scalars = {name: weight for name, (value, weight) in sums.items() if name.endswith("_loss") and np.ndim(value) == 0}
    return {f"{name.removesuffix('_loss')}_predictions": round(float(weight)) for name, weight in scalars.items()}
