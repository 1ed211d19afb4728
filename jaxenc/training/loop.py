"""The training loop."""

import contextlib
import dataclasses
import functools
import os
from collections.abc import Callable, Generator, Iterator, Mapping

import jax
import numpy as np
from jax import Array

from jaxenc.checkpoint.manager import Manager
from jaxenc.data.batch import Batch, row_length
from jaxenc.errors import Diverged, UserError
from jaxenc.objectives.base import Objective
from jaxenc.processes import barriers
from jaxenc.processes.agreement import Agreement
from jaxenc.processes.watch import Watch
from jaxenc.sharding import partition
from jaxenc.storage import is_url
from jaxenc.training import compiling, phases
from jaxenc.training.assess import assessment
from jaxenc.training.begin import is_finite
from jaxenc.training.job import Job
from jaxenc.training.log import Log
from jaxenc.training.phases import Phase
from jaxenc.training.profile import Profiler
from jaxenc.training.read import read_ahead
from jaxenc.training.record import Recorder, evaluated
from jaxenc.training.signals import Stop
from jaxenc.training.state import State, adopt
from jaxenc.training.step import StepReport, compile_step, fields


@dataclasses.dataclass(frozen=True)
class Outcome:
    """step: the last one taken; preempted: whether the run was stopped before its end; held_out: the numbers of the last evaluation, {} if
    there was none or it was stopped."""

    step: int
    preempted: bool
    held_out: Mapping[str, float]


def train(job: Job, state: State, recorder: Recorder, checkpoints: Manager, stop: Stop, watch: Watch) -> Outcome:
    """Trains from `state` to the end of the last phase, or until `stop`; each of several processes has its own `stop`.

    Step N means that N batches were consumed. The report of a step is read while the next one runs. A checkpoint is written before an
    evaluation, and a run that was stopped before or during one makes it up first. A request to stop one process stops all after the same
    step. Raises UserError where data cannot be read or an evaluation fails (after saving the state) and when a save failed, Absent when
    another process does not take part in a save, Diverged after too many bad steps in a row and for a state that is not finite.
    """
    run, end = job.run, job.run.plan[-1].end
    with job.bars.shown("training", end, "steps", int(state.step)) as bar, Profiler(job.profiled, job.directory) as profiler:
        log = Log(recorder, run.log, end, run.train.stop_after_bad, bar)
        return _train(job, state, log, profiler, checkpoints, stop, watch)


def _train(job: Job, state: State, log: Log, profiler: Profiler, checkpoints: Manager, stop: Stop, watch: Watch) -> Outcome:
    run, step, seed = job.run, int(state.step), np.int32(job.run.train.seed)
    plan, vote = run.plan, Agreement(job.mesh)
    held_out: Mapping[str, float] = {}
    saved, asked = step, lambda: vote.agreed(stop.requested)

    def save() -> None:
        nonlocal saved
        if step > saved:
            saved = step
            _save(job, step, state, log, watch, checkpoints)

    if lacks_evaluation(job, step):
        watch.at(f"evaluation of step {step:,}")
        held_out = _missed_evaluation(job, step, state, asked, log)
        if not held_out:
            return Outcome(step, True, held_out)
        log.evaluated(step, held_out)
    for phase in plan[phases.locate(plan, step) :]:
        objective, layout = job.objective(phase), job.layout(phase)
        of_length = functools.cache(functools.partial(_compile, job, phase, log))
        assess = assessment(job, phase, objective, layout)
        log.begin(phase, objective, job.mesh)
        with contextlib.closing(_batches(job, phase, objective, step, save)) as batches:
            for batch in batches:
                # Not before the first batch is read: if that fails, the checkpoint of this step still has the layout of the phase before.
                if step == phase.start:
                    state = adopt(state, objective, phase.batch, layout)
                train_step, flops = of_length(row_length(batch))
                with profiler.step(step + 1):
                    state, report = train_step(state, batch, seed)
                step += 1
                profiler.taken(step, report)
                watch.at(f"step {step:,}")
                log.push(step, report, batch, flops)
                checkpoints.check()
                stopping = asked()
                if stopping or step == plan[-1].end or is_due(run.checkpoint.every, step):
                    save()
                if not stopping and evaluation_due(job, step):
                    log.flush()
                    watch.at(f"evaluation of step {step:,}")
                    with _saved_on_failure(save), log.events.during("evaluation", step):
                        held_out = assess(state.all_params, asked)
                    stopping = not held_out
                    if held_out:
                        log.evaluated(step, held_out)
                    else:
                        save()
                if stopping:
                    _wait(job, step, checkpoints)
                    return Outcome(step, True, held_out)
    _wait(job, step, checkpoints)
    return Outcome(step, False, held_out)


