"""A Run made ready on this machine: its data opened, its mesh laid out, its files named, other runs refused."""

import dataclasses
import functools
import json
import os
import pathlib
import secrets
import time
from collections.abc import Mapping
from typing import Any

import jax
from jax.sharding import Mesh

from jaxenc import config, tree
from jaxenc.checkpoint import refusals, restore
from jaxenc.checkpoint.restore import Start
from jaxenc.config import differences
from jaxenc.data import manifest as manifests
from jaxenc.data import pipeline, tokenizers
from jaxenc.data.manifest import SPLITS
from jaxenc.data.pipeline import Batches
from jaxenc.data.store import carried, open_split
from jaxenc.errors import UserError
from jaxenc.families.count import parameter_count
from jaxenc.files import read_json, user_errors, write_bytes
from jaxenc.heads import BUILT_IN, Head
from jaxenc.processes import barriers
from jaxenc.sharding import mesh as meshes
from jaxenc.sharding import partition
from jaxenc.training import phases, position
from jaxenc.training.job import Job
from jaxenc.training.phases import Phase
from jaxenc.training.run import Run, from_dict, to_json
from jaxenc.training.state import parameters

CONFIG, MANIFEST, TOKENIZER = "config.json", "manifest.json", "tokenizer"
# Seconds in which a file that one host wrote is seen by the others: file systems of networks remember for a while that it was not there.
SIGHT = 60


def prepare(run: Run, workdir: pathlib.Path, heads: Mapping[str, Head] = BUILT_IN) -> Job:
    """Opens the data that the run names and lays out the mesh. heads: those that its objective may name. Raises UserError for whatever does
    not fit together."""
    if not run.data.path:
        raise UserError("data.path is not set: build data with `jaxenc data` and pass --config.data.path=DIR")
    path = pathlib.Path(run.data.path)
    manifest = manifests.read(path)
    run = run.with_vocabulary(manifest.tokenizer)
    # Opened once: what is mapped into memory stays readable when the folder is renamed or unmounted under the run.
    opener = functools.cache(open_split)

    def batches(split: str, phase: Phase, rows: int) -> Batches:
        wanted = dataclasses.replace(run.data, length=phase.length)
        return pipeline.open_batches(wanted, split, rows, run.train.seed, run.eval.rows, opener)

    files = {CONFIG: to_json(run), **carried(path)}
    evaluates = manifest.splits["held_out"].tokens > 0
    return Job(run, manifest.tokenizer, meshes.make(run.mesh), batches, evaluates, workdir, files, heads)


def check(job: Job) -> None:
    """Raises UserError for what would stop the run later: rows, batches or parameters that do not fit. Nothing is written yet."""
    for phase in job.run.plan:
        if not any(job.objective(phase).coef.values()):
            raise UserError(f"objective.kind={job.run.objective.kind} has no loss as it is configured: choose what to train on")
        partition.check_rows(phase.batch, job.run.train.microbatches, job.mesh)
        for split in SPLITS if job.evaluates else SPLITS[:1]:
            check_rows(job, split, phase)
        check_carry(job, phase)
    job.layout(job.run.plan[0])


def check_rows(job: Job, split: str, phase: Phase) -> None:
    """Raises UserError where the rows of a split lack a field that the objective reads, or run in a direction that it does not read."""
    reads, fields = set(job.objective(phase).reads), set(job.batches(split, phase, phase.batch).fields)
    missing = sorted(reads - fields)
    if missing == ["word_starts"]:
        raise UserError(f"data {job.run.data.path}: made before word_starts, which the objective reads: build the data again")
    if missing and all(name.endswith("characters") for name in missing):
        mend = "make one with `jaxenc tokenizer --type characters` and build the data with it, or set model.input to tokens"
        raise UserError(f"data {job.run.data.path}: its tokenizer has no characters of words, which the model reads: {mend}")
    if missing:
        held = f"the objective reads {', '.join(missing)}, which data.rows={job.run.data.rows} lacks"
        raise UserError(f"{held}: set data.rows{' to sentences' if 'reverse_targets' in missing else ''}")
    if "direction" in fields - reads:
        backward = f"half of the rows of data.rows={job.run.data.rows} run backward"
        raise UserError(f"{backward}, which objective.kind={job.run.objective.kind} does not read: set data.rows to text")


