"""Whether a run may resume the run in its work directory; if not, how else it can start from that run."""

import json
import pathlib
import shlex
from collections.abc import Mapping
from typing import Any

from jaxenc import config
from jaxenc.checkpoint import restore
from jaxenc.checkpoint.restore import Start
from jaxenc.checkpoint.verify import CHECKPOINTS, newest_valid
from jaxenc.errors import UserError
from jaxenc.files import read_json
from jaxenc.training import phases, position, refusals
from jaxenc.training.begin import fresh_heads
from jaxenc.training.job import Job
from jaxenc.training.prepare import CONFIG, MANIFEST
from jaxenc.training.refusals import MAY_CHANGE
from jaxenc.training.run import Run, of_file
from jaxenc.training.state import without

# The fields that say which data is read and in which shares.
DATA = ("data.path", "data.mixture", "data.weights", "data.exponent")


def refuse_other_run(job: Job, workdir: pathlib.Path) -> None:
    """Raises UserError when the work directory holds another run: a field that may not change differs from its config.json."""
    if (workdir / CONFIG).exists():
        saved = read_json(workdir / CONFIG, "start in a new work directory")
        # config.json is written first, so a run that was killed before the second file was written has only it.
        manifest = read_json(workdir / MANIFEST, "start in a new work directory") if (workdir / MANIFEST).exists() else None
        _refuse(of_file(saved, workdir / CONFIG, job.models), manifest, job, workdir)


def refuse_other_state(job: Job, step_dir: pathlib.Path) -> None:
    """Raises UserError when a checkpoint of the work directory was written under another config, data set or tokenizer."""
    saved = of_file(restore.read_json(step_dir, CONFIG), step_dir / CONFIG, job.models)
    _refuse(saved, restore.read_json(step_dir, MANIFEST), job, step_dir.parent.parent)


def _refuse(saved: Run, manifest: Mapping[str, Any] | None, job: Job, workdir: pathlib.Path) -> None:
    if found := _changed(saved, manifest, job):
        raise UserError(refusals.both_values(found), workdir, f"set them back, or {how_else(job, workdir)}")


def _changed(saved: Run, manifest: Mapping[str, Any] | None, job: Job) -> list[tuple[str, Any, Any]]:
    """(field, saved value, value now) of all that differs and may not. For other data it names the fields that the user set, or the data's
    fingerprint where none of them differs. manifest: of the saved run's data, None where it is not there."""
    ours = json.loads(job.files[MANIFEST])
    other_tokenizer = manifest is not None and refusals.tokenizer_of(manifest) != refusals.tokenizer_of(ours)
    if other_tokenizer:
        # Otherwise the numbers that follow from the tokenizer would be named as if the user had set them.
        saved = saved.with_vocabulary(job.vocabulary)
    free = (*MAY_CHANGE, *DATA[:2], "objective.teacher", *(["train.steps"] if not job.run.uses_steps else []))
    # Parsed Runs are compared, so that a field which did not exist when the checkpoint was written has its default.
    theirs, here = config.to_dict(saved), config.to_dict(job.run)
    found = refusals.refused(theirs, here, free)
    if manifest is not None and manifest.get("fingerprint") != ours["fingerprint"]:
        if _parts(manifest) != _parts(ours):
            found = [item for item in config.differences(theirs, here) if item[0] in DATA[:2]] + found
        if not any(path in DATA for path, _, _ in found):
            found.append(("data.fingerprint", manifest.get("fingerprint"), ours["fingerprint"]))
    if other_tokenizer:
        found.append(("tokenizer", refusals.tokenizer_of(manifest), refusals.tokenizer_of(ours)))
    return found


def _parts(manifest: Mapping[str, Any]) -> list[Any]:
    """The fingerprints of the data folders of a manifest, in order."""
    return [part.get("fingerprint") for part in manifest.get("parts", [manifest])]


def how_else(job: Job, workdir: pathlib.Path) -> str:
    """What a user can do to train the run of `job`, for a message: keep as much of the newest checkpoint in `workdir` as fits, which is its
    whole state, its parameters, or nothing."""
    try:
        return _kept(job, workdir)
    except UserError:
        return "choose another --workdir"


def _kept(job: Job, workdir: pathlib.Path) -> str:
    step = newest_valid(workdir / CHECKPOINTS, check=False, set_aside=False)
    if step is None:
        return "choose another --workdir"
    start, quoted = Start("continue", workdir / CHECKPOINTS / str(step), step), shlex.quote(str(workdir))
    if not refusals.same_tokenizer(job, start.path):
        return refusals.tokenizer_advice(start.path)
    if _state_fits(job, start):
        keep = f"keep its state in a new --workdir with --continue-from {quoted}"
        advice = None if step >= job.run.plan[-1].end else _rows_advice(job, start)
        if advice is not None:
            return f"{keep}{advice}"
    if _params_fit(job, start):
        return f"keep its parameters alone, from step 0 in a new --workdir, with --init-from {quoted}"
    return "start from scratch in a new --workdir: its parameters do not fit this run"


def _state_fits(job: Job, start: Start) -> bool:
    """Whether the run can continue from the state at `start`, apart from the rows."""
    objective = job.objective(job.run.plan[0])
    try:
        refusals.refuse_continuing_with_another_teacher(job, start.path)
        refusals.refuse_other_carry(job, start)
        restore.check_state(start.path, job.layout(phases.saved_by(job.run.plan, start.step)).abstract.without(objective.frozen))
    except UserError:
        return False
    return True


def _rows_advice(job: Job, start: Start) -> str:
    """'' where a run that continues at `start` goes on with the next row, otherwise how it begins a phase of its own there."""
    try:
        refusals.refuse_other_rows(job, start)
    except UserError:
        before = phases.saved_by(of_file(restore.read_json(start.path, CONFIG), start.path / CONFIG, job.models).plan, start.step)
        after = job.run.plan[phases.locate(job.run.plan, start.step)]
        return f"; {position.own_phase(job.run, before, after, start.step)}"
    return ""


def _params_fit(job: Job, start: Start) -> bool:
    """Whether the run can start from the parameters at `start`; heads that are not there start fresh."""
    objective = job.objective(job.run.plan[0])
    wanted = job.layout(job.run.plan[0]).abstract.without(objective.frozen).all_params
    try:
        restore.check_params(start.path, without(wanted, fresh_heads(Start("init", start.path, 0), objective)))
    except UserError:
        return False
    return True
