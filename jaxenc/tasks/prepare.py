"""Opens a task and the model that it starts from, and prepares the run of each seed."""

import contextlib
import dataclasses
import functools
import json
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jaxenc.checkpoint import restore
from jaxenc.checkpoint.download import downloaded_by_all
from jaxenc.checkpoint.verify import CHECKSUMS
from jaxenc.config import fingerprint
from jaxenc.data import tokenizers
from jaxenc.data.pipeline import Batches
from jaxenc.data.tokenizers import Tokenizer
from jaxenc.errors import UserError
from jaxenc.families import MODELS, Models
from jaxenc.files import sha256, user_errors
from jaxenc.heads import BUILT_IN, Head
from jaxenc.sharding import mesh as meshes
from jaxenc.storage import is_url
from jaxenc.tasks import published, recipe, rows
from jaxenc.tasks.framing import CHARACTERS, Framing, as_tuned
from jaxenc.tasks.kept import step_of
from jaxenc.tasks.rows import FeatureRows
from jaxenc.tasks.task import Example, Features, Task
from jaxenc.tasks.tuning import FineTune, as_run, objective_of
from jaxenc.training import attention, record
from jaxenc.training.job import Job, Programs
from jaxenc.training.phases import Phase
from jaxenc.training.prepare import CONFIG, MANIFEST, TOKENIZER
from jaxenc.training.run import Run, of_checkpoint, to_json

SPLITS = ("train", "dev", "test")
# The share of unknown tokens above which the user is told.
UNKNOWN = 0.05
UNKNOWN_WHY = "are they in another language or letter case, or without blanks between words?"
# The entry of a checkpoint's manifest.json for the model that the run started from: {"path": of its checkpoint, "checksums": sha256}.
START = "start"


@dataclasses.dataclass(frozen=True, eq=False)
class Split:
    """The examples of a split and the rows that the model reads of them."""

    examples: Sequence[Example]
    features: Features

    @functools.cached_property
    def fingerprint(self) -> str:
        """The fingerprint of the rows, computed once: every seed asks for it."""
        return FeatureRows(self.features).fingerprint


