"""What the checks read of a run: its rows of numbers, its settings and its text."""

import dataclasses
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any, Self

from jaxenc import config
from jaxenc.checkpoint import migrate
from jaxenc.data.sources import DataConfig
from jaxenc.errors import UserError
from jaxenc.files import read_json
from jaxenc.optim.optimizer import OptimConfig
from jaxenc.reports.normal.series import Series
from jaxenc.reports.normal.text import Text
from jaxenc.training import phases
from jaxenc.training.phases import Phase, Phases
from jaxenc.training.settings import EvalConfig, TrainConfig

# {objective: the losses whose mean is in nats a predicted token, the count baselines of those that stand beside such a token}.
LOSSES: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "mlm": (("mlm_loss",), ("left_right",)),
    "mlm_nsp": (("mlm_loss",), ("left_right",)),
    "mlm_sop": (("mlm_loss",), ("left_right",)),
    "rtd": (("mlm_loss",), ("left_right",)),
    "replaced_mlm": (("mlm_loss",), ("left_right",)),
    "distillation": (("mlm_loss",), ("left_right",)),
    "plm": (("plm_loss",), ("left_right",)),
    "causal": (("causal_loss",), ("left",)),
    "bilm": (("forward_loss", "backward_loss"), ("left", "right")),
}


@dataclasses.dataclass(frozen=True)
class History:
    """rows: of metrics.jsonl. objective, model: their fields in config.json, with `kind`; the model may be of a kind that only the user's
    own code knows. plan: the phases."""

    rows: Sequence[Mapping[str, Any]]
    objective: Mapping[str, Any]
    model: Mapping[str, Any]
    plan: tuple[Phase, ...]
    data: DataConfig
    train: TrainConfig
    optim: OptimConfig
    eval: EvalConfig
    text: Text

    @classmethod
    def of(cls, rows: Sequence[Mapping[str, Any]], path: pathlib.Path) -> Self:
        """rows: of the run whose config.json is at `path`; its text is not read yet. Raises UserError for a file that is no config.json."""
        fields = migrate.fields(read_json(path, "name a run directory"), f"{path}")
        part = lambda cls, name: config.from_dict(cls, fields.get(name, {}), f"{path}: config.{name}")
        data, train, optim = part(DataConfig, "data"), part(TrainConfig, "train"), part(OptimConfig, "optim")
        single = Phase(0, train.steps, data.length, train.batch, 0, optim.lr, optim.warmup, 0, train.steps)
        plan = phases.resolve(part(Phases, "phases"), single)
        own = tuple(fields.get(name, {}) for name in ("objective", "model"))
        for name, content in zip(("objective", "model"), own, strict=True):
            if not isinstance(content, Mapping):
                raise UserError(f"config.{name} is {content!r}, and no mapping of fields", path, "restore the file")
        return cls(rows, *own, plan, data, train, optim, part(EvalConfig, "eval"), Text(missing="not read"))

    @property
    def kind(self) -> str:
        """Of the objective."""
        return str(self.objective.get("kind", ""))

    @property
    def names(self) -> tuple[str, ...]:
        """The losses in nats a predicted token; () for an objective without any, as of a fine-tuning."""
        return LOSSES.get(self.kind, ((), ()))[0]

    @property
    def named(self) -> str:
        """Those losses, as messages name them."""
        return " and ".join(self.names)

    @property
    def step(self) -> int:
        """The last step that has a row, 0 without rows."""
        return max((row["step"] for row in self.rows), default=0)

    @property
    def phase(self) -> Phase:
        """The phase of the last step."""
        return phases.saved_by(self.plan, self.step)

    @property
    def steps(self) -> int:
        """Of the whole run."""
        return self.plan[-1].end

    @property
    def warm(self) -> int:
        """The run's step at which the first warm-up is over."""
        return self.plan[0].warmup

    def tokens(self, step: int) -> int:
        """Places of the rows that the first `step` steps read, padding counted."""
        return sum(max(0, min(step, phase.end) - phase.start) * phase.batch * phase.length for phase in self.plan)

    def train_of(self, *names: str) -> Series:
        """Numbers of the training rows."""
        return Series.of(self.rows, "train", *names)

    def held_out_of(self, *names: str) -> Series:
        """Numbers of the held-out rows."""
        return Series.of(self.rows, "held_out", *names)

    @property
    def loss(self) -> Series:
        """The token loss: held out where there are evaluations, else of the training rows."""
        held_out = self.held_out_of(*self.names) if self.names else Series.of((), "")
        return held_out if len(held_out) else self.train_of(*self.names) if self.names else held_out


def position(loss: float, counts: Mapping[str, float], kind: str) -> float:
    """Where a token loss lies between two count baselines of its own text: 0 at the unigram, 1 at the neighbours of a token, more below.

    It makes runs on other text and other vocabularies comparable, which nats are not: both baselines move with them. counts: with `unigram`
    and the neighbours of `LOSSES`. A healthy run ends between 1.3 and 2.2 on the text that the references were measured on.
    """
    low = neighbours(counts, kind)
    return (counts["unigram"] - loss) / max(counts["unigram"] - low, 1e-6)


def neighbours(counts: Mapping[str, float], kind: str) -> float:
    """The cross-entropy of the table of neighbours that an objective is compared with, in nats."""
    names = LOSSES[kind][1]
    return sum(counts[name] for name in names) / len(names)
