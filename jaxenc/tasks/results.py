"""The results of a fine-tuning: the scores of every seed, and their summary."""

import dataclasses
import json
import math
import pathlib
import re
import statistics
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Self

from jaxenc import storage
from jaxenc.checkpoint.verify import CHECKPOINTS
from jaxenc.errors import UserError
from jaxenc.files import read_json, write_bytes
from jaxenc.storage import below
from jaxenc.tasks.scores import DEGENERATE
from jaxenc.training.record import METRICS, is_name, is_number

# Names in a work directory: the results of all seeds, the result in the run directory of one seed, such run directories.
NAME, RESULT, SEEDS = "results.json", "result.json", "seed_{}"
REPORTS = ("report.html", "report.png", "comparison.html", "comparison.png")  # what `jaxenc report` adds to a work directory
HOLDS = (SEEDS.format("[0-9]*"), NAME, *REPORTS)  # patterns of what a work directory may hold
# In a run directory, and config.json in a checkpoint too; a work directory has none of them.
OF_A_RUN = frozenset({METRICS, "config.json", CHECKPOINTS})
SHOWN = 6  # scores in a row of `table`
SUMMARY = ("median", "mean", "std", "min", "max")  # the numbers of `Results.summary`
# Evidence, on the task of `jaxenc demo` (four classes, a model 128 wide): accuracy 0.25 with one answer for all at a rate of 3e-2, and 0.66
# at 1e-3. With 150 examples and 14 steps: 0.30 at 3e-5, 0.44 at 1e-3. A model with hardly any pretraining gave nearly one answer after 19
# steps, and several after 94.
REMEDY = (
    "optim.lr is too high, or too low for so few steps: set it (1e-3 suits a model 128 wide, the published rates one of 768), or raise "
    "train.epochs, in another --workdir"
)
AGAIN = "delete it and run the same `jaxenc finetune` again to write it"


@dataclasses.dataclass(frozen=True)
class Outcome:
    """The result of one seed. directory: its run directory. step: the checkpoint that was kept. scores: {metric: number} of the dev set at
    that step, with the mean losses; in the file null stands for those that are not finite, which are read as NaN. failed: why the seed has
    no scores, '' if it has. seconds: of training and evaluation. answered: {split: sha256 of its rows} of the answers that its directory
    holds."""

    seed: int
    directory: str
    step: int
    scores: Mapping[str, float]
    failed: str = ""
    seconds: float = 0.0
    answered: Mapping[str, str] = dataclasses.field(default_factory=dict)

    @classmethod
    def read(cls, path: pathlib.Path) -> Self:
        """Reads a file that `write` wrote. Raises UserError for anything else."""
        return cls._of(read_json(path, AGAIN), path)

    @classmethod
    def _of(cls, data: Any, path: pathlib.Path) -> Self:
        try:
            scores = {name: math.nan if value is None else value for name, value in dict(data.get("scores", {})).items()}
            found = cls(**{**data, "scores": scores})
        except (AttributeError, TypeError, ValueError) as error:
            raise UserError(f"is not the result of a seed ({error})", path, AGAIN) from error
        if wrong := found._damaged:
            raise UserError(f"is not the result of a seed ({wrong[0]} is {getattr(found, wrong[0])!r:.60})", path, AGAIN)
        return found

    @property
    def _damaged(self) -> list[str]:
        """The fields that hold a value which `write` never writes."""
        texts = isinstance(self.answered, dict) and all(isinstance(one, str) for one in self.answered.values())
        right = {
            "seed": is_number(self.seed) and type(self.seed) is int and self.seed >= 0,
            "step": is_number(self.step) and type(self.step) is int and self.step >= 0,
            "directory": isinstance(self.directory, str),
            "scores": isinstance(self.scores, dict) and all(is_name(name) and is_number(value) for name, value in self.scores.items()),
            "failed": isinstance(self.failed, str) and self.failed.isprintable(),
            "seconds": is_number(self.seconds),
            "answered": texts,
        }
        return [name for name, is_right in right.items() if not is_right]

    def write(self, path: pathlib.Path) -> None:
        """Writes the file, complete or not at all."""
        write_bytes(path, (json.dumps(self.to_json(), indent=1) + "\n").encode())

    def to_json(self) -> dict[str, Any]:
        """The content of a result.json."""
        return {**dataclasses.asdict(self), "scores": _as_json(self.scores)}


