"""The folder of compiled programs: whether a restart finds what an earlier start compiled, and whether it is safe."""

import contextlib
import dataclasses
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import jax

from jaxenc.doctor.probe import Probe
from jaxenc.findings import OK, WARNING, Finding, processes
from jaxenc.processes.compiled import FOLDER, SIZE
from jaxenc.storage import is_url

CHECK = "compilation cache"


@dataclasses.dataclass(frozen=True)
class Cache:
    """The cache of one process. folder: '' where there is none; limit: bytes, -1 = none; used: bytes; programs: their number; bare: the
    number of those without a time of use; open: whether other users may write there."""

    host: str
    folder: str
    limit: int
    used: int
    programs: int
    bare: int
    open: bool


def gather(host: str, environment: Mapping[str, str]) -> Cache:
    """The cache of this process, by the variables of jax that `processes.compiled.settings` sets."""
    folder, limit = environment.get(FOLDER, ""), environment.get(SIZE, "-1")
    limit = int(limit) if limit.lstrip("-").isdigit() else -1
    if not folder or is_url(folder):
        return Cache(host, folder, limit, 0, 0, 0, False)
    used = programs = bare = 0
    try:
        for path in Path(folder).glob("*-cache"):
            used, programs = used + path.stat().st_size, programs + 1
            bare += not path.with_name(path.name.removesuffix("-cache") + "-atime").exists()
        facts = os.stat(folder)
        shared = bool(facts.st_mode & 0o022) or facts.st_uid not in (0, os.geteuid())
    except OSError:
        shared = False
    return Cache(host, folder, limit, used, programs, bare, shared)


@contextlib.contextmanager
def unwritten() -> Iterator[None]:
    """While in the block, no program is written to the cache."""
    name = "jax_persistent_cache_min_compile_time_secs"
    before = getattr(jax.config, name)
    jax.config.update(name, float("inf"))
    try:
        yield
    finally:
        jax.config.update(name, before)


def judge(facts: Sequence[Cache], probes: Sequence[Probe]) -> list[Finding]:
    """facts, probes: of each process; no probes where process 0 has no cache."""
    first, found = facts[0], []
    warn = lambda what, fix: found.append(Finding(WARNING, f"{CHECK} {first.folder}".rstrip(), what, fix))
    if not first.folder:
        warn("there is none: every start compiles again", f"set {FOLDER} to a folder, or leave it unset for the one in your cache folder")
        return found
    if is_url(first.folder) and first.limit != -1:
        what = f"with {SIZE} jax locks a file on each host, under the current folder, which holds off no other host"
        warn(what, f"unset {SIZE}, and let the store delete old programs")
    if probes and probes[0].error:
        who = "process 0, which alone writes programs, cannot" if len(facts) > 1 else "it cannot be written"
        warn(f"{who} ({probes[0].place}: {probes[0].error})", f"set {FOLDER} to a folder that takes files")
    blind = [rank for rank, probe in enumerate(probes) if not probe.seen]
    if probes and blind and not probes[0].error:
        compiles = "it compiles" if len(blind) == 1 else "they compile"
        what = f"process 0 alone writes programs, and {processes(blind)} cannot see them: {compiles} again at every start"
        warn(what, f"set {FOLDER} to a folder that all hosts share, or to a URL such as gs://BUCKET/compiled")
    if first.open:
        warn(
            "other users may write there, and what they write is run as code", f"chmod go-w {first.folder}, or choose a folder of your own"
        )
    if first.bare and first.limit != -1:
        warn(f"{first.bare:,} of {first.programs:,} programs have no time of use, so jax writes no more", "delete these *-cache files")
    limit = f"{first.limit / 1e9:.1f} GB at most" if first.limit != -1 else f"no limit ({SIZE} sets one)"
    held = "" if is_url(first.folder) else f"{first.programs:,} programs, {first.used / 1e6:,.1f} MB, "
    alike = f", one folder for {len(facts)} processes" if len(facts) > 1 else ""
    return found or [Finding(OK, CHECK, f"{first.folder}: {held}{limit}{alike}")]
