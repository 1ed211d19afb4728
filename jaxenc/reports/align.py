"""Where a step lies on the axis that runs are compared along."""

from collections.abc import Callable

from jaxenc.errors import UserError
from jaxenc.reports.history import History
from jaxenc.training.events import EVENTS

AXES = {"step": "step", "tokens": "tokens seen", "flops": "model FLOPs"}


def positions(run: History, by: str) -> Callable[[int], float]:
    """From a step of `run` to its place: the step itself, or what the run had seen or computed when it had taken that step.

    tokens: Σ batch · length of the phases, as config.json has them: every position of every row, padding and [SEP] included, and of
    bucketed rows the longest. flops: Σ batch · the objective's FLOPs of a row (`Objective.flops`: forward and backward of the matrix
    products, nothing computed twice, no optimizer, no evaluation), as events.jsonl has them; MFU counts the same. Raises UserError for
    another axis, and for `flops` of a run without events.jsonl.
    """
    if by not in AXES:
        raise UserError(f"cannot align by {by}", "--align", f"use {', '.join(AXES)}")
    if by == "step":
        return float
    if by == "tokens":
        return lambda step: float(run.settings.tokens(step))
    if not run.start:
        fix = "align by tokens or step; a run writes it from now on when it resumes"
        raise UserError(f"has no {EVENTS} with the FLOPs of a step", run.workdir, fix)
    plan = run.start["phases"]
    each = lambda step, phase: max(0, min(step, phase["end"]) - phase["start"]) * phase["batch"] * phase["flops"]
    return lambda step: float(sum(each(step, phase) for phase in plan))