def check_carry(job: Job, phase: Phase) -> None:
    """Raises UserError where what the slots carry from step to step is by itself more than the devices hold."""
    carry = jax.eval_shape(lambda: job.objective(phase).carry(phase.batch))
    share, room = tree.nbytes(carry) / (job.mesh.shape["data"] * job.mesh.shape["fsdp"]), _room(job.mesh)
    if share > room:
        fields = " and ".join([f"objective.{name}" for name in job.run.objective.carried] + ["train.batch"])
        held = f"the slots carry {share / 1e6:,.1f} MB from step to step on each device, which has {room / 1e6:,.1f} MB"
        raise UserError(f"{fields}: {held}: lower one of them or use more devices")


def _room(mesh: Mesh) -> float:
    """Bytes of memory of one device; of a CPU's, its share of the machine's."""
    limit = (mesh.local_devices[0].memory_stats() or {}).get("bytes_limit", 0)
    return limit or os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / len(mesh.local_devices)


def check_data(job: Job) -> None:
    """Compares every byte of the data with the manifest's checksums, once in the life of a run. Raises UserError for a changed file."""
    open_split(job.run.data.path, SPLITS[0], verify=True)


def warnings(job: Job) -> list[str]:
    """A line for each thing that a run is allowed and rarely meant."""
    lines = [
        f"warning: optim.warmup is {phase.warmup} and the schedule has {phase.schedule_steps} steps: the rate never reaches {phase.lr:g}"
        for phase in job.run.plan
        if phase.warmup >= phase.schedule_steps
    ]
    return lines if job.evaluates else [*lines, "warning: the data holds no held-out documents: this run is not evaluated"]


def refuse_other_process(job: Job) -> None:
    """Raises UserError, which names each field, where this process was started with another config or other data than process 0: from a
    seed of its own each would go on with parameters of its own, and no later check sees it. `data.path` may differ."""
    facts = {"config": json.loads(job.files[CONFIG]), "data": {"fingerprint": json.loads(job.files[MANIFEST]).get("fingerprint")}}
    facts["config"]["data"].pop("path")
    first = barriers.from_primary("facts", lambda: facts)
    index = jax.process_index()
    parts = [
        f"{path.removeprefix('config.')} is {theirs} in process 0 and {ours} in process {index}"
        for path, theirs, ours in differences(first, facts)
    ]
    if parts:
        raise UserError(f"{'; '.join(parts)}: start every process with the same config and data")


def refuse_other_folder(workdir: pathlib.Path) -> None:
    """Raises UserError where this process does not see within SIGHT seconds what process 0 writes in `workdir`: each would save its part of
    a checkpoint where the others never look."""
    if jax.process_count() == 1:
        return
    mark = workdir / ".processes"

    def write() -> str:
        word = secrets.token_hex(8)
        with user_errors(mark, "free some space or choose another --workdir"):
            mark.write_text(word)
        return word

    word, end = barriers.from_primary("folder", write), time.monotonic() + SIGHT
    try:
        while not (mark.is_file() and mark.read_text() == word):
            if time.monotonic() > end:
                told = f"process {jax.process_index()} does not see there what process 0 writes"
                raise UserError(f"{workdir}: {told}: give all processes one --workdir that they share")
            time.sleep(0.1)
        barriers.barrier("folder")
    finally:
        if barriers.is_primary():
            mark.unlink(missing_ok=True)


def refuse_other_run(job: Job, workdir: pathlib.Path) -> None:
    """Raises UserError when the work directory holds another run: a field that may not change differs from its config.json."""
    if (workdir / CONFIG).exists():
        saved = read_json(workdir / CONFIG, "start in a new work directory")
        # The two are written one after the other, so a run that was killed in between has the first alone.
        manifest = read_json(workdir / MANIFEST, "start in a new work directory") if (workdir / MANIFEST).exists() else None
        _refuse(saved, manifest, job)


def refuse_other_state(job: Job, step_dir: pathlib.Path) -> None:
    """Raises UserError when a checkpoint was written under another config, data set or tokenizer."""
    _refuse(restore.read_json(step_dir, CONFIG), restore.read_json(step_dir, MANIFEST), job)