@dataclasses.dataclass(frozen=True)
class Results:
    """metric: the task's first metric. seeds: the result of each seed, in order. preempted: whether the last one was stopped early.
    shown: {score: what a table calls it}, as of `Task.shown`. stopped: which seed was stopped and where, '' if none was."""

    metric: str
    seeds: tuple[Outcome, ...]
    preempted: bool = False
    shown: Mapping[str, str] = dataclasses.field(default_factory=dict)
    stopped: str = ""

    @classmethod
    def read(cls, path: pathlib.Path) -> Self:
        """Reads a results.json. Raises UserError for anything else."""
        data = read_json(path, AGAIN)
        seeds = data.get("seeds")
        if not is_name(data.get("metric")) or not isinstance(seeds, list) or not seeds:
            raise UserError("has no scores of seeds", path, AGAIN)
        shown = data.get("shown", {})
        if not isinstance(shown, dict) or not all(isinstance(one, str) and one.isprintable() for one in shown.values()):
            raise UserError(f"shown is {shown!r:.60}, which does not name scores", path, AGAIN)
        return cls(data["metric"], tuple(Outcome._of(one, path) for one in seeds), shown=shown)

    @property
    def summary(self) -> dict[str, dict[str, float]]:
        """{metric: median, mean, standard deviation (of a sample, n - 1; NaN for one seed), minimum and maximum} over the seeds that have
        scores. A degenerate seed counts: leaving it out would be selection by the result."""
        done = [one.scores for one in self.seeds if not one.failed]
        names = [name for name in done[0] if all(name in scores for scores in done)] if done else []
        return {name: _spread([scores[name] for scores in done]) for name in names}

    @property
    def failed(self) -> int:
        """How many seeds have no scores."""
        return sum(bool(one.failed) for one in self.seeds)

    @property
    def left_out(self) -> str:
        """Which seeds are not in the summary, in words; '' where all are."""
        return f"{self.failed} of {len(self.seeds)} seeds failed and are not in these numbers" if self.failed else ""

    @property
    def degenerate(self) -> bool:
        """Whether a seed gives one answer to all examples."""
        return any(one.scores.get(DEGENERATE) for one in self.seeds)

    @property
    def best(self) -> Outcome | None:
        """The seed with the highest `metric`, the first of equals; None if all failed. It is chosen on the dev set, so its score is biased
        upwards: quote the median."""
        done = [one for one in self.seeds if not one.failed and self.metric in one.scores]
        return max(done, key=lambda one: one.scores[self.metric], default=None)

    def to_json(self) -> dict[str, Any]:
        """The content of results.json."""
        seeds = [one.to_json() for one in self.seeds]
        summary = {name: _as_json(one) for name, one in self.summary.items()}
        shown = {"shown": dict(self.shown)} if self.shown else {}
        return {"metric": self.metric, **shown, "summary": summary, "failed": self.failed, "seeds": seeds}


def seeds_in(names: Iterable[str]) -> list[str]:
    """The names that are those of seeds' run directories, sorted by seed. names: of everything in a work directory; any other folder has
    none."""
    names = set(names)
    found = [name for name in names if re.fullmatch(SEEDS.format("(0|[1-9][0-9]*)"), name)]
    return [] if names & OF_A_RUN else sorted(found, key=lambda name: (len(name), name))


def is_work_directory(names: Collection[str]) -> bool:
    """Whether a folder with the files and folders `names` is the work directory of a fine-tuning of which a seed has begun."""
    return bool(seeds_in(names)) or (NAME in names and not OF_A_RUN & set(names))


def of_other_seeds(workdir: pathlib.Path, seeds: Collection[int]) -> list[Outcome]:
    """The results of the seeds in a work directory that are not among `seeds`, finished or diverged. They stay in results.json, since
    leaving out a seed would be selection by the result. Raises UserError for a damaged file."""
    listed = Results.read(workdir / NAME).seeds if (workdir / NAME).is_file() else ()
    found = {one.seed: one for one in listed if one.failed}
    each = (workdir / name / RESULT for name in seeds_in(storage.names(workdir)))
    found |= {one.seed: one for one in map(Outcome.read, filter(pathlib.Path.is_file, each))}
    return [found[seed] for seed in sorted(found) if seed not in seeds]


def _spread(values: Sequence[float]) -> dict[str, float]:
    """The numbers of SUMMARY; all are NaN where a value is."""
    if any(map(math.isnan, values)):
        return dict.fromkeys(SUMMARY, math.nan)
    deviation = statistics.stdev(values) if len(values) > 1 and all(map(math.isfinite, values)) else math.nan
    numbers = (statistics.median(values), statistics.fmean(values), deviation, min(values), max(values))
    return dict(zip(SUMMARY, numbers, strict=True))


def _as_json(numbers: Mapping[str, float]) -> dict[str, float | None]:
    """`numbers` as JSON has them: None for those that are not finite."""
    return {name: value if math.isfinite(value) else None for name, value in numbers.items()}


def table(results: Results) -> list[str]:
    """The lines that a terminal shows: the first SHOWN scores of every seed, `metric` before the others, then their summary. The
    accuracy of a head is left out where it is the `accuracy` of every seed."""
    others = [name for name in results.summary if name not in (results.metric, DEGENERATE) and not _is_twice(results, name)]
    names = ([results.metric] * (results.metric in results.summary) + others)[:SHOWN]
    shown = [results.shown.get(name, name) for name in names]
    width = max([10, *(len(name) + 2 for name in shown)])
    lines = ["seed    step" + "".join(f"{name:>{width}}" for name in shown)]
    for one in results.seeds:
        numbers = "".join(f"{one.scores[name]:>{width}.4f}" for name in names if name in one.scores)
        note = f"  failed: {one.failed}" if one.failed else "  one answer for all" if one.scores.get(DEGENERATE) else ""
        lines.append(f"{one.seed:>4}{one.step:>8,}{numbers}{note}")
    if len(results.seeds) - results.failed > 1:
        for key in SUMMARY:
            lines.append(f"{key:<12}" + "".join(f"{results.summary[name][key]:>{width}.4f}" for name in names))
    return lines + [results.left_out] * bool(results.left_out) + [f"one answer for all: {REMEDY}"] * results.degenerate


def _is_twice(results: Results, name: str) -> bool:
    done = [one.scores for one in results.seeds if not one.failed]
    return name.endswith("_accuracy") and all(abs(scores[name] - scores.get("accuracy", math.inf)) < 1e-6 for scores in done)


def quoted(results: Results, workdir: str | pathlib.Path) -> str:
    """The last line of a fine-tuning: where the scores are, and which number to quote. workdir: a path or a URL."""
    where = f"results: {below(workdir, NAME)}"
    if results.metric not in results.summary:
        return f"{where}; no dev set, so no scores" if results.failed < len(results.seeds) else where
    count, metric = len(results.seeds) - results.failed, results.shown.get(results.metric, results.metric)
    return f"{where}; {'1 seed' if count == 1 else f'median of {count} seeds'}: {metric} {results.summary[results.metric]['median']:.4f}"
