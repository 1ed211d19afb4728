"""The results of a fine-tuning: the scores of every seed, and their summary."""

import contextlib
import dataclasses
import fnmatch
import json
import math
import pathlib
import statistics
import tempfile
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Self

from jaxenc import storage
from jaxenc.errors import UserError
from jaxenc.files import read_json, write_bytes
from jaxenc.storage import is_url
from jaxenc.tasks.scores import DEGENERATE

# Of a work directory and of the run directory of one seed.
NAME, RESULT, SEEDS = "results.json", "result.json", "seed_{}"
REPORTS = ("report.html", "report.png", "comparison.html", "comparison.png")  # what `jaxenc report` adds to a work directory
SHOWN = 6  # scores in a row of `table`
AGAIN = "delete it and run the same `jaxenc finetune` again to write it"


@dataclasses.dataclass(frozen=True)
class Outcome:
    """The result of one seed. directory: its run directory. step: the checkpoint that was kept. scores: {metric: number} of the dev set at
    that step, with the mean losses. failed: why the seed has no scores, '' if it has. seconds: of training and evaluation. answered:
    {split: sha256 of its rows} of the answers that its directory holds."""

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
            found = cls(**data)
        except TypeError as error:
            raise UserError(f"is not the result of a seed ({error})", path, AGAIN) from error
        if not isinstance(found.step, int) or not isinstance(found.seed, int) or not isinstance(found.scores, dict):
            raise UserError("is not the result of a seed", path, AGAIN)
        return found

    def write(self, path: pathlib.Path) -> None:
        """Writes the file, complete or not at all."""
        write_bytes(path, (json.dumps(dataclasses.asdict(self), indent=1) + "\n").encode())


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
        if not isinstance(data.get("metric"), str) or not isinstance(seeds, list) or not seeds:
            raise UserError("has no scores of seeds", path, AGAIN)
        return cls(data["metric"], tuple(Outcome._of(one, path) for one in seeds), shown=data.get("shown", {}))

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
    def best(self) -> Outcome | None:
        """The seed with the highest `metric`, the first of equals; None if all failed. It is chosen on the dev set, so its score is biased
        upwards: quote the median."""
        done = [one for one in self.seeds if not one.failed and self.metric in one.scores]
        return max(done, key=lambda one: one.scores[self.metric], default=None)

    def to_json(self) -> dict[str, Any]:
        """The content of results.json."""
        seeds = [dataclasses.asdict(one) for one in self.seeds]
        summary = {name: {key: None if math.isnan(value) else value for key, value in one.items()} for name, one in self.summary.items()}
        shown = {"shown": dict(self.shown)} if self.shown else {}
        return {"metric": self.metric, **shown, "summary": summary, "failed": self.failed, "seeds": seeds}


def kept(folder: str | pathlib.Path, seed: int | None = None) -> tuple[str | pathlib.Path, str]:
    """As `kept_here`; for a URL the URL of the model, by a copy of the results there."""
    if not is_url(folder):
        return kept_here(pathlib.Path(folder), seed)
    there = storage.folder(str(folder))
    with tempfile.TemporaryDirectory() as place:
        copy = pathlib.Path(place)
        for name in there.names():
            if name in (NAME, RESULT):
                there.download(name, copy / name)
            if fnmatch.fnmatchcase(name, SEEDS.format("*")):
                (copy / name / "checkpoints").mkdir(parents=True)
                with contextlib.suppress(FileNotFoundError):
                    there.below(name).download(RESULT, copy / name / RESULT)
        try:
            found, why = kept_here(copy, seed)
        except UserError as error:
            raise error.renamed(place, there.url) from error
        return "/".join((there.url, *found.relative_to(copy).parts)), why


def run_of(folder: str | pathlib.Path) -> str | pathlib.Path:
    """The run directory of `folder`, which is one or one of its checkpoints."""
    if isinstance(folder, str):
        above, _, last = folder.rpartition("/checkpoints/")
        return above if last.isdigit() else folder
    return folder.parent.parent if folder.parent.name == "checkpoints" else folder


def step_of(folder: str | pathlib.Path, step: int) -> str | pathlib.Path:
    """The folder of another step of the run of `folder`."""
    run = run_of(folder)
    return f"{run}/checkpoints/{step}" if isinstance(run, str) else run / "checkpoints" / str(step)


