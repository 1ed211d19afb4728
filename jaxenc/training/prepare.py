"""Prepares a Run on this machine: opens its data, builds its mesh, and checks what would otherwise fail later."""

import contextlib
import dataclasses
import functools
import os
import pathlib
from collections.abc import Mapping

import jax
from jax.sharding import Mesh

from jaxenc import tree
from jaxenc.checkpoint.restore import Start
from jaxenc.data import held_out, mixture, pipeline, word_lengths
from jaxenc.data.batch import FIELDS, empty
from jaxenc.data.manifest import SPLITS
from jaxenc.data.pipeline import Batches
from jaxenc.data.store import open_split
from jaxenc.errors import UserError
from jaxenc.families import MODELS, Models
from jaxenc.families.count import parameter_count
from jaxenc.files import user_errors, write_bytes
from jaxenc.heads import BUILT_IN, Head
from jaxenc.objectives import OBJECTIVES
from jaxenc.objectives.base import TEACHER, ObjectiveConfig
from jaxenc.sharding import mesh as meshes
from jaxenc.sharding import partition
from jaxenc.training import attention, weights_and_biases
from jaxenc.training import teacher as teachers
from jaxenc.training.job import Job, Programs
from jaxenc.training.phases import Phase
from jaxenc.training.run import Run, to_json
from jaxenc.training.run import check as check_run
from jaxenc.training.state import without

CONFIG, MANIFEST, TOKENIZER = "config.json", "manifest.json", mixture.TOKENIZER


def prepare(run: Run, workdir: pathlib.Path, heads: Mapping[str, Head] = BUILT_IN, models: Models = MODELS) -> Job:
    """Opens the data of the run, builds its mesh and finds its teacher, where it has one. heads: those that its objective may name; models:
    the kinds of model that this run, its teacher and the run it starts from may have. workdir: its directory, or one of its checkpoints.
    Raises UserError where data, run and devices do not fit together."""
    check_run(run, models)
    if not run.data.folders:
        raise UserError("data.path is not set", fix="build data with `jaxenc data` and pass --config.data.path=DIR")
    manifests = mixture.manifests(run.data)
    vocabulary = manifests[0].tokenizer
    run = run.with_vocabulary(vocabulary)
    # Open once: memory-mapped files stay readable when the folder is renamed or deleted during the run.
    opener = functools.cache(open_split)

    def batches(split: str, phase: Phase, rows: int) -> Batches:
        return pipeline.open_batches(run.data.of_length(phase.length), split, rows, run.train.seed, run.eval.rows, opener)

    mesh = meshes.make(run.mesh)
    chosen = attention.choose(run, meshes.platform(mesh.devices.flat[0]), workdir)
    teacher = teachers.of_run(run, workdir, models)
    files = {CONFIG: to_json(run), attention.RECORD: chosen.to_json(), **mixture.checkpoint_files(run.data, run.model.row_frame)}
    files |= {teachers.RECORD: teacher.to_json()} if teacher else {}
    evaluates = any(manifest.splits["held_out"].tokens > 0 for manifest in manifests)
    return Job(run, vocabulary, mesh, batches, evaluates, workdir, files, heads, models, chosen, teacher)


def check(job: Job) -> None:
    """Raises UserError for rows, batches, parameters or loggers that would make the run fail later; writes nothing."""
    weights_and_biases.check(job.run.log)
    for phase in job.run.plan:
        if not any(job.objective(phase).coef.values()):
            raise UserError(f"objective.kind={job.run.objective.kind} has no loss as it is configured", "", _other_objective(job, phase))
        partition.check_rows(phase.batch, job.run.train.microbatches, job.mesh)
        for split in SPLITS if job.evaluates else SPLITS[:1]:
            check_rows(job, split, phase)
        check_carry(job, phase)
        for one in job.run.in_lengths(phase):
            job.objective(one)
    job.layout(job.run.plan[0])


def _other_objective(job: Job, phase: Phase) -> str:
    """Advice that names an objective which trains the model of the run on text."""
    for kind, config in OBJECTIVES.items():
        with contextlib.suppress(UserError):
            other = dataclasses.replace(job.run, objective=config())
            built = other.build(job.vocabulary, phase, meshes.platform(job.mesh.devices.flat[0]))
            if built.coef and not config.has_teacher:
                return f"choose what to train on, such as --config.objective.kind={kind}"
    return "choose what to train on with --config.objective.kind"