@dataclasses.dataclass(frozen=True, eq=False)
class Tuning:
    """A task on one model, ready to run.

    tune: the settings, with the task fitted to its training examples. start: the checkpoint that the parameters come from, on this machine.
    origin: its path, or its URL. splits: those that have files. heads, models: those that the run may name. programs: shared by the runs
    of all seeds.
    """

    tune: FineTune
    run: Run
    start: pathlib.Path
    origin: str
    tokenizer: Tokenizer
    splits: Mapping[str, Split]
    heads: Mapping[str, Head]
    models: Models
    programs: Programs = dataclasses.field(default_factory=Programs)

    @property
    def task(self) -> Task:
        """The task."""
        return self.tune.task

    @property
    def left(self) -> bool:
        """Whether rows are padded on the left."""
        return is_left(self.task, self.run)

    @property
    def numbers(self) -> str:
        """A line with the hyper-parameters of a run."""
        tune, run = self.tune, self.run
        per_epoch = max(len(self.splits["train"].features), 1)
        epochs = f"{tune.train.steps * tune.train.batch / per_epoch if tune.train.steps else tune.train.epochs:.3g}"
        given = {"optim.lr": tune.optim.lr, **{f"train.{name}": getattr(tune.train, name) for name in ("batch", "epochs", "steps")}}
        source = published.source(run.model, given)
        most = ", all that the model takes" if tune.train.length == run.model.positions else ""
        return (
            f"lr {tune.optim.lr:g}, {epochs} epoch{'s' * (epochs != '1')}, batches of {tune.train.batch}"
            f"{f' (published: {source})' if source else ''}, "
            f"rows of up to {tune.train.length} tokens{most}: {run.train.steps:,} steps"
        )

    @property
    def notes(self) -> list[str]:
        """A line for each split, and what else a user should know about its rows."""
        lines = []
        for name, split in self.splits.items():
            features = split.features
            windows = f" in {len(features):,} rows" if len(features) != len(split.examples) else ""
            cut = f", {features.shortened:,} of them shortened to fit rows of {self.tune.train.length} tokens" if features.shortened else ""
            lines.append(f"{name}: {len(split.examples):,} examples{windows}{cut}")
            lines += [f"{name}: {note}" for note in self.task.notes(split.examples, features)]
            if (share := self._unknown(features)) > UNKNOWN:
                lines.append(f"{name}: the tokenizer does not know {share:.0%} of the tokens: {UNKNOWN_WHY}")
        return lines

    def _unknown(self, features: Features) -> float:
        """The share of a split's tokens that the model reads as the unknown one. A model of characters reads every word."""
        real = features.rows["segments"] > 0
        unknown = (features.rows["tokens"] == self.tokenizer.vocabulary.unk) & real
        return 0.0 if CHARACTERS in features.rows else float(unknown.sum() / max(real.sum(), 1))

    def job(self, seed: int, directory: pathlib.Path, evaluated: str = "dev") -> Job:
        """The run of one seed, in its own directory. evaluated: the split that serves as its held-out rows."""
        run = dataclasses.replace(self.run, train=dataclasses.replace(self.run.train, seed=seed))
        mesh = meshes.make(run.mesh)
        platform = meshes.platform(mesh.devices.flat[0])
        chosen = attention.choose(run, platform, directory)
        files = {CONFIG: to_json(run), attention.RECORD: chosen.to_json(), **self._files()}

        def batches(split: str, phase: Phase, size: int) -> Batches:
            features = self.splits["train" if split == "train" else evaluated].features
            shapes, lengths = job.objective(phase).fields, run.data.row_lengths
            lengths = lengths if split == "train" or platform == "cpu" else lengths[-1:]
            return rows.batches(features, size, seed, split != "train", lengths, shapes, self.left)

        judge = self._judge if evaluated == "dev" else None
        evaluates = evaluated in self.splits
        vocabulary = self.tokenizer.vocabulary
        job = Job(
            run,
            vocabulary,
            mesh,
            batches,
            evaluates,
            directory,
            files,
            self.heads,
            self.models,
            chosen,
            judge=judge,
            programs=self.programs,
        )
        return job  # `batches` reads it

    def _judge(self, predictions: Mapping[str, np.ndarray]) -> Mapping[str, float]:
        dev = self.splits["dev"]
        found = self.task.judge(dev.examples, dev.features, predictions)
        # Types of entities and names of files, which are the user's, are parts of the names of scores.
        return dict(zip(record.as_names(found), found.values(), strict=True))

    @functools.cached_property
    def facts(self) -> dict[str, Any]:
        """The content of manifest.json: what identifies the training and dev examples, the tokenizer and the model at the start."""
        parts = {name: split.fingerprint for name, split in self.splits.items() if name != "test"}
        listed = self.start / CHECKSUMS
        start = {"path": self.origin, "checksums": sha256(listed) if listed.is_file() else ""}
        return {"fingerprint": fingerprint(parts), "tokenizer": dataclasses.asdict(self.tokenizer.vocabulary), START: start}

    def _files(self) -> dict[str, bytes]:
        """What every checkpoint records about the task and its data. The files of the tokenizer are copied, unless it was given a frame."""
        folder = self.start / TOKENIZER
        with user_errors(folder, "convert the model again"):
            copied = {file.name: file.read_bytes() for file in sorted(folder.iterdir()) if file.is_file()}
        files = self.tokenizer.files if self.tokenizer.reframed else copied
        tokenizer = {f"{TOKENIZER}/{name}": content for name, content in files.items()}
        return {MANIFEST: json.dumps(self.facts, indent=1).encode(), recipe.RECORD: recipe.to_json(self.tune), **tokenizer}


