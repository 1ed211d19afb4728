"""`jaxenc pretrain`: train a model, or go on where the run in the work directory stopped.

With JAX_COMPILATION_CACHE_DIR=DIR, jax's own variable, a start finds there what an earlier one took a second or more to compile.
JAXENC_COORDINATOR, JAXENC_PROCESSES and JAXENC_PROCESS make it one of several processes (`processes.cluster`).
"""

import argparse
import contextlib
import os
import pathlib
import sys
from collections.abc import Sequence
from typing import Any

import jax

from jaxenc.checkpoint import restore
from jaxenc.checkpoint.manager import Manager
from jaxenc.checkpoint.restore import Start
from jaxenc.cli import effect, jobs
from jaxenc.cli import recipe as cli_config
from jaxenc.cli.main import PREEMPTED, report_error
from jaxenc.data.folders import must_hold_a_run
from jaxenc.errors import UserError
from jaxenc.files import held
from jaxenc.processes import barriers, cluster
from jaxenc.processes.watch import Watch
from jaxenc.training.begin import begin, heads_afresh, is_finite
from jaxenc.training.job import Job
from jaxenc.training.loop import Outcome, lacks_evaluation, train
from jaxenc.training.record import Recorder, Silent
from jaxenc.training.run import Run
from jaxenc.training.signals import Stop


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", required=True, help=cli_config.HELP)
    where = "the run's directory; a run that stopped goes on from its newest checkpoint"
    parser.add_argument("--workdir", required=True, type=pathlib.Path, help=where)
    parser.add_argument("--continue-from", default="", metavar="DIR", help="start from another run's whole state")
    parser.add_argument("--init-from", default="", metavar="DIR", help="start from another run's parameters only, at step 0")
    moved = "parameters under NEW start from those under OLD of --init-from; may come several times, and the longest NEW decides"
    parser.add_argument("--init-map", default=[], action="append", metavar="NEW=OLD", help=moved)


def run(args: argparse.Namespace) -> int:
    """Exit code 0 when all is done, 75 when asked to stop before that: run the same command again."""
    recipe = cli_config.resolve(args.config, args.overrides)
    effect.check_data(recipe, args.overrides)
    with cluster.joined(cluster.from_environment(os.environ), lambda error: report_error(error, args.debug)):
        return code(pretrain(recipe, args.workdir, args.continue_from, args.init_from, args.init_map), args.workdir)


def code(outcome: Outcome, workdir: pathlib.Path) -> int:
    """The exit code of a command that trained in `workdir`; where the run was stopped, with a line on stderr that says how it goes on."""
    if not outcome.preempted:
        return 0
    if barriers.is_primary():
        saved = ", checkpoint written" if (workdir / "checkpoints" / str(outcome.step)).is_dir() else ""
        print(f"{workdir}: stopped at step {outcome.step:,}{saved}: run the same command to go on", file=sys.stderr)
    return PREEMPTED


def pretrain(recipe: Run, workdir: pathlib.Path, continue_from: str = "", init_from: str = "", init_map: Sequence[str] = ()) -> Outcome:
    """Trains `recipe` in `workdir`: resumes what is there, or continues, initialises or starts afresh, in this order.

    init_map: `NEW=OLD` prefixes of paths (`checkpoint.moved`); a run that resumes needs it no more.
    Nothing stays written before everything that can be refused has been looked at; a finished run is left as it is. Of several processes
    each calls it; process 0 holds the directory and decides where they start. Raises UserError, and what `train.loop.train` raises.
    """
    must_hold_a_run(workdir, "--workdir")
    job = jobs.prepare(recipe, workdir)
    jobs.check(job)
    jobs.refuse_other_run(job, workdir)
    with contextlib.ExitStack() as holding:

        def choose() -> list[Any]:
            holding.enter_context(held(workdir, "wait for it, or choose another --workdir"))
            return restore.choose(workdir / "checkpoints", continue_from, init_from, job.run.checkpoint.verify, init_map).to_json()

        start = Start.from_json(barriers.from_primary("start", choose))
        jobs.refuse_other_process(job)
        jobs.refuse_other_folder(workdir)
        if start.kind == "resume":
            jobs.refuse_other_state(job, start.path)
            if start.step >= job.run.plan[-1].end and not lacks_evaluation(job, start.step):
                if barriers.is_primary():
                    print(f"{workdir}: finished at step {start.step:,}; nothing to do", file=sys.stderr)
                return Outcome(start.step, False, {})
        else:
            jobs.check_data(job)
        if start.kind in ("continue", "init"):
            jobs.refuse_other_tokenizer(job, start.path)
        if start.kind == "continue":
            jobs.refuse_other_carry(job, start)
            jobs.refuse_other_rows(job, start)
        return _train(job, start, workdir)


def _train(job: Job, start: Start, workdir: pathlib.Path) -> Outcome:
    with jax.set_mesh(job.mesh), Stop() as stop, Watch() as watch:
        afresh = heads_afresh(start, job.objective(job.run.plan[0]).heads)
        state = begin(start, job.run.plan, job.run.train.seed, job.layout, afresh)
        # Between CPUs the first collective ends them all where one comes 30 s late; this barrier has our limit and names that one.
        barriers.barrier("first state")
        if not is_finite(state):
            raise UserError(f"checkpoint {start.path}: a number of its state is not finite: start from an older step (move this one away)")
        if barriers.is_primary():
            jobs.write_facts(job, workdir)
        with Manager(workdir / "checkpoints", job.run.checkpoint) as checkpoints:
            checkpoints.check_room(state)
            log, step = job.run.log, int(state.step)
            recorder = Recorder(workdir, step, log.examples, log.tensorboard) if barriers.is_primary() else Silent()
            anew = (f"{name} starts fresh: {start.path} has none" for name in afresh)
            moved = (f"{new} starts as {old} of {start.path}" for new, old in start.moved)
            for line in (jobs.describe(job, start), *moved, *anew, *jobs.warnings(job)):
                recorder.say(line)
            try:
                return train(job, state, recorder, checkpoints, stop, watch)
            finally:
                recorder.close()
