"""The devices that JAX uses, compared with those that the machines have."""

import dataclasses
import importlib.util
import os
import pkgutil
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax

from jaxenc.doctor.accelerators import Present, present
from jaxenc.findings import OK, PROBLEM, WARNING, Finding, by_value, processes

CHECK = "devices"
PLATFORMS = ("JAX_PLATFORMS", "JAX_PLATFORM_NAME")
SHM = 1 << 30  # bytes that NCCL may need in /dev/shm


@dataclasses.dataclass(frozen=True)
class Kind:
    """A kind of accelerator. name: in messages; platform: in JAX; asked: its names in JAX_PLATFORMS; extra: of jaxenc, which installs jax
    for it; hiding: variables that hide some of its devices."""

    name: str
    platform: str
    asked: tuple[str, ...]
    extra: str
    hiding: tuple[str, ...]


# By the name of the field of `Present`.
KINDS = {
    "nvidia": Kind("NVIDIA GPU", "gpu", ("cuda", "gpu"), "cuda", ("CUDA_VISIBLE_DEVICES", "JAX_CUDA_VISIBLE_DEVICES")),
    "tpu": Kind("TPU chip", "tpu", ("tpu",), "tpu", ("TPU_VISIBLE_CHIPS", "TPU_VISIBLE_DEVICES", "JAX_LOCAL_DEVICE_IDS")),
}


@dataclasses.dataclass(frozen=True)
class Devices:
    """Of one process. platform, kind, count, memory (bytes, 0 = unknown) of its JAX devices; plugins: of JAX, by name; variables: those of
    `KINDS` that are set; shm: bytes of /dev/shm."""

    host: str
    platform: str
    kind: str
    count: int
    memory: int
    present: Present
    plugins: tuple[str, ...]
    variables: Mapping[str, str]
    shm: int


def gather(host: str, environment: Mapping[str, str], root: Path) -> Devices:
    """The devices of this process and of its machine, whose file system begins at `root`."""
    local = jax.local_devices()
    limits = [(device.memory_stats() or {}).get("bytes_limit", 0) for device in local]
    memory = sum(limits) if local[0].platform != "cpu" else os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    names = (*PLATFORMS, *(name for kind in KINDS.values() for name in kind.hiding))
    given = {name: environment[name] for name in names if name in environment}
    shm = shutil.disk_usage("/dev/shm").total if os.path.isdir("/dev/shm") else 0
    return Devices(host, local[0].platform, local[0].device_kind, len(local), memory, present(root), _plugins(), given, shm)


def refused(error: BaseException, environment: Mapping[str, str]) -> list[Finding]:
    """What to do where jax raised `error` because it cannot start a backend, [] for any other error."""
    # jax raises a bare AssertionError where JAX_PLATFORMS names a plugin that is not installed (0.10.2).
    bare = isinstance(error, AssertionError) and not str(error)
    if not (bare or (isinstance(error, RuntimeError) and "Unable to initialize backend" in str(error))):
        return []
    given = {name: environment[name] for name in PLATFORMS if environment.get(name)}
    asked = ", ".join(f"{name}={value}" for name, value in given.items())
    reason = "it has no such backend" if bare else str(error).partition("\n")[0]
    extras = [kind.extra for kind in KINDS.values() if set(kind.asked) & set(",".join(given.values()).split(","))]
    install = f"pip install 'jaxenc[{extras[0]}]'" if extras else "see why with JAX_DEBUG_LOG_MODULES=jax"
    fix = f"{install}, or unset {' and '.join(given)}" if given else install
    return [Finding(PROBLEM, CHECK, f"JAX does not start{f' with {asked}' if asked else ''} ({reason})", fix)]


def of_json(data: Mapping[str, Any]) -> Devices:
    """Devices from its `dataclasses.asdict`."""
    return Devices(**{**data, "present": Present(**data["present"]), "plugins": tuple(data["plugins"])})


def judge(facts: Sequence[Devices]) -> list[Finding]:
    """facts: of each process, in order."""
    found = []
    for kind in KINDS:
        for host in dict.fromkeys(one.host for one in facts):
            found += _unused(kind, host, {rank: one for rank, one in enumerate(facts) if one.host == host})
    for name, values in (("platform", [one.platform for one in facts]), ("devices", [str(one.count) for one in facts])):
        if len(set(values)) > 1:
            found.append(Finding(PROBLEM, CHECK, f"{name}: {by_value(values)}", "give every process the same devices"))
    if len(kinds := {one.kind for one in facts}) > 1 and not found:
        found.append(Finding(WARNING, CHECK, f"of several kinds: {', '.join(sorted(kinds))}", "every step takes as long as on the slowest"))
    return [*_seen(facts), *found, *_shared_memory(facts)]


