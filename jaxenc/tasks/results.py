"""What a fine-tuning gives: the scores of every seed, and their summary."""

import dataclasses
import json
import math
import pathlib
import statistics
from collections.abc import Mapping, Sequence
from typing import Any, Self

from jaxenc.files import read_json, write_bytes
from jaxenc.tasks.scores import DEGENERATE

NAME = "results.json"


@dataclasses.dataclass(frozen=True)
class Outcome:
    """The result of one seed. directory: its run directory. step: the checkpoint that was kept. scores: {metric: number} of the dev set at
    that step, with the mean losses. failed: why the seed gives no scores, '' where it does. seconds: of training and evaluation."""

    seed: int
    directory: str
    step: int
    scores: Mapping[str, float]
    failed: str = ""
    seconds: float = 0.0

    @classmethod
    def read(cls, path: pathlib.Path) -> Self:
        """The content of a file that `write` made. Raises UserError for anything else."""
        return cls(**read_json(path, "remove it; the run then writes it again"))

    def write(self, path: pathlib.Path) -> None:
        """Writes the file, complete or not at all."""
        write_bytes(path, (json.dumps(dataclasses.asdict(self), indent=1) + "\n").encode())


@dataclasses.dataclass(frozen=True)
class Results:
    """metric: the task's first metric. seeds: the results of all, in order. preempted: whether the last one was stopped before its end."""

    metric: str
    seeds: tuple[Outcome, ...]
    preempted: bool = False

    @property
    def summary(self) -> dict[str, dict[str, float]]:
        """{metric: median, mean, standard deviation (of a sample, n - 1; NaN for one seed), minimum and maximum} over the seeds that have
        scores. A degenerate seed counts: leaving it out would be a choice by the result."""
        done = [one.scores for one in self.seeds if not one.failed]
        names = [name for name in done[0] if all(name in scores for scores in done)] if done else []
        return {name: _spread([scores[name] for scores in done]) for name in names}

    @property
    def failed(self) -> int:
        """How many seeds have no scores."""
        return sum(bool(one.failed) for one in self.seeds)

    @property
    def best(self) -> Outcome | None:
        """The seed with the highest `metric`, the first of equals; None where all failed. It is chosen on the dev set, so its score is
        above what a new seed will reach: quote the median."""
        done = [one for one in self.seeds if not one.failed and self.metric in one.scores]
        return max(done, key=lambda one: one.scores[self.metric], default=None)

    def to_json(self) -> dict[str, Any]:
        """The content of results.json."""
        seeds = [dataclasses.asdict(one) for one in self.seeds]
        summary = {name: {key: None if math.isnan(value) else value for key, value in one.items()} for name, one in self.summary.items()}
        return {"metric": self.metric, "summary": summary, "failed": self.failed, "seeds": seeds}


def _spread(values: Sequence[float]) -> dict[str, float]:
    return {
        "median": statistics.median(values),
        "mean": statistics.fmean(values),
        "std": statistics.stdev(values) if len(values) > 1 else math.nan,
        "min": min(values),
        "max": max(values),
    }


def table(results: Results) -> list[str]:
    """The lines that a terminal shows: `metric` and the other scores of every seed, then their summary."""
    names = [name for name in results.summary if name != results.metric and name != DEGENERATE]
    names = [results.metric] * (results.metric in results.summary) + names
    width = max([len(name) for name in names], default=0) + 2
    lines = ["seed    step" + "".join(f"{name:>{max(width, 10)}}" for name in names)]
    for one in results.seeds:
        numbers = "".join(f"{one.scores[name]:>{max(width, 10)}.4f}" for name in names if name in one.scores)
        note = f"  failed: {one.failed}" if one.failed else "  one class for all" if one.scores.get(DEGENERATE) else ""
        lines.append(f"{one.seed:>4}{one.step:>8,}{numbers}{note}")
    if len(results.seeds) - results.failed > 1:
        for key in ("median", "mean", "std", "min", "max"):
            lines.append(f"{key:<12}" + "".join(f"{results.summary[name][key]:>{max(width, 10)}.4f}" for name in names))
    if results.failed:
        lines.append(f"{results.failed} of {len(results.seeds)} seeds failed and are not in these numbers")
    return lines
