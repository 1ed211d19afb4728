"""Evaluates a checkpoint of a run on held-out rows: the implementation of `jaxenc evaluate` and `jaxenc.evaluate`."""

import dataclasses
import pathlib
import types
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from jaxenc.checkpoint import restore
from jaxenc.checkpoint.download import downloaded_by_all
from jaxenc.checkpoint.verify import CHECKPOINTS, steps
from jaxenc.data.folders import must_be_new_file
from jaxenc.errors import UserError
from jaxenc.families import MODELS, Models
from jaxenc.files import npz, user_errors, written
from jaxenc.heads import BUILT_IN, Head
from jaxenc.objectives.base import TEACHER
from jaxenc.processes import barriers
from jaxenc.processes.watch import Watch
from jaxenc.progress import Bars
from jaxenc.sharding.mesh import MeshConfig
from jaxenc.storage import AS_TEXT, is_url, must_be_local
from jaxenc.training import phases, prepare, refusals
from jaxenc.training import teacher as teachers
from jaxenc.training.assess import assessment
from jaxenc.training.job import Job
from jaxenc.training.override import override
from jaxenc.training.predict import predicted
from jaxenc.training.predict import predictions as predicted_rows
from jaxenc.training.run import Run, of_checkpoint
from jaxenc.training.state import without


@dataclasses.dataclass(frozen=True, eq=False)
class Evaluation:
    """The result of an evaluation.

    step: of the checkpoint. numbers: {name: number} over all rows. index: u32 [rows], the number of each row with a prediction, in rising
    order; predictions: {head: [rows, ...]} in that order, float32 or integers. Both are empty unless predictions were requested.
    """

    step: int
    numbers: Mapping[str, float]
    index: np.ndarray
    predictions: Mapping[str, np.ndarray]

    def save(self, path: pathlib.Path) -> None:
        """Writes `index` and the predictions of each head to a new .npz file, complete or not at all. Raises UserError when that fails."""
        with user_errors(path, "free some space or choose another --predictions"), written(path) as temporary, npz(temporary) as store:
            for name, array in {"index": self.index, **self.predictions}.items():
                store(name, array)


def check_place(path: pathlib.Path) -> None:
    """Raises UserError where `Evaluation.save` could not write `path`: another suffix, an existing file, a missing folder."""
    if path.suffix != ".npz":
        raise UserError("does not end in .npz", path, "choose another --predictions")
    must_be_new_file(path, "--predictions")


def evaluate(
    workdir: str | pathlib.Path,
    step: int = 0,
    data: str | pathlib.Path = "",
    batch: int = 0,
    mesh: str = "",
    heads: Mapping[str, Head] = BUILT_IN,
    models: Models = MODELS,
    predictions: bool = False,
    values: Mapping[str, Any] = types.MappingProxyType({}),
) -> Evaluation:
    """Evaluates a checkpoint on its held-out rows.

    step: of the checkpoint, 0 for the newest that verifies. data: another data folder with the same tokenizer, '' for the run's. batch:
    rows at a time, 0 for the run's; it does not change the result. mesh: a preset, '' for the run's; all devices are used. heads, models:
    as in `training.pretrain.pretrain`. predictions: also return the predictions of every row, in a second pass; the numbers stay the same,
    bit for bit. values: {dotted path: value} of fields that may change on a resume, such as {"mesh.preset": "fsdp", "eval.rows": 1000}.
    With several processes each calls it and gets all numbers and predictions. Raises UserError for a step or data that do not fit, for
    predictions of an objective that has none, for a field that the checkpoint decides, and for one that `batch` or `mesh` sets too.
    """
    path = find_checkpoint(workdir, step)
    run = override(for_evaluation(of_checkpoint(path, models), values, str(data), batch, mesh), values, models)
    if not run.data.folders:
        raise UserError("was saved without data", path, "name a folder made by `jaxenc data` with --data DIR")
    job = prepare.prepare(run, path, heads, models)
    refusals.refuse_other_tokenizer(job, path)
    return of_job(job, path, predictions)


def find_checkpoint(workdir: str | pathlib.Path, step: int, check: bool = True) -> pathlib.Path:
    """The checkpoint of a run directory to evaluate, as `evaluate` says, which process 0 chooses; of a URL, its copy on this machine.
    check: compare every byte with its checksum. Raises UserError for a step that is not there."""
    if is_url(workdir):
        return downloaded_by_all(str(workdir), check, "--workdir", step, frozen=True)
    must_be_local(workdir, "--workdir", AS_TEXT)
    workdir = pathlib.Path(workdir)
    directory = workdir / CHECKPOINTS

    def find() -> str:
        if step and step not in (there := steps(directory)):
            fix = f"use one of {', '.join(map(str, there))}" if there else "choose another --workdir"
            raise UserError(f"no such checkpoint in {directory}", f"--step {step}", fix)
        with Bars().shown("checking the checkpoint"):
            return str(restore.find(directory / str(step) if step else workdir, check, "--workdir"))

    return pathlib.Path(barriers.from_primary("checkpoint", find))


def of_job(job: Job, path: pathlib.Path, predictions: bool) -> Evaluation:
    """The evaluation of a checkpoint on the held-out rows of `job`, with the scores of its judge. Raises UserError as `evaluate`."""
    phase = phases.saved_by(job.run.plan, int(path.name))
    objective = job.objective(phase)
    if not objective.coef:
        raise UserError(
            f"objective.kind={job.run.objective.kind} has no loss and so no held-out numbers", fix="name a run that has trained"
        )
    prepare.check_rows(job, "held_out", phase)
    refusals.refuse_other_process(job)
    with jax.set_mesh(job.mesh), Watch() as watch:

        def reading() -> bool:
            watch.at("evaluation")
            return False

        layout = job.layout(phase)
        if predictions and not predicted(objective, layout, phase):
            raise UserError(
                f"objective.kind={job.run.objective.kind} has no head that predicts for a row",
                fix="leave out --predictions (in Python, predictions=True)",
            )
        with job.bars.shown(f"reading {path}"):
            params = restore.restore_params(path, without(layout.abstract.all_params, objective.frozen))
        if job.teacher:
            params[TEACHER] = teachers.load_params(job.teacher, job.run, path.parent.parent, job.models, layout.abstract.frozen[TEACHER])
        # As in `training.pretrain`: the first collective on CPUs waits for 30 s only.
        barriers.barrier("parameters")
        numbers = assessment(job, phase, objective, layout)(params, reading)
        if not predictions:
            return Evaluation(int(path.name), numbers, np.zeros(0, np.uint32), {})
        found = predicted_rows(job, phase, objective, layout, params, stopping=reading)
    return Evaluation(int(path.name), numbers, found.index, found.predictions)


def for_evaluation(run: Run, values: Mapping[str, Any], data: str, batch: int, mesh: str) -> Run:
    """The run with the data, batch and mesh of the evaluation. The sizes of the mesh follow from the devices of this machine. Raises
    UserError for one of `values` that may not change, and for one that `batch` or `mesh` sets too."""
    refusals.refuse_fixed(values)
    for path, name, given in (("eval.batch", "batch", batch), ("mesh.preset", "mesh", mesh)):
        if given and path in values:
            raise UserError(f"--{name} sets it too", f"config.{path}", "leave one of the two out")
    tensor = 1 if jax.device_count() % 2 else 0
    return dataclasses.replace(
        run,
        mesh=MeshConfig(mesh or run.mesh.preset, tensor=tensor),
        data=dataclasses.replace(run.data, path=data, mixture=(), weights=()) if data else run.data,
        eval=dataclasses.replace(run.eval, batch=batch or run.eval.batch),
    )
