"""Ranges of integers laid end to end: the places of many runs of text as one array."""

import numpy as np


def ranges(starts: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """starts[0], starts[0] + 1, ... up to sizes[0] of them, then those from starts[1] on, and so on: int64 [sum of sizes].

    starts, sizes: int64 [n], sizes >= 0.
    """
    ends = np.cumsum(sizes)
    total = int(ends[-1]) if len(ends) else 0
    return np.arange(total) + np.repeat(starts - (ends - sizes), sizes)


def numbers(sizes: np.ndarray) -> np.ndarray:
    """0, 1, ... sizes[0] - 1, then 0, 1, ... sizes[1] - 1, and so on: int64 [sum of sizes]. sizes: int64 [n], >= 0."""
    return ranges(np.zeros_like(sizes), sizes)
