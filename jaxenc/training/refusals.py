"""Compares a run with the checkpoint that it continues from, its teacher and its other processes, and refuses what may not differ."""

import difflib
import fnmatch
import json
import pathlib
import re
import secrets
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import jax

from jaxenc import config
from jaxenc.checkpoint import restore
from jaxenc.checkpoint.restore import Start
from jaxenc.config import differences
from jaxenc.data import tokenizers
from jaxenc.errors import UserError
from jaxenc.files import user_errors, write_bytes
from jaxenc.processes import barriers, versions
from jaxenc.processes.visible import sees, unseen
from jaxenc.training import phases, position
from jaxenc.training import teacher as teachers
from jaxenc.training.job import Job
from jaxenc.training.prepare import CONFIG, MANIFEST, TOKENIZER
from jaxenc.training.run import Run, of_file

MAY_CHANGE = ("mesh.*", "train.microbatches", "checkpoint.*", "eval.*", "log.*")
# Seconds until a file that one host wrote is visible to the others: network file systems cache for a while that it did not exist.
VISIBLE_WITHIN = 60


def refuse(saved: Mapping[str, Any], now: Mapping[str, Any], may_change: Sequence[str] = MAY_CHANGE) -> None:
    """Raises UserError that names each field of `refused` with both values."""
    if found := refused(saved, now, may_change):
        raise UserError(both_values(found), "", "set them back, or start with --init-from, which takes the parameters only")


def refused(saved: Mapping[str, Any], now: Mapping[str, Any], may_change: Sequence[str] = MAY_CHANGE) -> list[tuple[str, Any, Any]]:
    """(dotted path, saved value, value now) of each field that differs and matches no pattern of `may_change`, where '*' matches anything.

    A caller whose schedule does not use `train.steps` adds that name to MAY_CHANGE."""
    return [item for item in differences(saved, now) if not _may_change(item[0], may_change)]


def refuse_fixed(paths: Iterable[str]) -> None:
    """Raises UserError for the first of the dotted `paths` that an evaluation may not set: a field that may not change on a resume, or one
    that no run has."""
    run = config.to_dict(Run())
    free = [path for path, _ in config.flatten(run) if _may_change(path, MAY_CHANGE)]
    for path in paths:
        if path not in free:
            close = difflib.get_close_matches(path, free, n=3)
            advice = f"did you mean {', '.join(close)}?" if close else f"an evaluation takes {', '.join(free)}"
            # A part that comes in kinds, such as the model, may have fields that its default kind lacks.
            part, _, name = path.partition(".")
            known = name and part in run and ("kind" in run[part] or name.split(".")[0] in run[part])
            raise UserError("the checkpoint decides it in an evaluation" if known else "no such field", f"config.{path}", advice)


def _may_change(path: str, may_change: Sequence[str]) -> bool:
    return any(fnmatch.fnmatchcase(path, pattern) for pattern in may_change)


def both_values(found: Sequence[tuple[str, Any, Any]]) -> str:
    """The fields of `refused` with both values, for a message."""
    return "; ".join(f"checkpoint {path} {_shown(old)}, this run's {_shown(new)}" for path, old, new in found)


def _shown(value: Any) -> str:
    """`value` as a message shows it; a sha256 by its first 12 digits."""
    text = str(value)
    return "(not set)" if value == "" else text[:12] + "..." if re.fullmatch("[0-9a-f]{64}", text) else text


def refuse_other_process(job: Job) -> None:
    """Raises ErrorOfAll, which names each difference with both values, where a process runs other software, or was started with another
    config or other data, than process 0: with another seed, for example, its parameters would differ, and no later check would notice.
    `data.path`, `data.mixture` and `objective.teacher` may differ as long as the data and the teacher are the same."""
    if jax.process_count() == 1:
        return
    barriers.must_be_equal("software", versions.installed(), "install the same versions for every process")
    facts = {**json.loads(job.files[CONFIG]), "data fingerprint": json.loads(job.files[MANIFEST]).get("fingerprint")}
    for name in ("path", "mixture"):
        facts["data"].pop(name)
    facts["objective"].pop("teacher", None)
    facts["teacher"] = job.teacher.fingerprint if job.teacher else ""
    barriers.must_be_equal("facts", facts, "start every process with the same config and data")


def refuse_other_folder(workdir: pathlib.Path) -> None:
    """Raises UserError where this process does not see within VISIBLE_WITHIN seconds what process 0 writes in `workdir`: each process would
    save its part of a checkpoint in a folder that the others never read."""
    if jax.process_count() == 1:
        return
    mark = workdir / ".processes"

    def write() -> str:
        token = secrets.token_hex(8)
        with user_errors(mark, "free some space or choose another --workdir"):
            write_bytes(mark, token.encode())
        return token

    token = barriers.from_primary("folder", write)
    try:
        if not sees(mark.read_bytes, token.encode(), VISIBLE_WITHIN):
            raise unseen(workdir)
        barriers.barrier("folder")
    finally:
        if barriers.is_primary():
            mark.unlink(missing_ok=True)


def refuse_other_teacher(job: Job, workdir: pathlib.Path) -> None:
    """Raises UserError where the run in `workdir` was distilled from another teacher than the one that `objective.teacher` names (a folder
    that no longer exists is not compared), and in a new run for a teacher with another tokenizer than the data's."""
    if job.teacher and job.teacher.step_dir is not None:
        _refuse_tokenizer_of_teacher(job, job.teacher.step_dir)
    elif job.teacher and teachers.exists(job.run.objective):
        teachers.refuse_other(job.teacher, teachers.find(job.run.objective, job.models, job.run.checkpoint.verify), workdir)