def _compile(job: Job, phase: Phase, log: Log, length: int) -> tuple[Callable[[State, Batch, np.int32], tuple[State, StepReport]], float]:
    """(the step of a phase for its rows of `length` tokens, which takes this process's rows and compiles at its first call; the FLOPs of a
    row)."""
    objective = job.objective(phase.of_length(length))

    def build() -> Callable[[State, Mapping[str, Array], Array], tuple[State, StepReport]]:
        log.compiles(length)
        compiled = compile_step(objective, job.run.train, job.run.optim, phase, job.layout(phase))
        return compiling.shown(job, "the step", phase.batch, length, compiled)

    taken, compiled = fields(objective, job.run.train), job.programs.once(("step", phase, length), build)

    def step(state: State, batch: Batch, seed: np.int32) -> tuple[State, StepReport]:
        return compiled(state, partition.place({name: batch[name] for name in taken}, job.mesh), seed)

    return step, objective.flops(length)


def _missed_evaluation(job: Job, step: int, state: State, asked: Callable[[], bool], log: Log) -> Mapping[str, float]:
    """The evaluation of `step` that an earlier start did not finish, for the phase that took the step; {} where it is stopped."""
    phase = phases.saved_by(job.run.plan, step)
    with log.events.during("evaluation", step):
        return assessment(job, phase, job.objective(phase), job.layout(phase))(state.all_params, asked)


def _batches(job: Job, phase: Phase, objective: Objective, step: int, save: Callable[[], None]) -> Generator[Batch]:
    """The batches of `read_ahead`; where it raises UserError, `save` is called first."""
    with _saved_on_failure(save), contextlib.closing(read_ahead(job, phase, objective, step)) as batches:
        yield from batches


@contextlib.contextmanager
def _saved_on_failure(save: Callable[[], None]) -> Iterator[None]:
    """Calls `save` where the block raises UserError, then raises the error again.

    With several processes it does not save: that needs all of them, and the others may not have failed.
    """
    try:
        yield
    except UserError:
        if jax.process_count() == 1:
            with contextlib.suppress(UserError, Diverged):
                save()
        raise


def _save(job: Job, step: int, state: State, log: Log, watch: Watch, checkpoints: Manager) -> None:
    """Writes the log rows of a step, then its checkpoint. Raises as `train`."""
    log.flush()
    watch.at(f"checkpoint {step:,}")
    if gone := [folder for folder in job.run.data.folders if not (is_url(folder) or os.path.exists(folder))]:
        log.say(f"warning: {gone[0]}: the data folder is gone: this run continues with its open files; a restart needs it back")
    if not is_finite(state):
        raise Diverged(f"step {step}: a number of the state is not finite, so it is not saved")
    with log.events.during("save", step), job.bars.shown(f"saving checkpoint {step:,}"):
        checkpoints.save(step, state.without(job.objective(job.run.plan[0]).frozen), job.files)


def _wait(job: Job, step: int, checkpoints: Manager) -> None:
    """Waits until the last checkpoint is written, and uploaded where the run is at a URL."""
    with job.bars.shown(f"writing checkpoint {step:,}"):
        checkpoints.wait()


def is_due(every: int, step: int) -> bool:
    """Whether something that happens every `every` steps (0 = never) happens after `step`."""
    return every > 0 and step % every == 0


def evaluation_due(job: Job, step: int) -> bool:
    """Whether a run evaluates after this step: every `eval.every` steps and at its end."""
    return job.evaluates and (step >= job.run.plan[-1].end or is_due(job.run.eval.every, step))


def lacks_evaluation(job: Job, step: int) -> bool:
    """Whether a run that starts at `step` has to make up its evaluation, because it stopped or died between checkpoint and evaluation.

    Every process calls it at the same point; process 0, which writes metrics.jsonl, looks there.
    """
    return (
        step > 0
        and evaluation_due(job, step)
        and barriers.from_primary(f"evaluation of step {step}", lambda: not evaluated(job.directory, step))
    )
