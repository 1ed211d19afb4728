"""The time of a compiled program by kind of kernel, read from a profile of a few calls."""

import re
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jax
from jax.profiler import ProfileData

from jaxenc.hlo.program import Instruction, Program, read

# The scopes (jax.named_scope) of the two kinds that are parts of the step, not operations.
ATTENTION, OPTIMIZER = "attend", "optimizer"
CALLS = 3

# (kind, opcodes of HLO): the kind of a kernel is the first with an operation in it, else elementwise.
BY_OPCODE = (
    ("product", ("dot", "convolution")),
    ("scatter", ("scatter", "gather", "sort")),
    ("reduction", ("reduce", "reduce-window")),
    ("transpose", ("transpose", "copy", "copy-start", "copy-done")),
)
COLLECTIVE = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective")
KINDS = ("product", "attention", "reduction", "elementwise", "transpose", "scatter", "optimizer", "collective", "other")
# Names of library kernels and custom calls, for kernels that the profile does not assign to an operation of the program.
BY_NAME = (
    ("collective", re.compile(r"nccl", re.IGNORECASE)),
    ("attention", re.compile(r"attention_|fmha|flash|cudnn.*sdpa", re.IGNORECASE)),
    ("product", re.compile(r"gemm|matmul|cublas|nvjet|xmma|cutlass|splitk|ynn|onednn", re.IGNORECASE)),
    ("transpose", re.compile(r"memcpy|transpose|copy", re.IGNORECASE)),
)


class Event(NamedTuple):
    """One event of a profile, in nanoseconds. operation, module: of the HLO program, '' for an event that is not one of its operations."""

    name: str
    start_ns: float
    duration_ns: float
    operation: str
    module: str


def milliseconds_by_kind(program: str, call: Callable[[], Any], calls: int = CALLS) -> dict[str, float]:
    """Milliseconds that kernels of each kind take in one `call` on one device, the largest first; kinds without time are left out.

    program: the HLO text of what `call` runs (`jax.stages.Compiled.as_text`). Kinds: `attention` and `optimizer` are all that runs in
    their scopes; of the rest, product, scatter (and gather, sort), reduction, transpose (and copy), collective, or elementwise. A fusion
    has one kind, so a reduction's includes the elementwise operations fused into it. `other`: kernels that match no operation. The time of
    kernels that overlap is split between them, and gaps between kernels are not counted.
    """
    times = dict.fromkeys(KINDS, 0.0)
    kind_of = kinds(program)
    for name, kernel, seconds in profiled(program, call, calls):
        times[kind_of.get(_plain(name)) or kind_of.get(_plain(kernel)) or _by_name(kernel)] += seconds * 1e3 / calls
    return dict(sorted(((kind, ms) for kind, ms in times.items() if ms), key=lambda item: -item[1]))


def kinds(program: str) -> dict[str, str]:
    """{name of an instruction, with _ for `.` and `-`: its kind} of HLO text."""
    found = read(program)
    return {_plain(name): _kind(one, found) for body in found.computations.values() for name, one in body.items()}


def profiled(program: str, call: Callable[[], Any], calls: int) -> list[tuple[str, str, float]]:
    """(name of the HLO instruction or '', name of the kernel, its seconds) of every kernel that `calls` calls run, the seconds divided by
    the number of devices. The time of kernels that overlap is split between them."""
    module = program.split(None, 2)[1].rstrip(",")
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder, profiler_options=options):
            jax.block_until_ready([call() for _ in range(calls)])
        data = ProfileData.from_file(str(next(Path(folder).rglob("*.xplane.pb"))))
        with warnings.catch_warnings():
            # Python 3.12 warns of jax's own types while they are made, and ends the process where warnings are errors.
            warnings.simplefilter("ignore", DeprecationWarning)
            events = [(plane.name, line.name, event) for plane in data.planes for line in plane.lines for event in map(_read, line.events)]
    # A GPU's streams overlap, and so do kernels of one stream in a CUDA graph.
    on_devices = [(place, event) for place, line, event in events if place.startswith("/device:") and line.startswith("Stream")]
    if on_devices:
        groups = _grouped(on_devices)
        return [(event.operation, event.name, s / len(groups)) for group in groups for event, s in shared(group)]
    # A CPU's operations are events of the host's threads, nested where one runs others.
    groups = _grouped([((place, line), event) for place, line, event in events])
    found = [part for group in groups for part in shared(group)]
    return [(event.operation, event.name, s / jax.device_count()) for event, s in found if event.module == module]


def _read(event: Any) -> Event:
    stats = dict(event.stats)
    return Event(event.name, event.start_ns, event.duration_ns, str(stats.get("hlo_op", "")), str(stats.get("hlo_module", "")))


def _grouped(events: list[tuple[Any, Event]]) -> list[list[Event]]:
    groups: dict[Any, list[Event]] = {}
    for place, event in events:
        groups.setdefault(place, []).append(event)
    return list(groups.values())


def shared(events: Iterable[Event]) -> list[tuple[Event, float]]:
    """(event, its seconds), where overlapping events share the overlap equally and a nested event has all of its own time."""
    order = sorted(events, key=lambda event: (event.start_ns, -event.duration_ns))
    ends = [event.start_ns + event.duration_ns for event in order]
    seconds, running, now, following = [0.0] * len(order), set(), 0.0, 0
    while running or following < len(order):
        if not running:
            now = order[following].start_ns
        while following < len(order) and order[following].start_ns <= now:
            running.add(following)
            following += 1
        until = min(ends[index] for index in running)
        if following < len(order):
            until = min(until, order[following].start_ns)
        inner = [one for one in running if not any(other > one and ends[other] <= ends[one] for other in running)]
        for index in inner:
            seconds[index] += (until - now) / 1e9 / len(inner)
        now = until
        running = {index for index in running if ends[index] > now}
    return list(zip(order, seconds, strict=True))


def _kind(one: Instruction, program: Program) -> str:
    opcodes = set(_opcodes(one, program))
    if any(opcode.startswith(COLLECTIVE) for opcode in opcodes):
        return "collective"
    scopes = set(re.split(r"[/()]", one.scope))
    for kind, scope in (("optimizer", OPTIMIZER), ("attention", ATTENTION)):
        if scope in scopes:
            return kind
    if one.opcode == "custom-call":
        return next((kind for text in (one.target, one.scope) if (kind := _by_name(text)) != "other"), "other")
    return next((kind for kind, names in BY_OPCODE if opcodes & set(names)), "elementwise")


def _opcodes(one: Instruction, program: Program) -> Iterator[str]:
    yield one.opcode
    if one.opcode not in ("fusion", "call") and not one.opcode.startswith("async"):
        return  # the computation of a reduction or a sort is one operation on scalars
    for name in one.called:
        for inner in program.computations.get(name, {}).values():
            yield from _opcodes(inner, program)


def _by_name(kernel: str) -> str:
    return next((kind for kind, pattern in BY_NAME if pattern.search(kernel)), "other")


def _plain(name: str) -> str:
    return re.sub(r"[.-]", "_", name)
