"""The training loop."""

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Generator, Mapping

import jax

from jaxenc.checkpoint.manager import Manager
from jaxenc.data import pipeline
from jaxenc.data.batch import Batch, check_fields, check_ranges
from jaxenc.objectives.base import Objective
from jaxenc.sharding import multihost, partition
from jaxenc.train import evaluate, phases
from jaxenc.train.job import Job
from jaxenc.train.log import Log
from jaxenc.train.phases import Phase
from jaxenc.train.record import Recorder
from jaxenc.train.signals import Stop
from jaxenc.train.state import Layout, State, adopt
from jaxenc.train.step import compile_step
from jaxenc.tree import Tree


@dataclasses.dataclass(frozen=True)
class Outcome:
    """step: the last one taken; preempted: whether the run was asked to stop before its end; held_out: the last evaluation."""

    step: int
    preempted: bool
    held_out: Mapping[str, float]


def train(job: Job, state: State, recorder: Recorder, checkpoints: Manager, stop: Stop) -> Outcome:
    """Trains from `state` to the end of the last phase, or until `stop`.

    Step N means that N batches were consumed. The report of a step is read while the next one runs; a checkpoint is written before an
    evaluation, so a failed evaluation loses nothing. Raises UserError when a save failed, Diverged after too many non-finite steps.
    """
    run, step = job.run, int(state.step)
    plan = run.plan
    log = Log(recorder, run.log, plan[-1].end, run.train.stop_after_bad)
    held_out: Mapping[str, float] = {}
    for phase in plan[phases.locate(plan, step) :]:
        objective, place = job.objective(phase), job.layout(phase)
        state = adopt(state, objective, phase.batch, place)
        train_step = compile_step(objective, run.train, run.optim, phase, place)
        assess = evaluation(job, phase, objective, place)
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
                if last or is_due(run.eval.every, step):
                    log.flush()
                    held_out = assess(state.all_params)
                    log.evaluated(step, held_out)
    checkpoints.wait()
    return Outcome(step, False, held_out)


def is_due(every: int, step: int) -> bool:
    """Whether something done every so many steps (0 = never) is done after this one."""
    return every > 0 and step % every == 0


def read_ahead(job: Job, phase: Phase, objective: Objective, step: int) -> Generator[Batch]:
    """This process's rows of every batch of the phase from `step` on, read by a thread while the device computes.

    Raises ValueError when the source lacks a field that the objective reads, UserError for a value outside the model's tables.
    """
    batch_at, _ = reader(job, "train", phase, phase.batch, objective)
    return pipeline.prefetch(lambda step: batch_at(step - phase.start), range(step, phase.end))


def evaluation(job: Job, phase: Phase, objective: Objective, place: Layout) -> Callable[[Tree], Mapping[str, float]]:
    """A function from all parameters to the held-out numbers. Its first use opens the data and compiles; it raises as `read_ahead` does."""
    compiled = evaluate.compile_evaluation(objective, job.run.train.seed, place)
    rows = evaluate.padded_batch(job.run.eval.batch, job.mesh)
    held_out = functools.cache(lambda: reader(job, "held_out", phase, rows, objective))

    def assess(params: Tree) -> Mapping[str, float]:
        batch_at, count = held_out()
        with contextlib.closing(pipeline.prefetch(batch_at, range(count))) as batches:
            return evaluate.evaluate(objective, compiled, params, batches, job.mesh)

    return assess


def reader(job: Job, split: str, phase: Phase, rows: int, objective: Objective) -> tuple[Callable[[int], Batch], int]:
    """(this process's rows of batch number n of a split, batches of one pass over it), with fields and values checked."""
    batches = job.batches(split, phase, rows)
    check_fields(batches.fields, objective.reads)
    slots = multihost.process_slots(rows, jax.process_count(), jax.process_index())

    def batch_at(number: int) -> Batch:
        batch = batches.batch_at(number, slots)
        check_ranges(batch, objective.reads)
        return batch

    return batch_at, len(batches)
