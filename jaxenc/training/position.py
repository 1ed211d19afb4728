"""How much of its data a run has read, and whether another run that continues from its state goes on with the next row."""

import dataclasses

from jaxenc.config import differences
from jaxenc.data.sources import ORDERED_BY_BATCH, SHAPED_BY
from jaxenc.errors import UserError
from jaxenc.training import phases
from jaxenc.training.phases import Phase
from jaxenc.training.run import Run


@dataclasses.dataclass(frozen=True)
class Position:
    """grid: {dotted path: value} of everything that numbers the rows and decides what they hold. read: how many of them were read, which is
    also the number of the next one."""

    grid: dict[str, str | int | float | tuple[int, ...]]
    read: int


def position(run: Run, data: str, phase: Phase, step: int) -> Position:
    """The position of `run` before batch `step`, which is a batch of `phase`. data: fingerprint of the data set.

    Each phase numbers its rows from 0. The order of streams, one a slot, and of bucketed rows depends on the size of the batch.
    """
    rows = run.data.of_length(phase.length)
    grid = {"data.fingerprint": data, "data.rows": rows.rows, "data.length": rows.length, "train.seed": run.train.seed}
    grid |= {f"data.{name}": getattr(rows, name) for name in SHAPED_BY.get(rows.rows, ())}
    grid |= {"train.batch": phase.batch} if rows.rows in ORDERED_BY_BATCH else {}
    return Position(grid, (step - phase.start) * phase.batch)


def refuse_other_rows(saved: Run, saved_data: str, run: Run, data: str, step: int) -> None:
    """Raises UserError where `run`, continuing from the state that `saved` had after `step` steps, would read rows twice or skip some.

    It may begin a phase there, whose rows are numbered from 0; otherwise its next row must be the one after the last row read, of the same
    rows. Also raised where no step is left to take.
    """
    plan = run.plan
    if step >= plan[-1].end:
        field = "phases.steps" if run.phases.steps else "train.steps"
        raise UserError(
            f"--continue-from a checkpoint of step {step:,} leaves nothing to train", fix=f"set {field} beyond {plan[-1].end:,}"
        )
    before, after = phases.saved_by(saved.plan, step), plan[phases.locate(plan, step)]
    was, now = position(saved, saved_data, before, step), position(run, data, after, step)
    if step == after.start or was == now:
        return
    parts = [f"checkpoint {path} {old}, this run's {new}" for path, old, new in differences(was.grid, now.grid)]
    if not parts:
        ours = f"this run would go on at row {now.read:,} in batches of {after.batch}"
        parts = [f"the checkpoint has read {was.read:,} rows in batches of {before.batch}, and {ours}"]
    raise UserError(f"--continue-from at step {step:,}: {'; '.join(parts)}", fix=f"set them back, or {own_phase(run, before, after, step)}")


def own_phase(run: Run, before: Phase, after: Phase, step: int) -> str:
    """The advice to begin a phase at `step`, with the overrides that do so and keep the run's schedule."""
    advice = f"begin a new phase, which starts at its first row, at step {step:,}"
    if run.phases.steps:
        return f"{advice}, in phases.steps"
    pairs = {"steps": (step, after.end - step), "batch": (before.batch, after.batch), "length": (before.length, after.length)}
    changed = {name: pair for name, pair in pairs.items() if name == "steps" or pair[0] != pair[1]}
    given = " ".join(f"--config.phases.{name}={old},{new}" for name, (old, new) in changed.items())
    # Both at once are refused.
    single = " and ".join(f"--config.{phases.SINGLE[name]}" for name in changed)
    return f"{advice}: {given} --config.phases.one_schedule=true in place of {single}"
