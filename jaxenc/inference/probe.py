"""A table of linear probes: how well each layer of a model predicts the labels of a task. The implementation of `jaxenc probe`."""

import dataclasses
import json
import pathlib
import statistics
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from jaxenc.data.folders import new_folder
from jaxenc.errors import UserError
from jaxenc.families import MODELS, Models
from jaxenc.files import user_errors, write_bytes
from jaxenc.heads import BUILT_IN, Head
from jaxenc.inference import sentences as texts
from jaxenc.inference import word_features
from jaxenc.inference.load import load
from jaxenc.inference.model import Model
from jaxenc.progress import Bars
from jaxenc.tasks import TASKS
from jaxenc.tasks import probe as probes
from jaxenc.tasks.classify import Classified
from jaxenc.tasks.files import FilesConfig
from jaxenc.tasks.probe import MIX, ProbeSettings, Units
from jaxenc.tasks.tagged import Tagged
from jaxenc.tasks.task import Example, Task
from jaxenc.tasks.tuning import FineTune
from jaxenc.tree import Tree

NAME = "probe.json"
ADVICE = "free some space or choose another --workdir"


@dataclasses.dataclass(frozen=True)
class Probed:
    """The scores of one probe. name: `0` for the input of the first layer, `1`, ... or `mix`. scores: one per seed."""

    name: str
    scores: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Over the seeds."""
        return statistics.fmean(self.scores)

    @property
    def deviation(self) -> float:
        """The standard deviation of a sample of seeds (n - 1); 0 for one seed."""
        return statistics.stdev(self.scores) if len(self.scores) > 1 else 0.0


@dataclasses.dataclass(frozen=True)
class Table:
    """metric: of the dev set. units: {split: number of words or texts}. steps, batch: of the training with each seed. rows: one per layer,
    then the mix. baselines: {name: score}.
    shares: of each layer in the mix, one tuple per seed, each with the sum 1."""

    metric: str
    units: dict[str, int]
    steps: int
    batch: int
    rows: tuple[Probed, ...]
    baselines: dict[str, float]
    shares: tuple[tuple[float, ...], ...]

    def to_json(self) -> dict[str, Any]:
        """The content of probe.json, apart from the settings."""
        rows = [{"layer": row.name, "mean": row.mean, "std": row.deviation, "scores": list(row.scores)} for row in self.rows]
        shares = [list(of_seed) for of_seed in self.shares]
        return {
            "metric": self.metric,
            "units": self.units,
            "steps": self.steps,
            "batch": self.batch,
            "rows": rows,
            "baselines": self.baselines,
            "mix": shares,
        }


@dataclasses.dataclass(frozen=True)
class _Split:
    """Examples with the words of each, and a label for each unit, '' if it is unknown."""

    examples: Sequence[Example]
    words: list[list[str]]
    labels: list[str]


def probe(
    model: str | pathlib.Path,
    tune: FineTune,
    workdir: str | pathlib.Path,
    settings: ProbeSettings = ProbeSettings(),
    heads: Mapping[str, Head] = BUILT_IN,
    models: Models = MODELS,
    tasks: Mapping[str, type[Task]] = TASKS,
) -> Table:
    """Trains a linear probe for every layer of a model and for a learned mix of all, on the task and the files of `tune`, and scores them
    on its dev set.

    The model runs over the data once. A unit is a word of a `tag` task, or a text of a `classify` task, whose vector is the mean over its
    words, without special tokens. Baselines: the most frequent label, and for words the most frequent label of each word. workdir: a new
    folder for probe.json, or its URL. During training that folder, with a URL the cache folder, also holds the features, 4 bytes per
    number. heads, models, tasks: those that the model may name, as in `inference.load.load`. Raises UserError, before anything is computed,
    for another kind of task, for files that cannot be read, for a label that only the dev set has, and for a folder that is not new.
    """
    with new_folder(workdir, "--workdir") as make:
        if missing := [split for split in ("train", "dev") if not tune.data.names(split)]:
            raise UserError(f"data.{missing[0]} is not set", fix=f"name its file with --config.data.{missing[0]}=FILE")
        print(f"probe: opening {model}, and reading the examples", file=sys.stderr, flush=True)
        return _probe(load(model, heads=heads, models=models, tasks=tasks), str(model), tune, make, settings)


def _probe(loaded: Model, origin: str, tune: FineTune, make: Callable[[], pathlib.Path], settings: ProbeSettings) -> Table:
    """As `probe`. origin: the path of the model. make: makes the folder to write to and returns it."""
    layers = settings.chosen(loaded.shape[0])
    examples = _examples(tune.task, tune.data, "train")
    task = tune.task.fitted(examples)
    train, dev = (_split(loaded, task, some) for some in (examples, _examples(task, tune.data, "dev")))
    pooled = not isinstance(examples[0], Tagged)
    number = {name: i for i, name in enumerate(task.classes)}
    workdir = make()
    with user_errors(workdir, ADVICE):
        with tempfile.TemporaryDirectory(prefix=".features-", dir=workdir) as folder:
            files = (pathlib.Path(folder) / f"{split}.npy" for split in ("train", "dev"))
            arrays = [word_features.write(loaded, one.words, file, pooled) for one, file in zip((train, dev), files, strict=True)]
            units = Units(arrays[0], np.array([number[label] for label in train.labels], np.int32))
            scale = probes.scale_of(units.features)
            steps, batch = settings.training(len(units.labels))
            passes = steps * batch / len(units.labels)
            seeds = f"{settings.seeds} seed{'s' * (settings.seeds > 1)}"
            print(f"probe: training: {seeds}, {steps:,} steps of {batch} units ({passes:,.0f} passes)", file=sys.stderr)
            with Bars().shown("probe: training", settings.seeds, "seeds") as bar:
                counting = bar.counting(range(settings.seed, settings.seed + settings.seeds))
                trained = [probes.fit(units, scale, len(number), settings, seed) for seed in counting]
            answers = [probes.predict(layers, params, arrays[1], scale) for params in trained]
        table = _table(task, layers, (steps, batch), trained, [[_score(task, dev, row) for row in one] for one in answers], train, dev)
        record = {"model": origin, "task": dataclasses.asdict(task), **dataclasses.asdict(settings), **table.to_json()}
        write_bytes(workdir / NAME, (json.dumps(record, indent=1) + "\n").encode())
    return table


def lines(table: Table) -> list[str]:
    """The lines that a terminal shows."""
    shares = np.mean(table.shares, axis=0)
    out = [f"{'layer':<10}{table.metric:>10}{'std':>9}{'in the mix':>13}"]
    for row in table.rows:
        share = "" if row.name == MIX else f"{shares[int(row.name)]:13.3f}"
        out.append(f"{row.name:<10}{row.mean:10.4f}{row.deviation:9.4f}{share}")
    return [*out, *(f"{name:<10}{score:10.4f}" for name, score in table.baselines.items())]


def _examples(task: Task, files: FilesConfig, split: str) -> list[Example]:
    """The labelled examples of a split. Raises UserError for a task that probes do not take."""
    examples = task.examples(files, split)
    one = examples[0] if examples else None
    if not (isinstance(one, Tagged) or (isinstance(one, Classified) and len(one.texts) == 1)):
        raise UserError(f"task.kind is {task.kind}", fix="probes take task.kind=tag, or task.kind=classify with one text")
    return examples


def _split(model: Model, task: Task, examples: Sequence[Example]) -> _Split:
    if isinstance(examples[0], Tagged):
        labels = [tag for one in examples for tag in one.tags or ("",) * len(one.words)]
        return _Split(examples, [list(one.words) for one in examples], labels)
    cut = [texts.cut(model, one.texts[0], "splitter" if model.tokenizer else "blanks") for one in examples]
    return _Split(examples, cut, [one.label for one in examples])


def _score(task: Task, split: _Split, classes: np.ndarray) -> float:
    """The task's main metric for the predicted classes of all units, i32 [units]."""
    return _score_names(task, split, [task.classes[i] for i in classes])


