"""The teacher of a run: a frozen model that an objective compares its own with.

`objective.teacher` names it. Before the first step a run copies the teacher's parameters once, to frozen/<fingerprint>/0 of its directory.
The run directory and each checkpoint identify the teacher in a teacher.json. So a checkpoint holds only what was trained, and neither a
resume nor an evaluation needs the teacher's original folder.
"""

import dataclasses
import json
import pathlib

from jaxenc import config
from jaxenc.checkpoint import migrate, restore
from jaxenc.checkpoint.manager import Manager
from jaxenc.checkpoint.retention import CheckpointConfig
from jaxenc.checkpoint.verify import CHECKSUMS, FROZEN, newest_valid
from jaxenc.checkpoint.workdir import Workdir
from jaxenc.errors import UserError
from jaxenc.families import Models
from jaxenc.families.contract import ModelConfig
from jaxenc.files import read_json, sha256, user_errors
from jaxenc.objectives.base import ObjectiveConfig
from jaxenc.processes import barriers
from jaxenc.storage import is_url
from jaxenc.training.run import Run, from_dict, of_checkpoint, to_json
from jaxenc.tree import Tree

RECORD, FIELD = "teacher.json", "objective.teacher"


@dataclasses.dataclass(frozen=True)
class Teacher:
    """model: its config. fingerprint: sha256 of the CHECKSUMS.json of its checkpoint, which has the sha256 of every file there. step_dir:
    that checkpoint's folder, None for a teacher that was read from a teacher.json."""

    model: ModelConfig
    fingerprint: str
    step_dir: pathlib.Path | None = None

    @property
    def short(self) -> str:
        """The fingerprint as messages show it."""
        return f"{self.fingerprint[:12]}..."

    def to_json(self) -> bytes:
        """The content of teacher.json; `read_record` reads it."""
        data = {"format": migrate.FORMAT, "fingerprint": self.fingerprint, "model": config.to_dict(self.model)}
        return json.dumps(data, indent=1).encode()


def find(objective: ObjectiveConfig, models: Models, verify: bool = True) -> Teacher:
    """The teacher in the run directory or checkpoint that `objective.teacher` names. verify: check the checksum of every file. Raises
    UserError where there is none; for a folder of another project the message has the command that converts it."""
    if not objective.teacher:
        raise UserError(f"{FIELD} is not set", fix=f"name a run directory or one of its checkpoints with --config.{FIELD}=DIR")
    step_dir = restore.find(objective.teacher, verify, FIELD)
    with user_errors(step_dir, f"name another {FIELD}"):
        return Teacher(of_checkpoint(step_dir, models).model, sha256(step_dir / CHECKSUMS), step_dir)


def model_of(objective: ObjectiveConfig, models: Models) -> ModelConfig | None:
    """The model of the teacher that `objective` names, None for an objective without a teacher. Raises UserError as `find`."""
    return find(objective, models, verify=False).model if objective.has_teacher else None


def read_record(folder: pathlib.Path, models: Models) -> Teacher | None:
    """The teacher in the teacher.json of a run directory or a checkpoint's folder, None without one. Raises UserError for a damaged
    file."""
    path = folder / RECORD
    if not path.exists():
        return None
    data = read_json(path, "copy it from one of the checkpoints")
    fingerprint, format_ = data.get("fingerprint"), {"format": data.get("format")}
    if not isinstance(fingerprint, str) or not fingerprint.isalnum():
        raise UserError("it has no fingerprint", path, "copy it from one of the checkpoints")
    return Teacher(from_dict({**format_, "model": data.get("model")}, str(path), models).model, fingerprint)


def of_run(run: Run, folder: pathlib.Path, models: Models) -> Teacher | None:
    """The teacher of a run: that of the teacher.json in `folder` (its directory or one of its checkpoints), else the one that its objective
    names; None for an objective without a teacher. Raises UserError as `find`."""
    if not run.objective.has_teacher:
        return None
    return read_record(folder, models) or find(run.objective, models, run.checkpoint.verify)


def exists(objective: ObjectiveConfig) -> bool:
    """Whether the path `objective.teacher` exists."""
    return bool(objective.teacher) and (is_url(objective.teacher) or pathlib.Path(objective.teacher).exists())


def load_params(teacher: Teacher, run: Run, workdir: pathlib.Path, models: Models, abstract: Tree) -> Tree:
    """The teacher's parameters with the structure and shardings of `abstract`: from the copy in the run directory, else from the folder
    that the objective names.

    Raises UserError where neither verifies, and where that folder holds another model.
    """
    copy, verify = _copy(teacher, workdir), run.checkpoint.verify
    step = newest_valid(copy, verify, set_aside=False)
    if step is not None:
        return restore.restore_params(copy / str(step), abstract)
    if teacher.step_dir is None and not exists(run.objective):
        gone = f"holds no complete copy of the teacher and {FIELD} {run.objective.teacher!r} does not exist"
        raise UserError(gone, copy, f"put it back there, or name its new place with --config.{FIELD}=DIR of `jaxenc pretrain`")
    source = teacher if teacher.step_dir else find(run.objective, models, verify)
    refuse_other(teacher, source, workdir)
    if missing := restore.lacking(source.step_dir, abstract):
        raise UserError(f"it has no {', '.join(missing)}", f"{FIELD} {source.step_dir}", "name a model that was pretrained with them")
    return restore.restore_params(source.step_dir, abstract)


def save_copy(teacher: Teacher, run: Run, workdir: pathlib.Path, params: Tree, work: Workdir = Workdir()) -> None:
    """Copies the teacher's parameters into the run directory unless a complete copy is there; complete or not at all. Every process calls
    it. The copy is a checkpoint without a tokenizer; a damaged one is set aside. work: publishes the copy. Raises UserError for a write
    that fails."""
    copy = _copy(teacher, workdir)
    if not barriers.from_primary("teacher", lambda: newest_valid(copy, run.checkpoint.verify, set_aside=True) is not None):
        with Manager(copy, CheckpointConfig(), upload=work.upload(copy)) as checkpoints:
            checkpoints.save(0, {"params": params}, {"config.json": to_json(Run(model=teacher.model))})


def refuse_other(teacher: Teacher, found: Teacher, workdir: pathlib.Path) -> None:
    """Raises UserError unless `found`, which has a folder, is `teacher`, that of the run in `workdir`."""
    if found.fingerprint != teacher.fingerprint:
        what = f"{found.step_dir} is {found.short}, and {workdir} was distilled from {teacher.short}"
        raise UserError(what, FIELD, "name the checkpoint that the run started with, or start in a new work directory")


def _copy(teacher: Teacher, workdir: pathlib.Path) -> pathlib.Path:
    return workdir / FROZEN / teacher.fingerprint
