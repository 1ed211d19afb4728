"""A complete pretraining run, started or resumed: the implementation of `jaxenc pretrain` and `jaxenc.pretrain`."""

import contextlib
import dataclasses
import functools
import pathlib
import platform
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

import jax

from jaxenc.checkpoint import restore
from jaxenc.checkpoint.lease import BUSY
from jaxenc.checkpoint.manager import Manager
from jaxenc.checkpoint.open_workdir import opened
from jaxenc.checkpoint.restore import Start
from jaxenc.checkpoint.verify import CHECKPOINTS
from jaxenc.checkpoint.workdir import Workdir
from jaxenc.config import to_dict
from jaxenc.errors import UserError
from jaxenc.families import MODELS, Models
from jaxenc.files import locked
from jaxenc.heads import BUILT_IN, Head
from jaxenc.objectives.base import TEACHER
from jaxenc.processes import barriers, versions
from jaxenc.processes.watch import Watch
from jaxenc.training import prepare, profile, refusals, resume
from jaxenc.training import teacher as teachers
from jaxenc.training.begin import begin, fresh_heads, is_finite, renamed_heads
from jaxenc.training.events import FINISHED, PREEMPTED, Events, NoEvents
from jaxenc.training.job import Job
from jaxenc.training.loop import Outcome, lacks_evaluation, train
from jaxenc.training.profile import Steps
from jaxenc.training.record import Recorder, Silent
from jaxenc.training.run import Run, of_checkpoint
from jaxenc.training.run import check as check_run
from jaxenc.training.signals import Stop


def pretrain(
    run: Run,
    workdir: str | pathlib.Path,
    continue_from: str = "",
    init_from: str = "",
    init_map: Sequence[str] = (),
    heads: Mapping[str, Head] = BUILT_IN,
    models: Models = MODELS,
    profiled: Steps = Steps(),
) -> Outcome:
    """Trains `run` in `workdir`. It resumes the run in `workdir` if there is one; otherwise it starts from `continue_from`, from the
    parameters of `init_from`, or from scratch, in this order.

    workdir, continue_from, init_from: a folder, or its URL (docs/storage.md). continue_from, init_from: another run's directory or one of
    its checkpoints, '' for none; init_map: `NEW=OLD` prefixes of parameter paths (`checkpoint.moved`), ignored when the run resumes. heads,
    models: those that `run` may name (`jaxenc.heads.with_built_in` and `jaxenc.families.with_built_in` add your own). profiled: the first
    and the last step of a trace in `workdir`/profile (`training.profile`).
    All checks come before the first write, and a finished run is not changed. With several processes each calls it; process 0 locks the
    directory and decides where they start. Raises UserError, and the errors of `training.loop.train`.
    """
    check_run(run, models)
    with opened(workdir, run.checkpoint.verify) as (folder, work):
        work.fetch(folder)
        job = dataclasses.replace(prepare.prepare(run, folder, heads, models), profiled=profiled)
        return train_job(job, continue_from, init_from, init_map, work)


def train_job(job: Job, continue_from: str = "", init_from: str = "", init_map: Sequence[str] = (), work: Workdir = Workdir()) -> Outcome:
    """As `pretrain`, for a run whose data is open and whose mesh is made. It writes to `job.directory`. work: the open work directory,
    which publishes what the run writes."""
    workdir, called = job.directory, time.monotonic()
    refusals.refuse_other_teacher(job, workdir)
    with job.bars.shown("checking the run"):
        prepare.check(job)
    resume.refuse_other_run(job, workdir)
    with contextlib.ExitStack() as holding:

        def choose() -> list[Any]:
            holding.enter_context(locked(workdir, BUSY))
            return restore.choose(workdir / CHECKPOINTS, continue_from, init_from, job.run.checkpoint.verify, init_map).to_json()

        with job.bars.shown("checking the checkpoints"):
            start = Start.from_json(barriers.from_primary("start", choose))
            start = restore.on_this_machine(start, workdir / CHECKPOINTS, continue_from or init_from, job.run.checkpoint.verify)
        refusals.refuse_other_process(job)
        if not work.per_process:
            refusals.refuse_other_folder(workdir)
        if start.kind == "resume":
            resume.refuse_other_state(job, start.path)
            if start.step >= job.run.plan[-1].end and not lacks_evaluation(job, start.step):
                if barriers.is_primary():
                    print(f"{work.named(str(workdir))}: finished at step {start.step:,}; nothing to do", file=sys.stderr)
                return Outcome(start.step, False, {})
        else:
            prepare.check_data(job)
        profile.check(job.profiled, start.step, job.run.plan[-1].end)
        if start.kind in ("continue", "init"):
            refusals.refuse_other_tokenizer(job, start.path)
            refusals.refuse_other_table(job, start.path)
        if start.kind == "continue":
            refusals.refuse_continuing_with_another_teacher(job, start.path)
            refusals.refuse_other_carry(job, start)
            refusals.refuse_other_rows(job, start)
        return _train(job, start, workdir, work, called)


