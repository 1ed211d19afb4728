"""A curve in one line of text."""

import itertools
from collections.abc import Sequence

MARKS = "▁▂▃▄▅▆▇█"
LARGEST = 1e290  # the sum of 10^18 such values is finite


def sparkline(values: Sequence[float], width: int, marks: str = MARKS) -> str:
    """`values` from left to right in at most `width` characters, each the mean of as many neighbours as needed; the lowest mark stands for
    the smallest, the highest for the largest. Values that are not finite, or too large to add up, are left out; '' for none."""
    finite = [value for value in values if abs(value) < LARGEST]
    count = min(width, len(finite))
    if count < 1:
        return ""
    edges = [i * len(finite) // count for i in range(count + 1)]
    means = [sum(finite[a:b]) / (b - a) for a, b in itertools.pairwise(edges)]
    low, high = min(means), max(means)
    scale = (len(marks) - 1) / (high - low) if high > low else 0.0
    return "".join(marks[round((value - low) * scale)] for value in means)
