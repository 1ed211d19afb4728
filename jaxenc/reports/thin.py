"""Fewer points of a long curve, with its extremes."""

import itertools

import numpy as np


def thin(y: np.ndarray, most: int) -> np.ndarray:
    """Indices, rising, of at most about `most` points of a curve: all of a short one; else the lowest and the highest of each of most / 2
    parts of equal length, the first number that is not finite in each, which is where the line has a gap, and both ends. y: [n]."""
    n = len(y)
    if n <= most:
        return np.arange(n)
    edges = np.linspace(0, n, most // 2 + 1).astype(int)
    kept = {0, n - 1}
    for low, high in itertools.pairwise(edges):
        part = y[low:high]
        finite = np.isfinite(part)
        if finite.any():
            kept |= {low + int(np.where(finite, part, np.inf).argmin()), low + int(np.where(finite, part, -np.inf).argmax())}
        if not finite.all():
            kept.add(low + int((~finite).argmax()))
    return np.array(sorted(kept))