def _score_names(task: Task, split: _Split, names: Sequence[str]) -> float:
    if not isinstance(split.examples[0], Tagged):
        return task.score(list(names), split.examples)[task.metric]
    ends = np.cumsum([len(one.words) for one in split.examples])
    answers = [list(names[end - len(one.words) : end]) for one, end in zip(split.examples, ends, strict=True)]
    return task.score(answers, split.examples)[task.metric]


def _table(
    task: Task,
    layers: tuple[int, ...],
    training: tuple[int, int],
    trained: Sequence[Tree],
    scores: Sequence[Sequence[float]],
    train: _Split,
    dev: _Split,
) -> Table:
    """scores: for each seed, one per probe."""
    names = (*map(str, layers), MIX)
    rows = tuple(Probed(name, by_seed) for name, by_seed in zip(names, zip(*scores, strict=True), strict=True))
    likely = probes.majority(train.labels)
    baselines = {"majority": _score_names(task, dev, [likely] * len(dev.labels))}
    if isinstance(train.examples[0], Tagged):
        flat = [[word for words in split.words for word in words] for split in (train, dev)]
        known = probes.by_word(flat[0], train.labels)
        baselines["by word"] = _score_names(task, dev, [known.get(word, likely) for word in flat[1]])
    shares = tuple(tuple(jax.nn.softmax(params["mix"]["weights"]).tolist()) for params in trained)
    return Table(task.metric, {"train": len(train.labels), "dev": len(dev.labels)}, *training, rows, baselines, shares)
