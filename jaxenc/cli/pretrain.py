"""`jaxenc pretrain`: train a model, or go on where the run in the work directory stopped."""

import argparse
import pathlib

import jax

from jaxenc.checkpoint import restore
from jaxenc.checkpoint.manager import Manager
from jaxenc.cli import config as cli_config
from jaxenc.cli import jobs
from jaxenc.errors import UserError
from jaxenc.run import Run
from jaxenc.train.begin import begin, is_finite
from jaxenc.train.loop import Outcome, train
from jaxenc.train.record import Recorder
from jaxenc.train.signals import Stop

PREEMPTED = 75


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", required=True, help="a recipe such as bert/base, a FILE.py of your own, or a run's config.json")
    where = "the run's directory; a run that stopped goes on from its newest checkpoint"
    parser.add_argument("--workdir", required=True, type=pathlib.Path, help=where)
    parser.add_argument("--continue-from", default="", metavar="DIR", help="start from another run's whole state")
    parser.add_argument("--init-from", default="", metavar="DIR", help="start from another run's parameters only, at step 0")


def run(args: argparse.Namespace) -> int:
    """Exit code 0 at the end of the last phase, 75 when asked to stop before it (a checkpoint is written: run the same command again)."""
    outcome = pretrain(cli_config.resolve(args.config, args.overrides), args.workdir, args.continue_from, args.init_from)
    return PREEMPTED if outcome.preempted else 0


def pretrain(recipe: Run, workdir: pathlib.Path, continue_from: str = "", init_from: str = "") -> Outcome:
    """Trains `recipe` in `workdir`: resumes what is there, or continues, initialises or starts afresh, in this order."""
    job = jobs.prepare(recipe, workdir)
    directory = workdir / "checkpoints"
    jobs.refuse_other_run(job, workdir)
    start = restore.choose(directory, continue_from, init_from, job.run.checkpoint.verify)
    if start.kind == "resume":
        jobs.refuse_other_state(job, start.path)
    jobs.write_facts(job, workdir)
    with jax.set_mesh(job.mesh), Stop() as stop, Manager(directory, job.run.checkpoint) as checkpoints:
        state = begin(start, job.run.plan, job.run.train.seed, job.layout)
        if not is_finite(state):
            raise UserError(f"checkpoint {start.path}: a parameter is not a finite number: start from an older step")
        recorder = Recorder(workdir, int(state.step), job.run.log.examples, job.run.log.tensorboard)
        recorder.say(jobs.describe(job, start))
        try:
            return train(job, state, recorder, checkpoints, stop)
        finally:
            recorder.close()
