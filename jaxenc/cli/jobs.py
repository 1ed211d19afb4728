"""A Run made ready on this machine: its data opened, its mesh laid out, its files named, other runs refused."""

import dataclasses
import json
import pathlib

from jaxenc import config
from jaxenc.checkpoint import refusals, restore
from jaxenc.checkpoint.restore import Start
from jaxenc.data import manifest as manifests
from jaxenc.data import sources
from jaxenc.data.files import write_bytes
from jaxenc.data.pipeline import Batches, Order, Pass
from jaxenc.errors import UserError
from jaxenc.models.count import parameter_count
from jaxenc.run import Run
from jaxenc.sharding import mesh as meshes
from jaxenc.train.job import Job
from jaxenc.train.phases import Phase
from jaxenc.train.state import parameters

CONFIG, MANIFEST, TOKENIZER = "config.json", "manifest.json", "tokenizer"


def prepare(run: Run, workdir: pathlib.Path) -> Job:
    """Opens the data that the run names and lays out the mesh. Raises UserError for whatever does not fit together."""
    if not run.data.path:
        raise UserError("data.path is not set: build data with `jaxenc data` and pass --config.data.path=DIR")
    path = pathlib.Path(run.data.path)
    manifest = manifests.read(path)
    run = run.with_vocabulary(manifest.tokenizer)

    def batches(split: str, phase: Phase, rows: int) -> Batches:
        wanted = dataclasses.replace(run.data, length=phase.length)
        source = sources.open_source(wanted, split, run.train.seed, evaluation=split != "train")
        return Order(source, rows, run.train.seed) if split == "train" else Pass(source, rows, run.eval.rows)

    files = {
        CONFIG: json.dumps(config.to_dict(run), indent=1).encode(),
        MANIFEST: (path / MANIFEST).read_bytes(),
        TOKENIZER: path / TOKENIZER,
    }
    return Job(run, manifest.tokenizer, meshes.make(run.mesh), batches, workdir, files)


def refuse_other_run(job: Job, workdir: pathlib.Path) -> None:
    """Raises UserError when the work directory holds another run: a field that may not change differs from its config.json."""
    path = workdir / CONFIG
    if path.exists():
        _refuse(json.loads(path.read_text()), json.loads((workdir / MANIFEST).read_text()), job)


def refuse_other_state(job: Job, step_dir: pathlib.Path) -> None:
    """Raises UserError when a checkpoint was written under another config, data set or tokenizer."""
    _refuse(restore.read_json(step_dir, CONFIG), restore.read_json(step_dir, MANIFEST), job)


def _refuse(saved_config: dict, saved_manifest: dict, job: Job) -> None:
    def facts(manifest: dict) -> dict:
        return {"data": {"fingerprint": manifest["fingerprint"]}, "tokenizer": manifest["tokenizer"]["fingerprint"]}

    refusals.refuse(facts(saved_manifest), facts(json.loads(job.files[MANIFEST])))
    free = (*refusals.MAY_CHANGE, "data.path", *(["train.steps"] if job.run.optim.schedule == "constant" else []))
    refusals.refuse(saved_config, config.to_dict(job.run), free)


def write_facts(job: Job, workdir: pathlib.Path) -> None:
    """Writes config.json and manifest.json of the run directory."""
    workdir.mkdir(parents=True, exist_ok=True)
    for name in (CONFIG, MANIFEST):
        write_bytes(workdir / name, job.files[name])


def describe(job: Job, start: Start) -> str:
    """One line that says what is about to run, where from and on what."""
    shapes, _ = parameters(job.objective(job.run.plan[0]))
    count = parameter_count(shapes, job.vocabulary.size)
    device = job.mesh.devices.flat[0].device_kind
    origin = {"fresh": "from scratch", "init": f"from the parameters of {start.path}"}.get(start.kind, f"{start.kind} {start.path}")
    return f"{count:,} parameters on {job.mesh.size} x {device} ({job.run.mesh.preset}), {origin}"
