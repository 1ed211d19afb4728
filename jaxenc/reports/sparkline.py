"""A curve in one line of text."""

import itertools
import math
from collections.abc import Sequence

MARKS = "▁▂▃▄▅▆▇█"


def sparkline(values: Sequence[float], width: int, marks: str = MARKS) -> str:
    """`values` from left to right in at most `width` characters, each the mean of as many neighbours as needed; the lowest mark stands for
    the smallest, the highest for the largest. Values that are not finite are left out; '' for none."""
    finite = [value for value in values if math.isfinite(value)]
    count = min(width, len(finite))
    if count < 1:
        return ""
    edges = [i * len(finite) // count for i in range(count + 1)]
    means = [sum(finite[a:b]) / (b - a) for a, b in itertools.pairwise(edges)]
    low, high = min(means), max(means)
    scale = (len(marks) - 1) / (high - low) if high > low else 0.0
    return "".join(marks[round((value - low) * scale)] for value in means)
