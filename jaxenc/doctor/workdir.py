"""Whether all processes can write checkpoints to the work directory, and whether it has room for as many as a run keeps."""

from collections.abc import Sequence
from pathlib import Path

import jax

from jaxenc import tree
from jaxenc.data.vocabulary import Vocabulary
from jaxenc.doctor.probe import Probe
from jaxenc.families import MODELS
from jaxenc.findings import OK, PROBLEM, WARNING, Finding, listed, processes
from jaxenc.sharding import mesh as meshes
from jaxenc.storage import is_url
from jaxenc.training import teacher as teachers
from jaxenc.training.run import Run
from jaxenc.training.state import layout

CHECKPOINTS = 3  # for which there must be room
COPIES = 2  # of checkpoints at a URL, for which a process must have room on its own disk
ADVICE = "free space, or choose another --workdir"


def checkpoint_bytes(run: Run, vocabulary: Vocabulary) -> int:
    """Bytes of one checkpoint of a run, before compression; allocates nothing."""
    teacher = teachers.model_of(run.objective, MODELS) if run.objective.has_teacher and run.objective.teacher else None
    phase = run.plan[0]
    objective = run.build(vocabulary, phase, meshes.platform(jax.devices()[0]), teacher=teacher)
    place = layout(objective, run.optim, phase.batch, meshes.abstract(meshes.MeshConfig(), 1), meshes.MeshConfig.preset)
    return tree.nbytes(place.shapes.without(objective.frozen))


def judge(workdir: str, probes: Sequence[Probe], needed: int, kept: int) -> list[Finding]:
    """probes: of each process. needed: bytes of one checkpoint, 0 = unknown; kept: checkpoints that the run keeps."""
    check = f"workdir {workdir}"
    refused = {rank: probe for rank, probe in enumerate(probes) if probe.error}
    found = []
    if refused:
        first = next(iter(refused.values()))
        reasons = listed(list(dict.fromkeys(f"{probe.place}: {probe.error}" for probe in refused.values())))
        who = f"{processes(refused)} cannot write there" if len(probes) > 1 else "cannot be written"
        found.append(Finding(PROBLEM, check, f"{who} ({reasons})", f"make {first.place} a folder that takes files, or choose another"))
    blind = [rank for rank, probe in enumerate(probes) if not probe.seen]
    if blind and 0 not in refused:
        what = f"{processes(blind)} {'does' if len(blind) == 1 else 'do'} not see the files that process 0 writes there"
        found.append(
            Finding(PROBLEM, check, what, "give all processes one --workdir on a disk that all hosts share, or a URL such as gs://")
        )
    if not found:
        alike = f" by {len(probes)} processes, one folder for all" if len(probes) > 1 else ""
        there = is_url(workdir) or probes[0].place == str(Path(workdir).absolute())
        made = "" if there else f" (will be made in {probes[0].place})"
        found.append(Finding(OK, check, f"can be written{made}{alike}"))
    return [*found, *(room_for_copies(check, probes, needed) if is_url(workdir) else room(check, probes[0], needed, kept))]


def room_for_copies(check: str, probes: Sequence[Probe], needed: int) -> list[Finding]:
    """Whether each process has room on its own disk for a copy of the newest checkpoint and for the one that it writes. needed: bytes of
    one, 0 = unknown."""
    known = {rank: probe.free for rank, probe in enumerate(probes) if probe.free >= 0}
    if not needed or not known:
        return []
    rank = min(known, key=known.__getitem__)
    who = f" of process {rank}" if len(probes) > 1 else ""
    what = f"{known[rank] / 1e9:,.1f} GB are free for the copies{who}, and a checkpoint takes up to {needed / 1e9:,.2f} GB"
    if known[rank] < COPIES * needed:
        return [Finding(PROBLEM, check, f"{what}: fewer than {COPIES}", "free space, or name a folder of a larger disk in JAXENC_CACHE")]
    return [Finding(OK, check, what)]


def room(check: str, probe: Probe, needed: int, kept: int) -> list[Finding]:
    """Whether the disk of process 0 has room for checkpoints of `needed` bytes."""
    if probe.free < 0:
        return []
    free = f"{probe.free / 1e9:,.1f} GB are free"
    if not needed:
        return [Finding(OK, check, f"{free} (--config says what a checkpoint takes)")]
    size, most = f"a checkpoint takes up to {needed / 1e9:,.2f} GB", kept + 1  # the new one is complete before an old one goes
    if probe.free < CHECKPOINTS * needed:
        return [Finding(PROBLEM, check, f"{free}, and {size}: fewer than {CHECKPOINTS}", ADVICE)]
    if probe.free < most * needed:
        return [Finding(WARNING, check, f"{free}, and {size}: fewer than the {most} of checkpoint.keep={kept}", f"{ADVICE}, or keep fewer")]
    return [Finding(OK, check, f"{free}, {size}")]
