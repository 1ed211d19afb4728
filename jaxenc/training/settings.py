"""The trainer's own settings."""

import dataclasses

from jaxenc.config import at_least
from jaxenc.errors import UserError


@dataclasses.dataclass(frozen=True)
class TrainConfig:
    """steps, batch: of a run in one phase; `phases` may have its own. Set by name, they change all phases (`training.override`). batch
    counts rows of all devices and processes.

    seed: of parameters, row order, corruption and dropout. microbatches: parts a batch is computed in, one after another, to save
    memory; the result is that of the whole batch. precision: float32 or bfloat16. remat: none, block or attention. attention: auto,
    xla or cudnn. scan: compile one layer instead of all. dupe_factor: 0 corrupts a row afresh at every step, as RoBERTa does; n corrupts
    it in n ways, one an epoch, over and over ("static" masks of Liu et al. 2019, section 4.1; 10 by default in
    google-research/bert:create_pretraining_data.py). It changes no other choice: pairs are drawn in every epoch all the same.
    stop_after_bad: non-finite steps in a row after which the run stops.
    """

    steps: int = 100_000
    batch: int = 256
    seed: int = 0
    microbatches: int = 1
    precision: str = "bfloat16"
    remat: str = "none"
    attention: str = "auto"
    scan: bool = False
    dupe_factor: int = 0
    stop_after_bad: int = 20

    def __post_init__(self) -> None:
        at_least(1, "train", self, "steps", "batch", "microbatches", "stop_after_bad")
        at_least(0, "train", self, "dupe_factor")
        if self.batch % self.microbatches:
            raise UserError(f"train.batch {self.batch} does not divide into train.microbatches {self.microbatches}")
        if self.remat not in ("none", "block", "attention"):
            raise UserError(f"train.remat is {self.remat!r}: use none, block or attention")
        if self.attention not in ("auto", "xla", "cudnn"):
            raise UserError(f"train.attention is {self.attention!r}: use auto, xla or cudnn")
        if self.dupe_factor >= 2**31:
            raise UserError(f"train.dupe_factor is {self.dupe_factor}: it is at most 2^31 - 1")
        if not 0 <= self.seed < 2**31:
            raise UserError(f"train.seed is {self.seed}: it lies in 0 .. 2^31 - 1")


@dataclasses.dataclass(frozen=True)
class EvalConfig:
    """every: steps between evaluations, 0 = only after the last step. batch: rows at a time; it changes no number.

    rows: how many held-out rows an evaluation takes, 0 = all.
    """

    every: int = 5_000
    batch: int = 256
    rows: int = 0

    def __post_init__(self) -> None:
        at_least(1, "eval", self, "batch")
        at_least(0, "eval", self, "every", "rows")


@dataclasses.dataclass(frozen=True)
class LogConfig:
    """every: steps between lines of metrics.jsonl and of the terminal. examples: write the row ids of every step to examples.log.

    tensorboard: write TensorBoard files where tensorboardX is installed.
    """

    every: int = 50
    examples: bool = False
    tensorboard: bool = True

    def __post_init__(self) -> None:
        at_least(1, "log", self, "every")