def refuse_other_tokenizer(job: Job, step_dir: pathlib.Path) -> None:
    """Raises UserError when a checkpoint's ids mean other pieces than the data's: equal shapes would let them pass."""
    if _fingerprint(step_dir) != job.vocabulary.fingerprint:
        size = from_dict(restore.read_json(step_dir, CONFIG)).model.vocab_size
        other = f"another tokenizer ({job.vocabulary.size:,} pieces) than checkpoint {step_dir} ({size:,})"
        mend = f"build it with {step_dir / TOKENIZER}, or add pieces to the checkpoint with `jaxenc resize-vocab`"
        raise UserError(f"data {job.run.data.path}: it was made with {other}: {mend}")


def refuse_other_carry(job: Job, start: Start) -> None:
    """Raises UserError, which names the fields, when a run that goes on from the whole state at `start` carries something larger or
    smaller from step to step than the run that wrote it."""
    saved, run = from_dict(restore.read_json(start.path, CONFIG)), job.run
    sizes = lambda run: {name: getattr(run.objective, name) for name in job.run.objective.carried}
    carries = bool(jax.eval_shape(lambda: job.objective(run.plan[0]).carry(1))) or any(sizes(saved).values())
    if type(saved.objective) is type(run.objective) and carries:
        batch = lambda run: phases.saved_by(run.plan, start.step).batch
        shape = lambda run: {"objective": sizes(run), "train": {"batch": batch(run), "precision": run.train.precision}}
        refusals.refuse(shape(saved), shape(run), ())


def refuse_other_rows(job: Job, start: Start) -> None:
    """Raises UserError where a run that goes on from the whole state at `start` would not read on from the row where that one stood."""
    saved, data = from_dict(restore.read_json(start.path, CONFIG)), restore.read_json(start.path, MANIFEST)
    ours = json.loads(job.files[MANIFEST])
    position.refuse_other_rows(saved, data.get("fingerprint", ""), job.run, ours["fingerprint"], start.step)


def _fingerprint(step_dir: pathlib.Path) -> str | None:
    """The tokenizer's of a checkpoint: what its run's data said, or, where no data made it, that of its own tokenizer."""
    if (step_dir / MANIFEST).exists():
        return _tokenizer_of(restore.read_json(step_dir, MANIFEST))
    if (step_dir / TOKENIZER).exists():
        return tokenizers.load(step_dir / TOKENIZER).vocabulary.fingerprint
    raise UserError(f"checkpoint {step_dir} has no tokenizer, so its ids may mean other pieces than the data's: convert it with one")


def _tokenizer_of(manifest: Mapping[str, Any]) -> str | None:
    """The tokenizer's fingerprint in a checkpoint's manifest, None where it has none."""
    tokenizer = manifest.get("tokenizer")
    return tokenizer.get("fingerprint") if isinstance(tokenizer, dict) else None


def _refuse(saved_config: dict, saved_manifest: dict | None, job: Job) -> None:
    """Raises UserError for another config, and, where the manifest is there, for another data set or tokenizer."""

    def facts(manifest: dict) -> dict:
        return {"data": {"fingerprint": manifest.get("fingerprint")}, "tokenizer": _tokenizer_of(manifest)}

    if saved_manifest is not None:
        refusals.refuse(facts(saved_manifest), facts(json.loads(job.files[MANIFEST])))
    free = (*refusals.MAY_CHANGE, "data.path", *(["train.steps"] if not job.run.uses_steps else []))
    # Read as a Run first: a field that is younger than the checkpoint has its default there.
    refusals.refuse(config.to_dict(from_dict(saved_config)), config.to_dict(job.run), free)


def write_facts(job: Job, workdir: pathlib.Path) -> None:
    """Writes config.json and manifest.json of the run directory."""
    for name in (CONFIG, MANIFEST):
        with user_errors(workdir / name, "free some space or choose another work directory"):
            write_bytes(workdir / name, job.files[name])


def describe(job: Job, start: Start) -> str:
    """One line that says what is about to run, where from and on what."""
    objective = job.objective(job.run.plan[0])
    count = parameter_count(parameters(objective)[0], job.vocabulary.size, objective.vocabulary)
    device = job.mesh.devices.flat[0].device_kind
    origin = {"fresh": "from scratch", "init": f"from the parameters of {start.path}"}.get(start.kind, f"{start.kind} {start.path}")
    return f"{count:,} parameters on {job.mesh.size} x {device} ({job.run.mesh.preset}), {origin}"
