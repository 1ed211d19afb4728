"""The held-out numbers of a run's checkpoint: what `jaxenc evaluate` and `jaxenc.evaluate` call."""

import dataclasses
import pathlib
from collections.abc import Mapping

import jax

from jaxenc.checkpoint import restore
from jaxenc.checkpoint.verify import steps
from jaxenc.errors import UserError
from jaxenc.families import MODELS, Models
from jaxenc.heads import BUILT_IN, Head
from jaxenc.sharding.mesh import MeshConfig
from jaxenc.training import phases, prepare, refusals
from jaxenc.training.evaluate import evaluation
from jaxenc.training.run import Run, of_checkpoint


def evaluate(
    workdir: str | pathlib.Path,
    step: int = 0,
    data: str = "",
    batch: int = 0,
    mesh: str = "",
    heads: Mapping[str, Head] = BUILT_IN,
    models: Models = MODELS,
) -> dict[str, float]:
    """{name: number} of a checkpoint on its held-out rows, and `step`.

    step: which checkpoint, 0 for the newest that verifies. data: another data folder with the same tokenizer, '' for the run's own.
    batch: rows at a time, 0 for the run's own; it changes no number. mesh: a preset, '' for the run's own, on all devices there are.
    heads, models: as `training.pretrain.pretrain`. Raises UserError for a step or data that do not fit.
    """
    workdir = pathlib.Path(workdir)
    directory = workdir / "checkpoints"
    if step and step not in (there := steps(directory)):
        raise UserError(f"--step {step}: no such checkpoint in {directory}: it holds {', '.join(map(str, there)) or 'none'}")
    path = restore.find(directory / str(step) if step else workdir, True, "--workdir")
    job = prepare.prepare(_asked(of_checkpoint(path, models), data, batch, mesh), workdir, heads, models)
    refusals.refuse_other_tokenizer(job, path)
    phase = phases.saved_by(job.run.plan, int(path.name))
    objective = job.objective(phase)
    if not objective.coef:
        raise UserError(f"objective.kind={job.run.objective.kind} predicts nothing, so it has no numbers: name a run that has trained")
    prepare.check_rows(job, "held_out", phase)
    with jax.set_mesh(job.mesh):
        place = job.layout(phase)
        params = restore.restore_params(path, place.abstract.all_params)
        return {"step": int(path.name), **evaluation(job, phase, objective, place)(params)}


def _asked(run: Run, data: str, batch: int, mesh: str) -> Run:
    """The run with what an evaluation may choose. Its mesh has the sizes that the devices of this machine allow."""
    tensor = 1 if jax.device_count() % 2 else 0
    return dataclasses.replace(
        run,
        mesh=MeshConfig(mesh or run.mesh.preset, tensor=tensor),
        data=dataclasses.replace(run.data, path=data or run.data.path),
        eval=dataclasses.replace(run.eval, batch=batch or run.eval.batch),
    )
