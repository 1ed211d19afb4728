"""The held-out numbers of a run: those of its loss and, for a task, the scores of its answers."""

from collections.abc import Callable, Mapping

from jaxenc import metrics
from jaxenc.objectives.base import Objective
from jaxenc.processes import barriers
from jaxenc.training.evaluate import evaluation, never
from jaxenc.training.job import Job
from jaxenc.training.phases import Phase
from jaxenc.training.predict import predictions
from jaxenc.training.state import Layout
from jaxenc.tree import Tree


def assessment(job: Job, phase: Phase, objective: Objective, layout: Layout) -> Callable[..., Mapping[str, float]]:
    """A function (all parameters, `stopping`) -> the held-out numbers, {} where `stopping`, called before every batch, returned True.

    For a job without a judge it is `evaluate.evaluation`; for one with a judge, one pass gives the numbers of the loss and the predictions
    that are scored, by process 0.
    """
    if job.judge is None:
        return evaluation(job, phase, objective, layout)

    def assess(params: Tree, stopping: Callable[[], bool] = never) -> Mapping[str, float]:
        stopped = False

        def asked() -> bool:
            nonlocal stopped
            stopped = stopped or stopping()
            return stopped

        found = predictions(job, phase, objective, layout, params, True, asked)
        if stopped:
            return {}
        scores = barriers.from_primary("scores", lambda: job.judge(found.predictions))
        return {**objective.summary(found.sums), **metrics.predictions(found.sums), **scores}

    return assess