def open_task(tune: FineTune, init_from: str, heads: Mapping[str, Head] = BUILT_IN, models: Models = MODELS) -> Tuning:
    """Reads the model's config, the examples and their rows.

    init_from: a run directory or one of its checkpoints, or its URL. heads, models: those that it and the task may name, as in
    `inference.load.load`. Every process calls it; it writes nothing. Raises UserError for a model without a tokenizer or without the task's
    heads, for files that cannot be read and for examples that do not fit.
    """
    start, origin = _start(init_from, tune.checkpoint.verify)
    base = of_checkpoint(start, models)
    tokenizer = _tokenizer(start).framed_as(base.model.row_frame)
    named = [split for split in SPLITS if tune.data.names(split)]
    if "train" not in named:
        raise UserError("data.train is not set", fix="name the file of the training examples with --config.data.train=FILE")
    if tune.train.select == "best" and "dev" not in named:
        fix = "name a dev set with --config.data.dev=FILE, or set --config.train.select=last"
        raise UserError("train.select is best, and data.dev is not set", fix=fix)
    train = tune.task.examples(tune.data, "train")
    fitted = tune.task.fitted(train)
    # By the fitted task: the training examples tell whether -1 is a class or stands for no label.
    examples = {split: train if split == "train" else fitted.examples(tune.data, split) for split in named}
    tune = dataclasses.replace(tune, task=_in_saved_order(fitted, base))
    objective = objective_of(tune, base.model)
    framing = framing_of(tune, tokenizer, base)
    splits = {split: Split(found, tune.task.features(found, framing)) for split, found in examples.items()}
    platform = meshes.platform(meshes.make(tune.mesh).devices.flat[0])
    model = base.with_vocabulary(tokenizer.vocabulary).model
    run = as_run(tune, objective, model, len(splits["train"].features), platform)
    return Tuning(tune, run, start, origin, tokenizer, splits, heads, models)


def _start(init_from: str, check: bool) -> tuple[pathlib.Path, str]:
    """(the checkpoint that `init_from` names, on this machine; its path or its URL). With a URL all processes take the same step."""
    if is_url(init_from):
        start = downloaded_by_all(init_from, check, "--init-from")
        return start, str(step_of(init_from, int(start.name)))
    start = restore.find(init_from, check, "--init-from")
    return start, str(start)


def open_saved(tune: FineTune, run: Run, step_dir: pathlib.Path, heads: Mapping[str, Head] = BUILT_IN, models: Models = MODELS) -> Tuning:
    """A fine-tuned checkpoint with the examples of its dev set only, to evaluate it. run: the checkpoint's, on the devices of this machine.
    Raises UserError as `open_task`."""
    tokenizer = as_tuned(_tokenizer(step_dir), run.model, step_dir)
    examples = tune.task.examples(tune.data, "dev")
    splits = {"dev": Split(examples, tune.task.features(examples, framing_of(tune, tokenizer, run)))}
    return Tuning(tune, run, step_dir, str(step_dir), tokenizer, splits, heads, models)


def _tokenizer(step_dir: pathlib.Path) -> Tokenizer:
    if not (step_dir / TOKENIZER).is_dir():
        raise UserError("it has no tokenizer, which the examples need", step_dir, "convert the model with one")
    return tokenizers.load(step_dir / TOKENIZER)


def framing_of(tune: FineTune, tokenizer: Tokenizer, base: Run) -> Framing:
    """How the texts of a task become rows of a model."""
    return Framing(tokenizer, base.model, tune.train.length, is_left(tune.task, base), tune.task.truncation or Framing.truncation)


def _in_saved_order(task: Task, base: Run) -> Task:
    """The task with its classes in the order of the model's head, if both have the same names: the head then starts from the model's.
    Otherwise it is initialized anew, which the run reports (`training.begin.fresh_heads`)."""
    with contextlib.suppress(UserError):
        return task.ordered(base.objective.classes) if base.objective.classes else task
    return task


def is_left(task: Task, run: Run) -> bool:
    """Whether the rows of a task are padded on the left for the model of a run."""
    return task.pads_left and run.model.frame.pads_left
