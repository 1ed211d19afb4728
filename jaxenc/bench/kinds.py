"""The time of a compiled program by kind of kernel, read from a profile of a few calls."""

import dataclasses
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import jax
from jax.profiler import ProfileData

# The scopes (jax.named_scope) of the two kinds that are a part of the model and not an operation.
ATTENTION, OPTIMIZER = "attend", "optimizer"
CALLS = 3

# (kind, opcodes of HLO): a kernel is of the first kind of which it holds an operation, elementwise if of none.
BY_OPCODE = (
    ("product", ("dot", "convolution")),
    ("scatter", ("scatter", "gather", "sort")),
    ("reduction", ("reduce", "reduce-window")),
    ("transpose", ("transpose", "copy", "copy-start", "copy-done")),
)
COLLECTIVE = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective")
KINDS = ("product", "attention", "reduction", "elementwise", "transpose", "scatter", "optimizer", "collective", "other")
# Names of the libraries' kernels and of custom calls, for kernels that the profile does not tie to an operation of the program.
BY_NAME = (
    ("collective", re.compile(r"nccl", re.IGNORECASE)),
    ("attention", re.compile(r"attention_|fmha|flash|cudnn.*sdpa", re.IGNORECASE)),
    ("product", re.compile(r"gemm|matmul|cublas|nvjet|xmma|cutlass|splitk|ynn|onednn", re.IGNORECASE)),
    ("transpose", re.compile(r"memcpy|transpose|copy", re.IGNORECASE)),
)

_INSTRUCTION = re.compile(r"^\s*(?:ROOT )?%?([\w.-]+) = .*? ([a-z][a-z0-9-]*)\(")
_COMPUTATION = re.compile(r"^(?:ENTRY )?%?([\w.-]+) \(.*\{$")
_CALLED = re.compile(r"(?:calls|to_apply)=%?([\w.-]+)")
_SCOPE = re.compile(r'op_name="([^"]*)"')
_TARGET = re.compile(r'custom_call_target="([^"]*)"')


@dataclasses.dataclass(frozen=True)
class Instruction:
    """One operation of a compiled program. scope: its `op_name`, the path of scopes it was traced in; for a fusion, that of its last
    operation. target: of a custom call, else ''. called: the computations of a fusion or call."""

    opcode: str
    scope: str
    target: str
    called: tuple[str, ...]


def milliseconds_by_kind(program: str, call: Callable[[], Any], calls: int = CALLS) -> dict[str, float]:
    """Milliseconds of one `call` that kernels of each kind take on one device, the largest first; kinds without time are left out.

    program: the HLO text of what `call` runs (`jax.stages.Compiled.as_text`). Kinds: `attention` and `optimizer` are all that runs in
    their scopes; of the rest, product, scatter (and gather, sort), reduction, transpose (and copy), collective, or elementwise. A fusion
    has one kind, so a reduction's includes the elementwise operations fused into it. `other`: kernels that match no operation. Kernels
    that overlap are both counted, and the gaps between kernels are not.
    """
    times = dict.fromkeys(KINDS, 0.0)
    kind_of = kinds(program)
    for name, kernel, seconds in profiled(program, call, calls):
        times[kind_of.get(_plain(name)) or kind_of.get(_plain(kernel)) or _by_name(kernel)] += seconds * 1e3 / calls
    return dict(sorted(((kind, ms) for kind, ms in times.items() if ms), key=lambda item: -item[1]))


def kinds(program: str) -> dict[str, str]:
    """{name of an instruction, with _ for every other sign: its kind} of HLO text."""
    computations = _computations(program)
    return {_plain(name): _kind(one, computations) for body in computations.values() for name, one in body.items()}


def profiled(program: str, call: Callable[[], Any], calls: int) -> list[tuple[str, str, float]]:
    """(name of the HLO instruction or '', name of the kernel, its seconds without those of kernels inside it) of every kernel that
    `calls` calls run, the seconds divided by the number of devices."""
    module = program.split(None, 2)[1].rstrip(",")
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder, profiler_options=options):
            jax.block_until_ready([call() for _ in range(calls)])
        data = ProfileData.from_file(str(next(Path(folder).rglob("*.xplane.pb"))))
    planes = [plane for plane in data.planes if plane.name.startswith("/device:")]
    if any(True for plane in planes for line in plane.lines for _ in line.events):
        lines = [line for plane in planes for line in plane.lines if line.name.startswith("Stream")]
        return [(name, kernel, s / len(planes)) for line in lines for name, kernel, _, s in _alone(line.events)]
    lines = [line for plane in data.planes for line in plane.lines]
    return [(name, kernel, s / jax.device_count()) for line in lines for name, kernel, own, s in _alone(line.events) if own == module]


def _alone(events: Iterable[Any]) -> Iterator[tuple[str, str, str, float]]:
    """(instruction, event, module, seconds without the events inside it) of the events of one line."""
    open_events: list[list[Any]] = []
    for event in sorted(events, key=lambda event: (event.start_ns, -event.duration_ns)):
        while open_events and open_events[-1][0] <= event.start_ns:
            yield _closed(open_events.pop())
        stats = dict(event.stats)
        if open_events:
            open_events[-1][2] -= event.duration_ns
        open_events.append([event.start_ns + event.duration_ns, event.name, event.duration_ns, stats])
    while open_events:
        yield _closed(open_events.pop())


def _closed(event: list[Any]) -> tuple[str, str, str, float]:
    _, name, duration, stats = event
    return str(stats.get("hlo_op", "")), name, str(stats.get("hlo_module", "")), max(duration, 0) / 1e9


def _computations(program: str) -> dict[str, dict[str, Instruction]]:
    found: dict[str, dict[str, Instruction]] = {}
    body: dict[str, Instruction] = {}
    for line in program.splitlines():
        if start := _COMPUTATION.match(line):
            body = found.setdefault(start[1], {})
        elif at := _INSTRUCTION.match(line):
            scope, target = (match[1] if (match := pattern.search(line)) else "" for pattern in (_SCOPE, _TARGET))
            body[at[1]] = Instruction(at[2], scope, target, tuple(_CALLED.findall(line)))
    return found


def _kind(one: Instruction, computations: dict[str, dict[str, Instruction]]) -> str:
    opcodes = set(_opcodes(one, computations))
    if any(opcode.startswith(COLLECTIVE) for opcode in opcodes):
        return "collective"
    scopes = set(re.split(r"[/()]", one.scope))
    for kind, scope in (("optimizer", OPTIMIZER), ("attention", ATTENTION)):
        if scope in scopes:
            return kind
    if one.opcode == "custom-call":
        return next((kind for text in (one.target, one.scope) if (kind := _by_name(text)) != "other"), "other")
    return next((kind for kind, names in BY_OPCODE if opcodes & set(names)), "elementwise")


def _opcodes(one: Instruction, computations: dict[str, dict[str, Instruction]]) -> Iterator[str]:
    yield one.opcode
    if one.opcode not in ("fusion", "call") and not one.opcode.startswith("async"):
        return  # the computation of a reduction or a sort is one operation on scalars
    for name in one.called:
        for inner in computations.get(name, {}).values():
            yield from _opcodes(inner, computations)


def _by_name(kernel: str) -> str:
    return next((kind for kind, pattern in BY_NAME if pattern.search(kernel)), "other")


def _plain(name: str) -> str:
    return re.sub(r"[.-]", "_", name)