def _seen(facts: Sequence[Devices]) -> Iterator[Finding]:
    first, total = facts[0], sum(one.count for one in facts)
    each = f", {first.count} a process" if len(facts) > 1 else ""
    whole = first.platform == "cpu"
    memory = f", {first.memory / (1 if whole else first.count) / 1e9:.1f} GB of memory {'' if whole else 'each'}".rstrip()
    yield Finding(OK, CHECK, f"{total} x {first.kind}{each}{memory if first.memory else ''}")


def _unused(kind: str, host: str, ours: Mapping[int, Devices]) -> Iterator[Finding]:
    """Accelerators of one host that its processes do not use, or use twice."""
    of_kind = KINDS[kind]
    there = max(getattr(one.present, kind) for one in ours.values())
    on_bus = max(getattr(one.present, f"{kind}_on_bus") for one in ours.values())
    using = {rank: one.count for rank, one in ours.items() if one.platform == of_kind.platform}
    seen, where, name = sum(using.values()), f"{CHECK} of {host}", of_kind.name
    if there and not seen:
        rank, first = next(iter(ours.items()))
        what = f"{there} x {name} there, and JAX uses {first.platform.upper()} only in {processes(ours)}"
        yield Finding(PROBLEM, where, what, why(kind, first, "" if len(ours) == 1 else f" in process {rank}"))
    elif seen < there:
        chosen = sorted({name for rank in using for name in of_kind.hiding if name in ours[rank].variables})
        what = f"{there} x {name} there, and the processes use {seen}"
        fix = f"set by {', '.join(chosen)}: widen it if that is not meant" if chosen else "see what jax says with JAX_DEBUG_LOG_MODULES=jax"
        yield Finding(WARNING if chosen else PROBLEM, where, what, fix)
    elif kind == "nvidia" and there and seen > there and not any("MIG" in one.kind for one in ours.values()):
        what = f"{there} x {name} there, and {processes(using)} open {seen} in all: some have the same one"
        yield Finding(PROBLEM, where, what, "give each process its own with CUDA_VISIBLE_DEVICES, as launch/local.sh does")
    elif on_bus and not there:
        what = f"{on_bus} x {name} on the PCI bus, but no device file for it"
        yield Finding(
            WARNING, where, what, "install its driver, or give it to this container (docker run --gpus all), if it is meant to be used"
        )


def why(kind: str, facts: Devices, where: str = "") -> str:
    """Why JAX does not use accelerators of a kind that are there, as advice."""
    of_kind = KINDS[kind]
    for variable in PLATFORMS:
        value = facts.variables.get(variable, "")
        if value and not set(of_kind.asked) & {part.strip() for part in value.split(",")}:
            return f"{variable}={value}{where} hides them: unset it"
    installed = any(("cuda" if kind == "nvidia" else "tpu") in plugin for plugin in facts.plugins)
    if not installed:
        return f"install jax for it: pip install 'jaxenc[{of_kind.extra}]'"
    for variable in of_kind.hiding:
        if facts.variables.get(variable, "0").strip() in ("", "-1", "none", "NoDevFiles"):
            return f"{variable}={facts.variables[variable]!r}{where} hides them: unset it"
    if kind == "nvidia":
        return "jax's plugin is there but does not start: run `nvidia-smi`, and compare the versions of jax, its plugin and the driver"
    return "libtpu is there but does not start: end other processes that hold the chips, and compare its version with jax's"


def _shared_memory(facts: Sequence[Devices]) -> Iterator[Finding]:
    for host in dict.fromkeys(one.host for one in facts):
        ours = [one for one in facts if one.host == host]
        if ours[0].platform == "gpu" and sum(one.count for one in ours) > 1 and 0 < ours[0].shm < SHM:
            what = f"/dev/shm has {ours[0].shm / 1e6:,.0f} MB, which NCCL uses between the GPUs of a host"
            yield Finding(WARNING, f"{CHECK} of {host}", what, "start the container with --shm-size=1g or --ipc=host")


def _plugins() -> tuple[str, ...]:
    """Of JAX, by the names of their packages."""
    spec = importlib.util.find_spec("jax_plugins")
    names = [module.name for module in pkgutil.iter_modules(spec.submodule_search_locations)] if spec else []
    return (*sorted(names), *(["libtpu"] if importlib.util.find_spec("libtpu") else []))
