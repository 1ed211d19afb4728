"""What the checks of a run go by: its rows of numbers, its settings and its text."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from jaxenc.reports.history import Settings
from jaxenc.reports.normal.series import Series
from jaxenc.reports.normal.text import Text
from jaxenc.training import phases
from jaxenc.training.phases import Phase

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
class Evidence:
    """What is known of the run that is checked. rows: of its metrics.jsonl."""

    rows: Sequence[Mapping[str, Any]]
    settings: Settings
    text: Text

    @property
    def objective(self) -> Mapping[str, Any]:
        """Its fields, with `kind`; {} where config.json has none."""
        return self.settings.fields.get("objective", {})

    @property
    def model(self) -> Mapping[str, Any]:
        """Its fields, with `kind`; {} where config.json has none."""
        return self.settings.fields.get("model", {})

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
        return phases.saved_by(self.settings.plan, self.step)

    @property
    def warm(self) -> int:
        """The run's step at which the first warm-up is over."""
        return self.settings.plan[0].warmup

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
    and the neighbours of `LOSSES`. A healthy run ends between 1.3 and 2.1 on the text that the references were measured on.
    """
    low = neighbours(counts, kind)
    return (counts["unigram"] - loss) / max(counts["unigram"] - low, 1e-6)


def neighbours(counts: Mapping[str, float], kind: str) -> float:
    """The cross-entropy of the table of neighbours that an objective is compared with, in nats."""
    names = LOSSES[kind][1]
    return sum(counts[name] for name in names) / len(names)
