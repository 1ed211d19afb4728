"""The trainer's own settings."""

import dataclasses

from jaxenc.config import at_least
from jaxenc.errors import UserError
from jaxenc.layers import attend


@dataclasses.dataclass(frozen=True)
class TrainConfig:
    """The trainer's own settings.

    steps: steps of a run without `phases`; on the command line, of all phases together (`training.override`).
    batch: rows of a step, on all devices and processes together; `phases` may have their own.
    seed: of the initial parameters, the order of rows, corruption and dropout.
    microbatches: parts of a batch that are computed one after another to save memory. The result is that of the whole batch.
    precision: `float32` or `bfloat16` matrix products; parameters, moments and losses are float32 in both.
    remat: what the backward pass computes again to save memory: `none`, `block` or `attention`.
    attention: the implementation of attention: `xla`, `cudnn`, `pallas` (our own kernels for GPUs) or `auto`. `auto` is the fastest that
        can run (`layers.attend.resolve`); a resumed run keeps what it used.
    scan: compile one layer and loop over it instead of compiling every layer.
    dupe_factor: how many corruptions a row has, used one an epoch in turn; 0 = a new one at every step. RoBERTa has 0; n is the "static"
        masking of Liu et al. 2019, section 4.1 (10 by default in google-research/bert:create_pretraining_data.py). It changes no other
        choice: pairs are drawn in every epoch all the same.
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
            raise UserError(
                f"train.batch is {self.batch}, which train.microbatches {self.microbatches} does not divide",
                fix="set train.batch to a multiple of it",
            )
        if self.remat not in ("none", "block", "attention"):
            raise UserError(f"train.remat is {self.remat!r}", fix="use none, block or attention")
        attend.check(self.attention, "train.attention")
        if self.dupe_factor >= 2**31:
            raise UserError(f"train.dupe_factor is {self.dupe_factor}", fix="it is at most 2^31 - 1")
        if not 0 <= self.seed < 2**31:
            raise UserError(f"train.seed is {self.seed}", fix="it takes 0 to 2^31 - 1")


@dataclasses.dataclass(frozen=True)
class EvalConfig:
    """When and how a run is evaluated.

    every: steps between evaluations; 0 = only after the last step.
    batch: held-out rows at a time; it changes no number.
    rows: how many held-out rows an evaluation takes; 0 = all.
    """

    every: int = 5_000
    batch: int = 256
    rows: int = 0

    def __post_init__(self) -> None:
        at_least(1, "eval", self, "batch")
        at_least(0, "eval", self, "every", "rows")


@dataclasses.dataclass(frozen=True)
class LogConfig:
    """What a run writes about itself.

    every: steps between lines of metrics.jsonl and of the terminal.
    examples: write the row ids of every step to examples.log.
    tensorboard: write TensorBoard files where tensorboardX is installed.
    wandb: write to Weights & Biases: `offline` to files in the work directory, `online` to its servers, '' not at all.
    wandb_project: the project there; '' = the name of the folder that the work directory is in.
    """

    every: int = 50
    examples: bool = False
    tensorboard: bool = True
    wandb: str = ""
    wandb_project: str = ""

    def __post_init__(self) -> None:
        at_least(1, "log", self, "every")
        if self.wandb not in ("", "offline", "online"):
            raise UserError(f"log.wandb is {self.wandb!r}", fix="use offline or online")