def check_rows(job: Job, split: str, phase: Phase) -> None:
    """Raises UserError where the rows of a split lack a field that the objective reads, run backward for an objective that cannot read
    backward rows, or are too many for the memory of the devices."""
    _check_room(job, split, phase)
    reads, fields = set(job.objective(phase).reads), set(job.batches(split, phase, phase.batch).fields)
    missing = sorted(reads - fields)
    if missing == ["word_starts"]:
        raise UserError("made before word_starts, which the objective reads", f"data {job.run.data.named}", "build the data again")
    if missing and all(name.endswith("characters") for name in missing):
        advice = "make one with `jaxenc tokenizer --type characters` and build the data with it, or set model.input to tokens"
        raise UserError("its tokenizer has no characters of words, which the model reads", f"data {job.run.data.named}", advice)
    labels = sorted(set(missing) - FIELDS.keys())
    if labels:
        held = f"objective.kind={job.run.objective.kind} learns from {', '.join(labels)}, and data of `jaxenc data` holds no labels"
        raise UserError(held, "", _other_objective(job, phase))
    if missing:
        rows = "sentences" if "reverse_targets" in missing else job.run.objective.rows.rows
        what = f"the objective reads {', '.join(missing)}, which data.rows={job.run.data.rows} lacks"
        raise UserError(what, fix=f"set data.rows to {rows}")
    if "direction" in fields - reads:
        backward = f"half of the rows of data.rows={job.run.data.rows} run backward"
        raise UserError(f"{backward}, which objective.kind={job.run.objective.kind} does not read", fix="set data.rows to text")


def _check_room(job: Job, split: str, phase: Phase) -> None:
    """Raises UserError for a batch whose fields the devices cannot hold. Half of that may still be too much; this catches a mistyped
    number before it costs anything."""
    train = split == SPLITS[0]
    rows, objective = phase.batch if train else job.run.eval.batch, job.objective(phase)
    row = sum(array.nbytes for array in empty({*objective.reads, "index"}, 1, phase.length, objective.fields).values())
    share, room = rows * row / (job.mesh.shape["data"] * job.mesh.shape["fsdp"]), device_memory(job.mesh)
    if share > room:
        held = f"{rows:,} rows of {phase.length} tokens are {share / 1e6:,.1f} MB on each device, which has {room / 1e6:,.1f} MB"
        raise UserError(held, f"{'train' if train else 'eval'}.batch", "lower it")


def check_carry(job: Job, phase: Phase) -> None:
    """Raises UserError where the carry of the slots alone is larger than the memory of the devices."""
    carry = jax.eval_shape(lambda: job.objective(phase).carry(phase.batch))
    share, room = tree.nbytes(carry) / (job.mesh.shape["data"] * job.mesh.shape["fsdp"]), device_memory(job.mesh)
    if share > room:
        fields = " and ".join([f"objective.{name}" for name in job.run.objective.carried] + ["train.batch"])
        sizes = f"the slots carry {share / 1e6:,.1f} MB from step to step on each device, which has {room / 1e6:,.1f} MB"
        raise UserError(sizes, fields, "lower one of them or use more devices")


def device_memory(mesh: Mesh) -> float:
    """Bytes of memory of one device; for a CPU device, its share of the machine's memory."""
    limit = (mesh.local_devices[0].memory_stats() or {}).get("bytes_limit", 0)
    return limit or os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / len(mesh.local_devices)


def check_data(job: Job) -> None:
    """Compares every byte of the data with the manifests' checksums; called once, when a run starts. Raises UserError for a changed
    file."""
    for folder in job.run.data.folders:
        open_split(folder, SPLITS[0], verify=True)


def warnings(job: Job) -> list[str]:
    """Warnings about settings that are valid but rarely intended, one line each."""
    lines = [
        f"warning: optim.warmup is {phase.warmup} and the schedule has {phase.schedule_steps} steps: the rate never reaches {phase.lr:g}"
        for phase in job.run.plan
        if phase.warmup >= phase.schedule_steps
    ]
    layout = job.layout(job.run.plan[0])
    shapes = layout.shapes.all_params
    whole = partition.whole_over_fsdp(shapes, layout.names, job.mesh, job.run.mesh.preset)
    if 2 * tree.nbytes(whole) > tree.nbytes(shapes):
        divided = f"mesh.preset={job.run.mesh.preset} splits less than half of the parameters"
        lines.append(f"warning: {divided}: fsdp {job.mesh.shape['fsdp']} does not divide the axes of the others; lower mesh.fsdp")
    lines += [f"warning: {one}" for one in _long_words(job)]
    if not job.evaluates:
        return [*lines, "warning: the data holds no held-out documents: this run is not evaluated"]
    few = "" if job.judge else _few_held_out(job.run)
    return [*lines, *([f"warning: {few}"] if few else [])]


