"""FineTune: all settings of a fine-tuning run, and the Run that it becomes for one model."""

import dataclasses
import math
from typing import Any

from jaxenc import config
from jaxenc.checkpoint.retention import CheckpointConfig
from jaxenc.config import LARGEST, at_least
from jaxenc.data.sources import DataConfig
from jaxenc.errors import UserError
from jaxenc.families.contract import ModelConfig
from jaxenc.objectives.heads import HeadsConfig
from jaxenc.objectives.probe import ALL_OTHERS, READERS, FrozenConfig, ProbeConfig
from jaxenc.optim.optimizer import OptimConfig
from jaxenc.sharding.mesh import MeshConfig
from jaxenc.tasks.classify import Classify
from jaxenc.tasks.files import FilesConfig
from jaxenc.tasks.task import Task
from jaxenc.training.run import Run
from jaxenc.training.settings import EvalConfig, LogConfig, TrainConfig

SELECT = ("last", "best")
# Shorter rows are padded to this many tokens on a CPU, and to twice as many on an accelerator.
SHORTEST = 32


@dataclasses.dataclass(frozen=True)
class TuneConfig:
    """How long a model is fine-tuned, and on which rows.

    epochs: passes over the training examples.
    steps: number of steps, which replaces `epochs`; 0 = by epochs.
    batch: examples per step, over all devices and processes.
    warmup: share of the steps in which the rate rises from 0; `optim.warmup`, in steps, overrides it.
    length: tokens in a row, special tokens included; longer examples are shortened or cut into windows, depending on the task.
    lengths: the lengths that a batch may be padded to, in ascending order up to `length`; the shortest that holds its longest row is used.
        () = 32, 64, ... `length`; on accelerators it starts at 64, and evaluations use `length` alone, since compiling costs more there.
    seed: of the first run: it sets new heads, the order of the examples and dropout. `--seeds N` also runs the N - 1 seeds after it.
    select: which step is kept: `last`, or `best`, the one with the highest `task.metric` on the dev set, the first of equals. With `best`
        the model is evaluated after every epoch, or every `eval.every` steps.
    dropout: false turns off all dropout of the model.
    microbatches, precision, remat, attention, stop_after_bad: as in a pretraining run; the precision '' is `bfloat16` on accelerators and
        `float32` on CPUs.
    """

    epochs: float = 3.0
    steps: int = 0
    batch: int = 32
    warmup: float = 0.1
    length: int = 128
    lengths: tuple[int, ...] = ()
    seed: int = 0
    select: str = "last"
    dropout: bool = True
    microbatches: int = 1
    precision: str = ""
    remat: str = "none"
    attention: str = "auto"
    stop_after_bad: int = 20

    def __post_init__(self) -> None:
        at_least(0, "train", self, "steps", "warmup")
        at_least(1, "train", self, "batch")
        at_least(3, "train", self, "length")
        if not 0 < self.epochs < math.inf:
            raise UserError(f"train.epochs is {self.epochs}", fix="it takes a positive number")
        if self.warmup > 1:
            raise UserError(f"train.warmup is {self.warmup}", fix="it takes a share of the steps, from 0 to 1 (optim.warmup takes steps)")
        if self.lengths and (self.lengths[-1] != self.length or sorted(set(self.lengths)) != list(self.lengths)):
            what = f"train.lengths is {self.lengths}, and train.length {self.length}"
            raise UserError(what, fix="give rising lengths that end with train.length, or ()")
        if self.select not in SELECT:
            raise UserError(f"train.select is {self.select!r}", fix=f"use {' or '.join(SELECT)}")

    def lengths_on(self, platform: str) -> tuple[int, ...]:
        """The lengths of training rows, in ascending order up to `length`. platform: as `sharding.mesh.platform` returns it."""
        if self.lengths:
            return self.lengths
        shortest = SHORTEST if platform == "cpu" else 2 * SHORTEST
        powers = (shortest << i for i in range(self.length.bit_length()))
        return (*(power for power in powers if power < self.length), self.length)


