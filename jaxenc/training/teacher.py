"""The teacher of a run: a model whose parameters an objective reads and never trains.

It is named by `objective.teacher`. A run copies the parameters once, to frozen/<fingerprint>/0 of its directory, before its first step, and
names the teacher in a teacher.json of its own and of each checkpoint. So a checkpoint holds what was trained, and neither a resume nor an
evaluation needs the folder that the teacher came from.
"""

import dataclasses
import json
import pathlib

from jaxenc import config
from jaxenc.checkpoint import migrate, restore
from jaxenc.checkpoint.manager import Manager
from jaxenc.checkpoint.retention import CheckpointConfig
from jaxenc.checkpoint.verify import CHECKSUMS, newest_valid
from jaxenc.errors import UserError
from jaxenc.families import Models
from jaxenc.families.contract import ModelConfig
from jaxenc.files import read_json, sha256, user_errors
from jaxenc.objectives.base import ObjectiveConfig
from jaxenc.processes import barriers
from jaxenc.training.run import Run, from_dict, of_checkpoint, to_json
from jaxenc.tree import Tree

RECORD, FROZEN, FIELD = "teacher.json", "frozen", "objective.teacher"


@dataclasses.dataclass(frozen=True)
class Teacher:
    """model: its config. fingerprint: sha256 of the CHECKSUMS.json of its checkpoint, which lists every file there with its own. step_dir:
    that checkpoint's folder, None for a teacher that is known from a record alone."""

    model: ModelConfig
    fingerprint: str
    step_dir: pathlib.Path | None = None

    def to_json(self) -> bytes:
        """The record; `recorded` reads it."""
        data = {"format": migrate.FORMAT, "fingerprint": self.fingerprint, "model": config.to_dict(self.model)}
        return json.dumps(data, indent=1).encode()


def named(objective: ObjectiveConfig, models: Models, verify: bool = True) -> Teacher:
    """The teacher in the run directory, or the checkpoint, that `objective.teacher` names. verify: compare every byte with its checksum.
    Raises UserError where there is none, with the command that makes one of a folder of another project."""
    if not objective.teacher:
        raise UserError(f"{FIELD} is not set: name a run directory or one of its checkpoints with --config.{FIELD}=DIR")
    step_dir = restore.find(pathlib.Path(objective.teacher), verify, FIELD)
    with user_errors(step_dir, f"name another {FIELD}"):
        return Teacher(of_checkpoint(step_dir, models).model, sha256(step_dir / CHECKSUMS), step_dir)


def model_of(objective: ObjectiveConfig, models: Models) -> ModelConfig | None:
    """The model of the teacher that `objective` names, None for an objective without a teacher. Raises UserError as `named`."""
    return named(objective, models, verify=False).model if objective.taught else None


def recorded(folder: pathlib.Path, models: Models) -> Teacher | None:
    """The teacher that a run directory or a checkpoint's folder has on record, None where it has none. Raises UserError for a damaged
    record."""
    path = folder / RECORD
    if not path.exists():
        return None
    data = read_json(path, "copy it from one of the checkpoints")
    fingerprint, format_ = data.get("fingerprint"), {"format": data.get("format")}
    if not isinstance(fingerprint, str) or not fingerprint.isalnum():
        raise UserError(f"{path}: names no fingerprint: copy it from one of the checkpoints")
    return Teacher(from_dict({**format_, "model": data.get("model")}, str(path), models).model, fingerprint)


def of_run(run: Run, folder: pathlib.Path, models: Models) -> Teacher | None:
    """The teacher of a run: what `folder`, its directory or one of its checkpoints, has on record, else the one that its objective names;
    None for an objective without a teacher. Raises UserError as `named`."""
    if not run.objective.taught:
        return None
    return recorded(folder, models) or named(run.objective, models, run.checkpoint.verify)


def exists(objective: ObjectiveConfig) -> bool:
    """Whether there is anything where `objective.teacher` says."""
    return bool(objective.teacher) and pathlib.Path(objective.teacher).exists()


def read(teacher: Teacher, run: Run, workdir: pathlib.Path, models: Models, abstract: Tree) -> Tree:
    """The teacher's parameters in the structure of `abstract`, placed as it says: from the copy in the run directory, else from the folder
    that the objective names.

    Raises UserError where neither is whole, and where that folder holds another model.
    """
    copy, verify = _copy(teacher, workdir), run.checkpoint.verify
    step = newest_valid(copy, verify, set_aside=False)
    if step is not None:
        return restore.restore_params(copy / str(step), abstract)
    if teacher.step_dir is None and not exists(run.objective):
        gone = f"{copy} holds no whole copy of the teacher and {FIELD} {run.objective.teacher!r} is not there"
        raise UserError(f"{gone}: put it back there, or name its new place with --config.{FIELD}=DIR of `jaxenc pretrain`")
    source = teacher if teacher.step_dir else named(run.objective, models, verify)
    refuse_other(teacher, source, workdir)
    if missing := restore.lacking(source.step_dir, abstract):
        raise UserError(f"{FIELD} {source.step_dir}: it has no {', '.join(missing)}: name a model that was pretrained with them")
    return restore.restore_params(source.step_dir, abstract)


def keep(teacher: Teacher, run: Run, workdir: pathlib.Path, params: Tree) -> None:
    """Copies the teacher's parameters into the run directory, unless a whole copy is there; complete or not at all. Every process calls it.
    The copy is a checkpoint without a tokenizer. A damaged one is set aside. Raises UserError for a write that fails."""
    copy = _copy(teacher, workdir)
    if not barriers.from_primary("teacher", lambda: newest_valid(copy, run.checkpoint.verify, set_aside=True) is not None):
        with Manager(copy, CheckpointConfig()) as checkpoints:
            checkpoints.save(0, {"params": params}, {"config.json": to_json(Run(model=teacher.model))})


def refuse_other(teacher: Teacher, other: Teacher | None, where: pathlib.Path) -> None:
    """Raises UserError unless `other` is `teacher`. where: the folder of the run that has learned from `teacher`."""
    if other is None or other.fingerprint != teacher.fingerprint:
        ours, theirs = teacher.fingerprint[:12], f"{other.fingerprint[:12]}... in {other.step_dir}" if other else "none"
        what = f"{FIELD}: {where} learns from the teacher {ours}..., and this is {theirs}"
        raise UserError(f"{what}: name the checkpoint that it began with, or start in a new work directory")


def _copy(teacher: Teacher, workdir: pathlib.Path) -> pathlib.Path:
    return workdir / FROZEN / teacher.fingerprint
