"""Several row lengths, batches and schedules in one run: 128 tokens, then 512 (BERT, Devlin et al. 2018, appendix A.2)."""

import dataclasses

from jaxenc.config import at_least
from jaxenc.errors import UserError

# What a phase may have of its own, and the field of the run whose single value it then overrules. Set by name (`training.override`), the
# single value sets every phase.
OVERRULES = {
    "length": "data.length",
    "batch": "train.batch",
    "max_predictions": "objective.max_predictions",
    "lr": "optim.lr",
    "warmup": "optim.warmup",
}
# The same of every field of a phase.
SINGLE = {"steps": "train.steps", **OVERRULES}


@dataclasses.dataclass(frozen=True)
class Phases:
    """One value a phase. A field left at () takes the run's single value in every phase.

    Moments carry over from phase to phase; the row grid and the compiled step are each phase's own, and so is the schedule's clock, unless
    `one_schedule` is set.

    steps: steps of each phase; () = one phase of `train.steps`.
    length: tokens in a row of each phase; () = `data.length`.
    batch: rows of a step of each phase; () = `train.batch`.
    max_predictions: most predictions in a row of each phase; 0 or () = the objective's own choice.
    lr: peak learning rate of each phase; () = `optim.lr`.
    warmup: warm-up steps of each phase; () = `optim.warmup`.
    one_schedule: one warm-up and decay for the whole run, as when BERT went from 128 to 512 tokens (Devlin et al. 2018).
    """

    steps: tuple[int, ...] = ()
    length: tuple[int, ...] = ()
    batch: tuple[int, ...] = ()
    max_predictions: tuple[int, ...] = ()
    lr: tuple[float, ...] = ()
    warmup: tuple[int, ...] = ()
    one_schedule: bool = False

    def __post_init__(self) -> None:
        at_least(1, "phases", self, "steps", "length", "batch")
        at_least(0, "phases", self, "max_predictions", "lr", "warmup")
        for name in OVERRULES:
            values = getattr(self, name)
            if values and len(values) != len(self.steps):
                fix = "give one a phase" if self.steps else f"set phases.steps, or leave phases.{name} out"
                raise UserError(f"phases.{name} has {len(values)} values and phases.steps has {len(self.steps)}", fix=fix)

    @property
    def unused(self) -> dict[str, str]:
        """See `Run.unused`."""
        return {} if self.steps else {"phases.one_schedule": "phases.steps is (), and one phase has one schedule"}


@dataclasses.dataclass(frozen=True)
class Phase:
    """One phase, resolved.

    start: the run's step at which it begins; length: of its longest rows; max_predictions 0 = the objective's own choice. schedule_start,
    schedule_steps: where the learning rate's clock starts and how long its schedule is.
    """

    start: int
    steps: int
    length: int
    batch: int
    max_predictions: int
    lr: float
    warmup: int
    schedule_start: int
    schedule_steps: int

    @property
    def end(self) -> int:
        """The run's step at which the next phase begins."""
        return self.start + self.steps

    def of_length(self, length: int) -> "Phase":
        """This phase for its rows of `length` tokens, where rows are bucketed: `max_predictions` falls in proportion, rounded up."""
        return dataclasses.replace(self, length=length, max_predictions=-(-self.max_predictions * length // self.length))


def resolve(phases: Phases, single: Phase) -> tuple[Phase, ...]:
    """The phases of a run; `single` alone where `phases.steps` is ()."""
    if not phases.steps:
        return (single,)
    resolved: list[Phase] = []
    start = 0
    for i, steps in enumerate(phases.steps):
        clock = (0, sum(phases.steps)) if phases.one_schedule else (start, steps)
        chosen = {"start": start, "steps": steps, "schedule_start": clock[0], "schedule_steps": clock[1]}
        for name in OVERRULES:
            values = getattr(phases, name)
            chosen[name] = values[i] if values else getattr(single, name)
        resolved.append(Phase(**chosen))
        start += steps
    return tuple(resolved)


def apportion(steps: tuple[int, ...], total: int) -> tuple[int, ...]:
    """`total` steps shared in proportion to `steps`: each phase has 1 or more, and they sum to `total`, which is at least their number.

    By largest remainders: what is left after rounding down goes to the phases that lost most, the first of equals first. Where phases are
    raised to 1, the excess comes from those that lost least.
    """
    whole = sum(steps)
    shares = [max(1, own * total // whole) for own in steps]
    while left := total - sum(shares):
        one = 1 if left > 0 else -1
        may_change = [i for i, share in enumerate(shares) if share + one > 0]
        shares[max(may_change, key=lambda i: one * (steps[i] * total - shares[i] * whole))] += one
    return tuple(shares)


def in_proportion(steps: int, before: int, after: int) -> int:
    """steps · after / before, rounded to the nearest integer, half up: a warm-up in a run of `after` steps that was one of `before`."""
    return (2 * steps * after + before) // (2 * before)


def locate(phases: tuple[Phase, ...], step: int) -> int:
    """The number of the phase that takes batch `step` (0-based); the last phase where the run has ended."""
    return next((number for number, phase in enumerate(phases) if step < phase.end), len(phases) - 1)


def saved_by(phases: tuple[Phase, ...], step: int) -> Phase:
    """The phase that wrote checkpoint `step`: the one that took its last batch, whose carry it holds."""
    return phases[locate(phases, max(step - 1, 0))]