@dataclasses.dataclass(frozen=True)
class FineTune:
    """A fine-tuning run. `task` takes any class of `jaxenc.tasks.TASKS`.

    published: the name of a task in `tasks/published.py`, whose hyper-parameters for the family of the model replace those of the other
        fields (`tasks.recipe.resolve`); '' = the other fields apply.
    frozen: whether the encoder is frozen, and what reads its features instead of the task's own head.
    optim: `optim.warmup` 0 leaves the warm-up to `train.warmup`.
    checkpoint: with `train.select=best`, every evaluated step is saved instead. eval: `every` 0 evaluates at the end, and with
        `train.select=best` after every epoch.
    """

    task: Task = dataclasses.field(default=Classify(), metadata=config.kinds("task"))
    published: str = ""
    data: FilesConfig = FilesConfig()
    train: TuneConfig = TuneConfig()
    frozen: FrozenConfig = FrozenConfig()
    optim: OptimConfig = OptimConfig(lr=3e-5, warmup=0)
    mesh: MeshConfig = MeshConfig()
    checkpoint: CheckpointConfig = CheckpointConfig(keep=1)
    eval: EvalConfig = EvalConfig(every=0)
    log: LogConfig = LogConfig()

    def __post_init__(self) -> None:
        if self.frozen != FrozenConfig() and not self.frozen.reader:
            raise UserError("frozen.reader is not set, but other fields of frozen are", fix=f"set it to {' or '.join(READERS)}")
        if self.eval.rows:
            raise UserError(f"eval.rows is {self.eval.rows}, and a task is scored on its whole dev set", fix="set data.dev_rows instead")


def objective_of(tune: FineTune, model: ModelConfig) -> HeadsConfig | ProbeConfig:
    """The objective of a run of `tune` on one model. Raises UserError if the model, or the task on a frozen encoder, has no head."""
    if not tune.frozen.reader:
        # A family without a vector of a text has no heads, neither on texts nor on tokens.
        if not model.pools:
            what = f"{model.kind} models have no heads to fine-tune with"
            raise UserError(what, fix="train a reader of their features with --config tasks/frozen, or choose a model of another family")
        return tune.task.objective(model)
    if not tune.task.head:
        what = f"task.kind is {tune.task.kind}, which has no head for a frozen encoder"
        raise UserError(what, fix="leave frozen.reader empty")
    settings = {field.name: getattr(tune.frozen, field.name) for field in dataclasses.fields(tune.frozen)}
    return ProbeConfig(**settings, head=tune.task.head, labels=tune.task.classes)


def as_run(tune: FineTune, objective: HeadsConfig | ProbeConfig, model: ModelConfig, examples: int, platform: str) -> Run:
    """The run of `tune` on one model. examples: rows of the training set. platform: as `sharding.mesh.platform` returns it.

    The number of steps is epochs · examples / batch, rounded, at least 1 (google-research/bert run_classifier.py truncates). Raises
    UserError for more steps than a field of a run holds.
    """
    train, best = tune.train, tune.train.select == "best"
    epoch = max(1, round(examples / train.batch))
    steps = train.steps or max(1, round(min(train.epochs * examples / train.batch, LARGEST + 1)))
    if steps > LARGEST:
        raise UserError(f"train.epochs is {train.epochs:g}, which is more than 2^31 - 1 steps", fix="lower it")
    evaluated = tune.eval.every or epoch * best
    # With `best`, every evaluated step is saved and kept until the best one is known, with those of requests to stop.
    saved = {"every": evaluated, "keep": steps} if best else {}
    numbers = {name: getattr(train, name) for name in ("batch", "seed", "microbatches", "remat", "attention", "stop_after_bad")}
    precision = train.precision or ("float32" if platform == "cpu" else "bfloat16")
    lengths = train.lengths_on(platform)
    kind, several = ("bucketed", lengths) if len(lengths) > 1 else ("text", ())
    freeze = (*tune.optim.freeze, *[ALL_OTHERS] * bool(tune.frozen.reader))
    return Run(
        objective=objective,
        model=model if train.dropout else without_dropout(model),
        data=DataConfig(length=train.length, rows=kind, lengths=several),
        train=TrainConfig(steps=steps, precision=precision, **numbers),
        optim=dataclasses.replace(tune.optim, warmup=tune.optim.warmup or round(train.warmup * steps), freeze=freeze),
        mesh=tune.mesh,
        checkpoint=dataclasses.replace(tune.checkpoint, **saved),
        eval=dataclasses.replace(tune.eval, every=evaluated),
        log=tune.log,
    )


def without_dropout(part: Any) -> Any:
    """A model's config with every dropout rate set to 0, in nested configs too."""
    changed: dict[str, Any] = {}
    for field in dataclasses.fields(part):
        value = getattr(part, field.name)
        if dataclasses.is_dataclass(value):
            changed[field.name] = without_dropout(value)
        elif field.name.endswith("dropout"):
            changed[field.name] = 0.0
    return dataclasses.replace(part, **changed)
