"""The held-out numbers of a run: those of its loss and, for a task, the scores of its answers."""

from collections.abc import Callable, Mapping

from jaxenc.objectives.base import Objective
from jaxenc.training.evaluate import evaluation, never
from jaxenc.training.job import Job
from jaxenc.training.phases import Phase
from jaxenc.training.predict import predictions
from jaxenc.training.state import Layout
from jaxenc.tree import Tree


def assessment(job: Job, phase: Phase, objective: Objective, place: Layout) -> Callable[..., Mapping[str, float]]:
    """A function (all parameters, `stopping`) -> the held-out numbers, {} where `stopping` returned True; see `evaluate.evaluation`. For a
    job with a judge it reads the held-out rows twice, for the loss and for the predictions."""
    of_loss = evaluation(job, phase, objective, place)

    def assess(params: Tree, stopping: Callable[[], bool] = never) -> Mapping[str, float]:
        numbers = of_loss(params, stopping)
        if not numbers or job.judge is None:
            return numbers
        _, found = predictions(job, phase, objective, place, params)
        return {**numbers, **job.judge(found)}

    return assess
