"""All checks of one process or of several, in order."""

import dataclasses
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import jax

from jaxenc.data import mixture
from jaxenc.doctor import cache, clock, collective, data, devices, versions, workdir
from jaxenc.doctor.probe import VISIBLE_WITHIN, Probe, probe
from jaxenc.errors import UserError
from jaxenc.findings import PROBLEM, WARNING, Finding
from jaxenc.processes.barriers import from_primary, gathered
from jaxenc.reports.normal.comments import comments
from jaxenc.training.run import Run

VERIFYING = 4 * 3600  # seconds that a process waits for one that reads all bytes of the data
COUNTING = 600  # and for one that counts tokens


@dataclasses.dataclass(frozen=True)
class Request:
    """What to check. host: the name of this host; environment: of this process; workdir: a path or a URL, '' = none; data: a folder, '' =
    those of `runs`; verify: also compare checksums of the data; runs: the run of --config, or none; clock: seconds since the epoch; root:
    of the file system that shows the accelerators; seconds: that a process waits for the others at each check; visible_within: as in
    `probe`."""

    host: str
    environment: Mapping[str, str]
    workdir: str = ""
    data: str = ""
    verify: bool = False
    runs: tuple[Run, ...] = ()
    clock: Callable[[], float] = time.time
    root: Path = Path("/")
    seconds: float = 60
    visible_within: float = VISIBLE_WITHIN


def examine(request: Request) -> Iterator[Finding]:
    """Every finding, the same in every process; all processes take every step together. Trains nothing, and deletes the files that it
    writes. Raises Absent where another process does not answer."""
    yield from versions.judge(gathered("doctor versions", versions.gather(request.environment), request.seconds))
    facts = dataclasses.asdict(devices.gather(request.host, request.environment, request.root))
    yield from devices.judge([devices.of_json(one) for one in gathered("doctor devices", facts, request.seconds)])
    yield from clock.judge(gathered("doctor clocks", clock.gather(request.clock, request.seconds), request.seconds))
    if request.workdir:
        yield from _workdir(request)
        yield from _training(request)
    yield from _data(request)
    yield from _cache(request)
    own = dataclasses.asdict(collective.check(request.seconds))
    sums = [Finding(**one) for one in gathered("doctor all-reduce", own, request.seconds)]
    # The findings are equal, unless the reduction fails in some processes only.
    yield next((one for one in sums if one.level == PROBLEM), sums[0])


def _workdir(request: Request) -> Iterator[Finding]:
    own = probe("workdir", request.workdir, request.visible_within, request.seconds)
    probes = [Probe(**one) for one in gathered("doctor workdir probes", dataclasses.asdict(own), request.seconds)]
    needed, kept = 0, 0
    for run in request.runs:
        try:
            vocabulary = mixture.manifests(run.data)[0].tokenizer if run.data.folders else run.model.published_vocabulary
            needed, kept = workdir.checkpoint_bytes(run.with_vocabulary(vocabulary), vocabulary), run.checkpoint.keep
        except UserError as error:
            yield Finding(PROBLEM, "config", str(error))
    yield from workdir.judge(request.workdir, probes, needed, kept)


def _training(request: Request) -> Iterator[Finding]:
    """Comments on a run that has trained in the work directory, by process 0."""

    def own() -> list[dict[str, Any]]:
        try:
            return [dataclasses.asdict(one) for one in comments(request.workdir)]
        except UserError as error:
            return [dataclasses.asdict(Finding(WARNING, "training", f"not judged: {error}"))]

    yield from (Finding(**one) for one in from_primary("doctor training", own, max(COUNTING, request.seconds)))


def _data(request: Request) -> Iterator[Finding]:
    folders = (request.data,) if request.data else tuple(folder for run in request.runs for folder in run.data.folders)
    hosts = gathered("doctor hosts", request.host, request.seconds)
    for number, folder in enumerate(folders):
        # One process of each host reads all bytes.
        own = data.gather(folder, request.verify and hosts.index(request.host) == jax.process_index())
        facts = gathered(f"doctor data {number}", dataclasses.asdict(own), VERIFYING if request.verify else request.seconds)
        yield from data.judge(folder, [data.Data(**one) for one in facts])


def _cache(request: Request) -> Iterator[Finding]:
    own = cache.gather(request.host, request.environment)
    facts = [cache.Cache(**one) for one in gathered("doctor caches", dataclasses.asdict(own), request.seconds)]
    probes = []
    if all(one.folder for one in facts):
        seen = probe("cache", own.folder, request.visible_within, request.seconds)
        probes = [Probe(**one) for one in gathered("doctor cache probes", dataclasses.asdict(seen), request.seconds)]
    yield from cache.judge(facts, probes)