def kept_here(folder: pathlib.Path, seed: int | None = None) -> tuple[pathlib.Path, str]:
    """(the model that `folder` stands for, in a few words why that one).

    For a work directory of `finetune` it is the checkpoint that `train.select` kept of one seed: of `seed` or, if that is None, of the best
    one on the dev set; without a dev set, of the first that finished. For the run directory of a finished seed it is the kept checkpoint.
    Any other folder stands for itself. Raises UserError if there is no such seed and if all seeds failed.
    """
    why = ""
    if (folder / NAME).is_file() or any(folder.glob(f"{SEEDS.format('*')}/checkpoints")):
        if seed is None:
            folder, why = _best(folder)
        elif not (folder / SEEDS.format(seed)).is_dir():
            there = ", ".join(sorted(path.name.removeprefix(SEEDS.format("")) for path in folder.glob(SEEDS.format("*"))))
            raise UserError(f"{folder} has no such seed", f"--seed {seed}", f"use one of {there}")
        else:
            folder = folder / SEEDS.format(seed)
    elif seed is not None:
        raise UserError(f"{folder} is not a folder of several seeds", f"--seed {seed}", "leave it out")
    if (folder / RESULT).is_file():
        outcome = Outcome.read(folder / RESULT)
        return folder / "checkpoints" / str(outcome.step), why
    return folder, why


def _best(folder: pathlib.Path) -> tuple[pathlib.Path, str]:
    if not (folder / NAME).is_file():
        raise UserError("no seed has finished", folder, "run the same `jaxenc finetune` again, or name a seed with --seed")
    found = Results.read(folder / NAME)
    done = [one for one in found.seeds if not one.failed]
    if not done:
        raise UserError("all of its seeds diverged", folder, "lower optim.lr and fine-tune into another folder")
    if (best := found.best) is None:
        return folder / SEEDS.format(done[0].seed), "the first seed; there was no dev set to choose by"
    score = f"{found.shown.get(found.metric, found.metric)} {best.scores[found.metric]:.4f}"
    return folder / SEEDS.format(best.seed), f"the best of {len(done)} on the dev set, {score}" if len(done) > 1 else ""


def of_others(workdir: pathlib.Path, seeds: Collection[int]) -> list[Outcome]:
    """The results in a work directory of seeds that are none of `seeds`: of those that finished, and of those that diverged. They stay in
    results.json, since leaving out a seed would be selection by the result. Raises UserError for a damaged file."""
    listed = Results.read(workdir / NAME).seeds if (workdir / NAME).is_file() else ()
    found = {one.seed: one for one in listed if one.failed}
    found |= {one.seed: one for one in map(Outcome.read, workdir.glob(f"{SEEDS.format('*')}/{RESULT}"))}
    return [found[seed] for seed in sorted(found) if seed not in seeds]


def _spread(values: Sequence[float]) -> dict[str, float]:
    return {
        "median": statistics.median(values),
        "mean": statistics.fmean(values),
        "std": statistics.stdev(values) if len(values) > 1 and all(map(math.isfinite, values)) else math.nan,
        "min": min(values),
        "max": max(values),
    }


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
        for key in ("median", "mean", "std", "min", "max"):
            lines.append(f"{key:<12}" + "".join(f"{results.summary[name][key]:>{width}.4f}" for name in names))
    if results.failed:
        lines.append(f"{results.failed} of {len(results.seeds)} seeds failed and are not in these numbers")
    return lines


def _is_twice(results: Results, name: str) -> bool:
    done = [one.scores for one in results.seeds if not one.failed]
    return name.endswith("_accuracy") and all(abs(scores[name] - scores.get("accuracy", math.inf)) < 1e-6 for scores in done)


def quoted(results: Results, workdir: pathlib.Path) -> str:
    """The last line of a fine-tuning: where the scores are, and which number to quote."""
    where = f"results: {workdir / NAME}"
    if results.metric not in results.summary:
        return f"{where}; no dev set, so no scores" if results.failed < len(results.seeds) else where
    count, metric = len(results.seeds) - results.failed, results.shown.get(results.metric, results.metric)
    return f"{where}; {'1 seed' if count == 1 else f'median of {count} seeds'}: {metric} {results.summary[results.metric]['median']:.4f}"
