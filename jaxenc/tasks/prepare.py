"""Opens a task and the model that it starts from, and prepares the run of each seed."""

import dataclasses
import json
import pathlib
from collections.abc import Mapping, Sequence

import numpy as np

from jaxenc import config
from jaxenc.checkpoint import migrate, restore
from jaxenc.config import fingerprint
from jaxenc.data import tokenizers
from jaxenc.data.pipeline import Batches
from jaxenc.data.tokenizers import Tokenizer
from jaxenc.errors import UserError
from jaxenc.families import MODELS
from jaxenc.files import user_errors
from jaxenc.heads import BUILT_IN
from jaxenc.sharding import mesh as meshes
from jaxenc.tasks import rows
from jaxenc.tasks.framing import Framing
from jaxenc.tasks.rows import FeatureRows
from jaxenc.tasks.task import Example, Features, Task
from jaxenc.tasks.tuning import FineTune, as_run, objective_of
from jaxenc.training import attention
from jaxenc.training.job import Job, Programs
from jaxenc.training.phases import Phase
from jaxenc.training.prepare import CONFIG, MANIFEST, TOKENIZER
from jaxenc.training.run import Run, of_checkpoint, to_json

RECORD = "task.json"
SPLITS = ("train", "dev", "test")


@dataclasses.dataclass(frozen=True, eq=False)
class Split:
    """The examples of a split and the rows that the model reads of them."""

    examples: Sequence[Example]
    features: Features


@dataclasses.dataclass(frozen=True, eq=False)
class Tuning:
    """A task on one model, ready to run.

    tune: the settings, with the task as its training examples fit it. start: the checkpoint that parameters come from. splits: those that
    have files. programs: shared by the runs of all seeds.
    """

    tune: FineTune
    run: Run
    start: pathlib.Path
    tokenizer: Tokenizer
    splits: Mapping[str, Split]
    programs: Programs

    @property
    def task(self) -> Task:
        """The task."""
        return self.tune.task

    @property
    def left(self) -> bool:
        """Whether rows are padded on the left."""
        return is_left(self.task, self.run)

    def job(self, seed: int, directory: pathlib.Path, evaluated: str = "dev") -> Job:
        """The run of one seed, in its own directory. evaluated: the split that is its held-out rows."""
        run = dataclasses.replace(self.run, train=dataclasses.replace(self.run.train, seed=seed))
        mesh = meshes.make(run.mesh)
        chosen = attention.choose(run, meshes.platform(mesh.devices.flat[0]), directory)
        files = {CONFIG: to_json(run), attention.RECORD: chosen.to_json(), **self._files()}

        def batches(split: str, phase: Phase, size: int) -> Batches:
            features = self.splits["train" if split == "train" else evaluated].features
            shapes = job.objective(phase).fields
            return rows.batches(features, size, seed, split != "train", run.data.row_lengths, shapes, self.left)

        judge = self._judge if evaluated == "dev" else None
        evaluates = evaluated in self.splits
        vocabulary = self.tokenizer.vocabulary
        job = Job(
            run, vocabulary, mesh, batches, evaluates, directory, files, BUILT_IN, MODELS, chosen, judge=judge, programs=self.programs
        )
        return job

    def _judge(self, predictions: Mapping[str, np.ndarray]) -> Mapping[str, float]:
        dev = self.splits["dev"]
        return self.task.score(self.task.answers(dev.examples, dev.features, predictions), dev.examples)

    def _files(self) -> dict[str, bytes]:
        """What every checkpoint holds of the task and of its data."""
        parts = {name: FeatureRows(split.features).fingerprint for name, split in self.splits.items() if name != "test"}
        facts = {"fingerprint": fingerprint(parts), "tokenizer": dataclasses.asdict(self.tokenizer.vocabulary)}
        record = {"format": migrate.FORMAT, **config.to_dict(self.tune)}
        folder = self.start / TOKENIZER
        with user_errors(folder, "convert the model again"):
            tokenizer = {f"{TOKENIZER}/{file.name}": file.read_bytes() for file in sorted(folder.iterdir()) if file.is_file()}
        return {MANIFEST: json.dumps(facts, indent=1).encode(), RECORD: json.dumps(record, indent=1).encode(), **tokenizer}


def open_task(tune: FineTune, init_from: str) -> Tuning:
    """Reads the model's config, the examples and their rows.

    init_from: a run directory or one of its checkpoints. Raises UserError for a model without a tokenizer or without the task's heads, for
    files that cannot be read and for examples that do not fit; nothing is written.
    """
    start = restore.find(pathlib.Path(init_from), tune.checkpoint.verify, "--init-from")
    base = of_checkpoint(start)
    if not (start / TOKENIZER).is_dir():
        raise UserError("it has no tokenizer, which the examples need", start, "convert the model with one")
    tokenizer = tokenizers.load(start / TOKENIZER)
    examples = {split: _limited(tune, split) for split in SPLITS if tune.data.names(split)}
    if not examples.get("train"):
        raise UserError("data.train is not set", fix="name the file of the training examples with --config.data.train=FILE")
    tune = dataclasses.replace(tune, task=tune.task.fitted(examples["train"]))
    objective = objective_of(tune, base.model)
    framing = framing_of(tune, tokenizer, base)
    splits = {split: Split(found, tune.task.features(found, framing)) for split, found in examples.items()}
    platform = meshes.platform(meshes.make(tune.mesh).devices.flat[0])
    model = base.with_vocabulary(tokenizer.vocabulary).model
    return Tuning(tune, as_run(tune, objective, model, len(splits["train"].features), platform), start, tokenizer, splits, Programs())


def framing_of(tune: FineTune, tokenizer: Tokenizer, base: Run) -> Framing:
    """How the texts of a task become rows of a model."""
    return Framing(tokenizer, base.model, tune.train.length, is_left(tune.task, base), getattr(tune.task, "truncation", "longest"))


def is_left(task: Task, run: Run) -> bool:
    """Whether the rows of a task are padded on the left for the model of a run."""
    return task.pads_left and run.model.pads_left


def _limited(tune: FineTune, split: str) -> list[Example]:
    found, most = tune.task.examples(tune.data, split), tune.data.limit(split)
    return found[:most] if most else found