def refuse_continuing_with_another_teacher(job: Job, step_dir: pathlib.Path) -> None:
    """Raises UserError where the run that wrote a checkpoint had another teacher than this run, or none."""
    if job.teacher is None:
        return
    other = teachers.read_record(step_dir, job.models)
    if other is None or other.fingerprint != job.teacher.fingerprint:
        theirs = f"was distilled from {other.short}" if other else "has no teacher"
        raise UserError(f"{theirs}, and {teachers.FIELD} is {job.teacher.short}", step_dir, "name the same teacher, or use --init-from")


def refuse_other_tokenizer(job: Job, step_dir: pathlib.Path) -> None:
    """Raises UserError when a checkpoint was trained with another tokenizer than the data's; the shapes may be equal, so nothing else would
    notice."""
    if not same_tokenizer(job, step_dir):
        what = f"made with another tokenizer ({job.vocabulary.size:,} pieces) than checkpoint {step_dir} ({_pieces(job, step_dir):,})"
        raise UserError(what, f"data {job.run.data.named}", tokenizer_advice(step_dir))


def same_tokenizer(job: Job, step_dir: pathlib.Path) -> bool:
    """Whether a checkpoint was trained with the tokenizer of the data. Raises UserError for a checkpoint without a tokenizer."""
    return _fingerprint(step_dir) == job.vocabulary.fingerprint


def tokenizer_advice(step_dir: pathlib.Path) -> str:
    """What to do where the data has another tokenizer than a checkpoint."""
    command = f"jaxenc resize-vocab --model {shlex.quote(str(step_dir))} --add WORDS --out LARGER"
    grown = f"add pieces with `{command}`, build the data with LARGER/{TOKENIZER} and start with --init-from LARGER"
    return f"build the data with {step_dir / TOKENIZER}, or {grown}"


def _refuse_tokenizer_of_teacher(job: Job, step_dir: pathlib.Path) -> None:
    if not same_tokenizer(job, step_dir):
        other = f"({_pieces(job, step_dir):,} pieces) than data {job.run.data.named} ({job.vocabulary.size:,})"
        advice = f"build the data with {step_dir / TOKENIZER}, or name a teacher that was trained with the tokenizer of the data"
        raise UserError(f"the teacher has another tokenizer {other}", f"{teachers.FIELD} {step_dir}", advice)


def _pieces(job: Job, step_dir: pathlib.Path) -> int:
    return _saved(step_dir, job).model.pieces


def refuse_other_table(job: Job, step_dir: pathlib.Path) -> None:
    """Raises UserError when the token table of a checkpoint has another number of rows than this run's. Shapes are padded and may be equal,
    so nothing else would notice that rows are lost."""
    saved, model = _saved(step_dir, job).model, job.run.model
    if saved.vocab_size != model.vocab_size:
        rows = f"its token table has {saved.vocab_size:,} rows for {saved.pieces:,} pieces and this run's {model.vocab_size:,}"
        raise UserError(rows, f"checkpoint {step_dir}", f"set model.spare_rows to {saved.spare_rows}, or use the config.json of its run")


def refuse_other_carry(job: Job, start: Start) -> None:
    """Raises UserError, which names the fields, when the carry of a run that continues from the full state at `start` has another size than
    that of the run that wrote the state."""
    saved, run = _saved(start.path, job), job.run
    sizes = lambda run: {name: getattr(run.objective, name) for name in job.run.objective.carried}
    carries = bool(jax.eval_shape(lambda: job.objective(run.plan[0]).carry(1))) or any(sizes(saved).values())
    if type(saved.objective) is type(run.objective) and carries:
        batch = lambda run: phases.saved_by(run.plan, start.step).batch
        shape = lambda run: {"objective": sizes(run), "train": {"batch": batch(run), "precision": run.train.precision}}
        refuse(shape(saved), shape(run), ())


def refuse_other_rows(job: Job, start: Start) -> None:
    """Raises UserError where a run that continues from the state at `start` would skip or repeat rows of its data."""
    saved, data = _saved(start.path, job), restore.read_json(start.path, MANIFEST)
    ours = json.loads(job.files[MANIFEST])
    position.refuse_other_rows(saved, data.get("fingerprint", ""), job.run, ours["fingerprint"], start.step)


def _saved(step_dir: pathlib.Path, job: Job) -> Run:
    """The run that wrote a checkpoint."""
    return of_file(restore.read_json(step_dir, CONFIG), step_dir / CONFIG, job.models)


def _fingerprint(step_dir: pathlib.Path) -> str | None:
    """The fingerprint of a checkpoint's tokenizer: from its data manifest or, for a checkpoint without data, from its tokenizer folder."""
    if (step_dir / MANIFEST).exists():
        return tokenizer_of(restore.read_json(step_dir, MANIFEST))
    if (step_dir / TOKENIZER).exists():
        return tokenizers.load(step_dir / TOKENIZER).vocabulary.fingerprint
    raise UserError(
        "it has no tokenizer, so its ids may mean other pieces than the data's", f"checkpoint {step_dir}", "convert it with one"
    )


def tokenizer_of(manifest: Mapping[str, Any]) -> str | None:
    """The tokenizer's fingerprint in a checkpoint's manifest, None where it has none."""
    tokenizer = manifest.get("tokenizer")
    return tokenizer.get("fingerprint") if isinstance(tokenizer, dict) else None
