"""One number of a run by step."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

WINDOW = 5  # rows of a running median: a single step may spike in a healthy run, and its median does not


@dataclasses.dataclass(frozen=True)
class Series:
    """steps: int64 [n], rising. values: float64 [n], finite."""

    steps: np.ndarray
    values: np.ndarray

    @classmethod
    def of(cls, rows: Sequence[Mapping[str, Any]], split: str, *names: str) -> Self:
        """The mean of the numbers `names` in the rows of `split` that have all of them; numbers that are not finite are left out."""
        points = [(row["step"], np.mean([row[name] for name in names])) for row in rows if _has(row, split, names)]
        finite = [(step, value) for step, value in points if np.isfinite(value)]
        return cls(np.array([step for step, _ in finite], np.int64), np.array([value for _, value in finite], np.float64))

    def __len__(self) -> int:
        return len(self.steps)

    @property
    def last(self) -> float:
        """The last value. There must be one."""
        return float(self.values[-1])

    @property
    def median(self) -> float:
        """The median of the values. There must be one."""
        return float(np.median(self.values))

    @property
    def smooth(self) -> Self:
        """The running median of the last WINDOW values, from the WINDOW-th on."""
        if len(self) < WINDOW:
            return type(self)(self.steps[:0], self.values[:0])
        windows = np.lib.stride_tricks.sliding_window_view(self.values, WINDOW)
        return type(self)(self.steps[WINDOW - 1 :], np.median(windows, axis=1))

    def between(self, start: float, end: float) -> Self:
        """The part with start < step <= end."""
        inside = (self.steps > start) & (self.steps <= end)
        return type(self)(self.steps[inside], self.values[inside])


def _has(row: Mapping[str, Any], split: str, names: Sequence[str]) -> bool:
    return row["split"] == split and all(name in row for name in names)
