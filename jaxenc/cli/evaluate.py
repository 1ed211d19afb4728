"""`jaxenc evaluate`: held-out numbers of a run's checkpoint."""

import argparse
import dataclasses
import json
import os
import pathlib

import jax

from jaxenc.checkpoint import restore
from jaxenc.checkpoint.verify import steps
from jaxenc.cli import jobs
from jaxenc.config import flatten
from jaxenc.errors import UserError
from jaxenc.inference.load import config_of
from jaxenc.processes import cluster
from jaxenc.sharding.mesh import MeshConfig
from jaxenc.training import phases
from jaxenc.training.evaluate import evaluation


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--workdir", required=True, type=pathlib.Path, help="the run's directory")
    parser.add_argument("--step", type=int, default=0, help="which checkpoint; the newest that verifies where it is not given")
    parser.add_argument("--data", default="", metavar="DIR", help="other data with the same tokenizer; the run's own where it is not given")
    parser.add_argument("--batch", type=int, default=0, help="rows at a time; it changes no number")


def run(args: argparse.Namespace) -> int:
    """Prints one JSON line: the step, every held-out number and how many predictions the losses rest on."""
    cluster.must_be_alone(os.environ, "jaxenc evaluate")
    directory = args.workdir / "checkpoints"
    if args.step and args.step not in (there := steps(directory)):
        raise UserError(f"--step {args.step}: no such checkpoint in {directory}: it holds {', '.join(map(str, there)) or 'none'}")
    path = restore.find(directory / str(args.step) if args.step else args.workdir, True, "--workdir")
    recipe = config_of(path)
    changed = dataclasses.replace(
        recipe,
        mesh=MeshConfig(),
        data=dataclasses.replace(recipe.data, path=args.data or recipe.data.path),
        eval=dataclasses.replace(recipe.eval, batch=args.batch or recipe.eval.batch),
    )
    job = jobs.prepare(changed, args.workdir)
    jobs.refuse_other_tokenizer(job, path)
    step = int(path.name)
    phase = phases.saved_by(job.run.plan, step)
    if not job.objective(phase).coef:
        raise UserError(f"objective.kind={job.run.objective.kind} predicts nothing, so it has no numbers: name a run that has trained")
    jobs.check_rows(job, "held_out", phase)
    with jax.set_mesh(job.mesh):
        place = job.layout(phase)
        params = restore.restore_params(path, place.abstract.all_params)
        numbers = evaluation(job, phase, job.objective(phase), place)(params)
    print(json.dumps({"step": step, **dict(flatten(numbers))}))
    return 0