def _long_words(job: Job) -> list[str]:
    """The warning for an objective that goes by words on data whose words are long, with advice; [] for others. Of several folders it
    names the one with the longest words."""
    if not job.run.data.folders or not _goes_by_words(job, job.run.objective):
        return []
    means = {folder: word_lengths.tokens_a_word(open_split(folder, SPLITS[0])) for folder in job.run.data.folders}
    folder = max(means, key=lambda name: means[name])
    if means[folder] <= word_lengths.LIMIT:
        return []
    unit, advice = getattr(job.run.objective, "unit", ""), "put blanks between words and build the data again"
    with contextlib.suppress(UserError):
        if unit not in ("", "tokens") and not _goes_by_words(job, dataclasses.replace(job.run.objective, unit="tokens")):
            advice = f"set --config.objective.unit=tokens, or {advice}"
    what = f"{f'objective.unit={unit}' if unit else 'the objective'} goes by words, which are what stands between blanks"
    return [f"{what}, and a word of {folder} has {means[folder]:.1f} tokens on average; {advice}"]


def _goes_by_words(job: Job, objective: ObjectiveConfig) -> bool:
    """Whether `objective`, instead of the run's own, would read where words start. Raises UserError for one that cannot be built."""
    other = dataclasses.replace(job, run=dataclasses.replace(job.run, objective=objective), programs=Programs())
    return "word_starts" in other.objective(job.run.plan[0]).reads


def _few_held_out(run: Run) -> str:
    """The warning for a held-out split that is too small to tell two runs apart, with advice; '' for a larger one."""
    tokens = sum(one.splits["held_out"].tokens for one in mixture.manifests(run.data))
    phase = run.plan[0]
    read = run.eval.rows * phase.length or tokens
    few = held_out.too_few(min(tokens, read), run.objective.predicted(phase.length, phase.max_predictions))
    advice = "raise eval.rows, or set it to 0 for all of them" if read < tokens else "build the data with a larger --held-out or more text"
    return few and f"{few}; {advice}"


def write_facts(job: Job, workdir: pathlib.Path) -> None:
    """Writes config.json, manifest.json and attention.json of the run directory, and the record of its teacher."""
    for name in (CONFIG, MANIFEST, attention.RECORD, *([teachers.RECORD] if job.teacher else [])):
        with user_errors(workdir / name, "free some space or choose another work directory"):
            write_bytes(workdir / name, job.files[name])


def describe(job: Job, start: Start) -> str:
    """One line: the number of parameters, the devices, the implementation of attention and where the run starts from."""
    objective = job.objective(job.run.plan[0])
    shapes = job.layout(job.run.plan[0]).shapes.all_params
    own = without(shapes, objective.frozen)
    count = parameter_count(own, job.run.model.vocab_size, objective.vocabulary)
    device = job.mesh.devices.flat[0].device_kind
    fresh = "from its teacher's layers" if job.teacher and objective.init_from_teacher(own, shapes[TEACHER]) else "from scratch"
    origin = {"fresh": fresh, "init": f"from the parameters of {start.path}"}.get(start.kind, f"{start.kind} {start.path}")
    teacher = f" and the teacher {job.teacher.short}" if job.teacher else ""
    how = "" if "train.attention" in job.run.unused else f"{job.attention.line}, "
    return f"{count:,} parameters{teacher} on {job.mesh.size} x {device} ({job.run.mesh.preset}), {how}{origin}"


def taken_again(job: Job, step: int, reached: int) -> list[str]:
    """A line that says why an earlier start went further than this one, if it did. step: where this start begins. reached: the last step
    that the earlier one logged."""
    every = job.run.checkpoint.every
    if reached <= step:
        return []
    lost = f"an earlier start reached step {reached:,} and left no checkpoint after step {step:,}" if step else ""
    lost = lost or f"an earlier start reached step {reached:,}, before its first checkpoint"
    comes = f"the next one comes after step {(step // every + 1) * every:,}" if every else "one is written only at the end or on Ctrl-C"
    return [f"{lost}: this one takes those steps again; {comes} (checkpoint.every is {every:,})"]
