"""The training loop."""

from __future__ import annotations

import contextlib
import dataclasses
import pathlib
from collections.abc import Callable, Generator, Mapping
from typing import TYPE_CHECKING

import jax
from jax.sharding import Mesh

from jaxenc.checkpoint.manager import Manager
from jaxenc.data import pipeline
from jaxenc.data.batch import Batch, check_fields, check_ranges
from jaxenc.data.sources import Source
from jaxenc.data.vocabulary import Vocabulary
from jaxenc.objectives.base import Objective
from jaxenc.sharding import multihost, partition
from jaxenc.train import evaluate, phases
from jaxenc.train.log import Log
from jaxenc.train.phases import Phase
from jaxenc.train.record import Recorder, evaluated
from jaxenc.train.signals import Stop
from jaxenc.train.state import Layout, State, adopt, layout
from jaxenc.train.step import compile_step

if TYPE_CHECKING:
    from jaxenc.run import Run


@dataclasses.dataclass(frozen=True)
class Job:
    """A run together with what it reads and where it writes.

    source(split, phase): the rows of `train` or `held_out` at a phase's length. evaluates: whether any document is held out.
    files: what every checkpoint carries beside the state.
    """

    run: Run
    vocabulary: Vocabulary
    mesh: Mesh
    source: Callable[[str, Phase], Source]
    evaluates: bool
    directory: pathlib.Path
    files: Mapping[str, bytes | pathlib.Path]

    def objective(self, phase: Phase) -> Objective:
        """The objective at a phase's length, computed as this mesh's platform wants it."""
        return self.run.build(self.vocabulary, phase, self.mesh.devices.flat[0].platform)

    def layout(self, phase: Phase) -> Layout:
        """The shapes and shardings of the state in a phase."""
        return layout(self.objective(phase), self.run.optim, phase.batch, self.mesh, self.run.mesh.preset)


@dataclasses.dataclass(frozen=True)
class Outcome:
    """step: the last one taken; preempted: whether the run was asked to stop before its end; held_out: the last evaluation."""

    step: int
    preempted: bool
    held_out: Mapping[str, float]


def train(job: Job, state: State, recorder: Recorder, checkpoints: Manager, stop: Stop) -> Outcome:
    """Trains from `state` to the end of the last phase, or until `stop`.

    Step N means that N batches were consumed. The report of a step is read while the next one runs; a checkpoint is written before an
    evaluation, so a failed evaluation loses nothing, and a run that was stopped in between makes it up. Raises UserError when a save
    failed, Diverged after too many non-finite steps.
    """
    run, step = job.run, int(state.step)
    plan = run.plan
    log = Log(recorder, run.log, plan[-1].end, run.train.stop_after_bad)
    held_out: Mapping[str, float] = {}
    if lacks_evaluation(job, step):
        before = plan[phases.locate(plan, step - 1)[0]]
        held_out = evaluation(job, before, job.objective(before))(state)
        log.evaluated(step, held_out)
    for phase in plan[phases.locate(plan, step)[0] :]:
        objective, place = job.objective(phase), job.layout(phase)
        state = adopt(state, objective, phase.batch, place)
        train_step = compile_step(objective, run.train, run.optim, phase, place, job.mesh)
        assess = evaluation(job, phase, objective)
        log.begin(phase, objective.flops(phase.length), job.mesh)
        with contextlib.closing(read_ahead(job, phase, objective, step)) as batches:
            for batch in batches:
                state, report = train_step(state, partition.place({name: batch[name] for name in objective.reads}, job.mesh))
                step += 1
                log.push(step, report, batch)
                checkpoints.check()
                last = stop.requested or step == plan[-1].end
                if last or is_due(run.checkpoint.every, step):
                    log.flush()
                    checkpoints.save(step, state, job.files)
                if stop.requested:
                    checkpoints.wait()
                    return Outcome(step, True, held_out)
                if evaluation_due(job, step):
                    log.flush()
                    held_out = assess(state)
                    log.evaluated(step, held_out)
    checkpoints.wait()
    return Outcome(step, False, held_out)


def is_due(every: int, step: int) -> bool:
    """Whether something done every so many steps (0 = never) is done after this one."""
    return every > 0 and step % every == 0


def evaluation_due(job: Job, step: int) -> bool:
    """Whether a run that nothing stops evaluates after this step: every `eval.every` steps and at its end."""
    return job.evaluates and (step >= job.run.plan[-1].end or is_due(job.run.eval.every, step))


def lacks_evaluation(job: Job, step: int) -> bool:
    """Whether a run that starts at `step` has an evaluation to make up: one that stopped or died between checkpoint and evaluation."""
    return step > 0 and evaluation_due(job, step) and not evaluated(job.directory, step)


def read_ahead(job: Job, phase: Phase, objective: Objective, step: int) -> Generator[Batch]:
    """This process's rows of every batch of the phase from `step` on, read by a thread while the device computes.

    Raises ValueError when the source lacks a field that the objective reads, UserError for a value outside the model's tables.
    """
    source = job.source("train", phase)
    check_fields(source.fields, objective.reads)
    order = pipeline.Order(source, phase.batch, job.run.train.seed)
    slots = multihost.process_slots(phase.batch, jax.process_count(), jax.process_index())

    def rows(step: int) -> Batch:
        batch = order.batch_at(step - phase.start, slots)
        check_ranges(batch, objective.reads)
        return batch

    return pipeline.prefetch(rows, range(step, phase.end))


def evaluation(job: Job, phase: Phase, objective: Objective) -> Callable[[State], Mapping[str, float]]:
    """A function from a state to its held-out numbers, compiled at its first use."""
    compiled = evaluate.compile_evaluation(objective, job.run.train.seed, job.layout(phase), job.mesh)
    rows = evaluate.padded_batch(job.run.eval.batch, job.mesh)

    def assess(state: State) -> Mapping[str, float]:
        batches = pipeline.evaluation_batches(job.source("held_out", phase), rows, job.run.eval.rows)
        return evaluate.evaluate(objective, compiled, state.params, state.frozen, batches, job.mesh)

    return assess