def _train(job: Job, start: Start, workdir: pathlib.Path, work: Workdir, called: float) -> Outcome:
    """Trains from `start`; the arguments are checked. called: `time.monotonic()` when the user asked for the run."""
    with jax.set_mesh(job.mesh), Stop() as stop, Watch() as watch:
        objective = job.objective(job.run.plan[0])
        fresh, load_teacher = fresh_heads(start, objective), None
        classes = job.run.objective.classes
        saved = of_checkpoint(start.path, job.models).objective.classes if start.kind == "init" else ()
        renamed = renamed_heads(start, objective, classes, saved)
        if job.teacher:
            load_teacher = functools.partial(teachers.load_params, job.teacher, job.run, workdir, job.models)
        with job.bars.shown(f"reading {start.path}" if start.path else "initialising the model"):
            state = begin(start, job.run.plan, job.run.train.seed, job.layout, objective, (*fresh, *renamed), load_teacher)
            # The first collective on CPUs kills every process if one is 30 s late; this barrier has a longer limit and names the late one.
            barriers.barrier("first state")
            finite = is_finite(state)
        if not finite:
            raise UserError(
                "a number of its state is not finite", f"checkpoint {start.path}", "start from an older step (move this one away)"
            )
        if barriers.is_primary():
            prepare.write_facts(job, workdir)
            work.publish()
        if job.teacher:
            teachers.save_copy(job.teacher, job.run, workdir, state.frozen[TEACHER], work)
        directory = workdir / CHECKPOINTS
        log, step = job.run.log, int(state.step)
        events = Events(workdir) if barriers.is_primary() else NoEvents()
        with (
            # A save may end after training has failed, so the events are closed last.
            contextlib.closing(events),
            Manager(directory, job.run.checkpoint, upload=work.upload(directory), saved=events.saved) as checkpoints,
        ):
            checkpoints.check_room(state.without(objective.frozen))
            with job.bars.shown("opening the logs"):
                recorder = Recorder(workdir, step, log, events, to_dict(job.run)) if barriers.is_primary() else Silent(events)
            drawn = (f"{name} starts fresh: {start.path} has none" for name in fresh)
            other = f"it has the classes {', '.join(saved)} in {start.path}, and {', '.join(classes)} in this run"
            drawn = (*drawn, *(f"{name} starts fresh: {other}" for name in renamed))
            moved = (f"{new} starts as {old} of {start.path}" for new, old in start.moved)
            changed = () if "train.attention" in job.run.unused else job.attention.warnings(start.kind == "resume")
            again = prepare.taken_again(job, step, recorder.reached)
            for line in (prepare.describe(job, start), *again, *changed, *moved, *drawn, *prepare.warnings(job)):
                recorder.say(work.named(line))
            with contextlib.closing(recorder), events.failing():
                events.start(step, time.monotonic() - called, _facts(job, start.kind, recorder.reached))
                outcome = train(job, state, recorder, checkpoints, stop, watch)
            events.stop(PREEMPTED if outcome.preempted else FINISHED)
            return outcome


def _facts(job: Job, kind: str, reached: int) -> dict[str, Any]:
    """What the row `start` of events.jsonl says (`training.events`)."""
    phases = [(phase, job.objective(phase).flops(phase.length)) for phase in job.run.plan]
    return {
        "kind": kind,
        "reached": reached,
        "command": sys.argv,
        "versions": {"python": platform.python_version(), "jax": jax.__version__, "jaxenc": versions.version("jaxenc")},
        "device": job.mesh.devices.flat[0].device_kind,
        "devices": job.mesh.size,
        "processes": jax.process_count(),
        "steps": job.run.plan[-1].end,
        "phases": [
            {"start": phase.start, "end": phase.end, "batch": phase.batch, "length": phase.length, "flops": float(flops)}
            for phase, flops in phases
        ],
    }
