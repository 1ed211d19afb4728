"""The text of a compiled program (`jax.stages.Compiled.as_text`) as computations of instructions."""

import dataclasses
import re
from collections.abc import Iterator, Mapping

CALLS = ("fusion", "call", "custom-call")
REDUCTIONS = ("all-reduce-start", "reduce-scatter-start")

_INSTRUCTION = re.compile(r"^\s*(ROOT )?%?([\w.-]+) = (.*?) ([a-z][a-z0-9-]*)\(")
_COMPUTATION = re.compile(r"^(ENTRY )?%?([\w.-]+) \(.*\{$")
_CALLED = re.compile(r"(?:calls|to_apply)=%?([\w.-]+)")
_BRANCHES = re.compile(r"(?:branch_computations=\{([^}]*)\}|(?:true|false)_computation=(%?[\w.-]+))")
_LOOP = re.compile(r"condition=%?([\w.-]+), body=%?([\w.-]+)")
_TRIPS = re.compile(r'known_trip_count[^0-9]*"?(\d+)')
_SCOPE = re.compile(r'op_name="([^"]*)"')
_TARGET = re.compile(r'custom_call_target="([^"]*)"')
_ARRAY = re.compile(r"\b([a-z]+[0-9]*[a-z0-9]*)\[([\d,<= ]*)\](?:\{[^}]*?(?:S\((\d+)\))?\})?")
_BITS = re.compile(r"\d+")


@dataclasses.dataclass(frozen=True)
class Array:
    """One array of an instruction's result. space: where it lies; 0 is the memory of the device, others are inside the chip."""

    dtype: str
    shape: tuple[int, ...]
    space: int

    @property
    def size(self) -> int:
        """The number of its elements."""
        out = 1
        for axis in self.shape:
            out *= axis
        return out

    @property
    def nbytes(self) -> int:
        """Its bytes, without what a layout pads."""
        return self.size * _bits(self.dtype) // 8


@dataclasses.dataclass(frozen=True)
class Instruction:
    """One operation of a compiled program. arrays: its results. operands: names of instructions of the same computation. scope: its
    `op_name`, the path of scopes it was traced in; for a fusion, that of its last operation. target: of a custom call, else ''. called: the
    computations of a fusion or call. attributes: the rest of its line."""

    opcode: str
    arrays: tuple[Array, ...]
    operands: tuple[str, ...]
    scope: str
    target: str
    called: tuple[str, ...]
    attributes: str
    is_root: bool

    @property
    def nbytes(self) -> int:
        """Bytes of its results."""
        return sum(array.nbytes for array in self.arrays)


Computation = Mapping[str, Instruction]


@dataclasses.dataclass(frozen=True)
class Program:
    """computations: {name: {name: instruction}}, in the order of the text, callees before their callers. entry: the name of the first one
    that runs."""

    computations: Mapping[str, Computation]
    entry: str

    def times(self) -> dict[str, int]:
        """How often each computation runs in one call of the program: the body of a loop once for each iteration, each branch of a
        conditional once. Computations that an operation applies to scalars, such as a reduction's, count 0."""
        out = dict.fromkeys(self.computations, 0) | {self.entry: 1}
        for name in reversed(self.computations):
            for one in self.computations[name].values():
                for called, often in self._calls(one):
                    if called in out:
                        out[called] += often * out[name]
        return out

    def _calls(self, one: Instruction) -> Iterator[tuple[str, int]]:
        if one.opcode == "while" and (loop := _LOOP.search(one.attributes)):
            condition, body = loop.groups()
            yield body, self.trips(one, condition)
            yield condition, 1
        elif one.opcode == "conditional":
            for several, single in _BRANCHES.findall(one.attributes):
                yield from ((name.strip(" %"), 1) for name in (several or single).split(","))
        elif one.opcode in CALLS or (one.opcode.endswith("-start") and one.opcode not in REDUCTIONS):
            yield from ((name, 1) for name in one.called)

    def trips(self, loop: Instruction, condition: str) -> int:
        """The number of iterations of a loop: the compiler's `known_trip_count` or, since that of TPUs prints none, the one integer that
        its condition holds; 1 where neither is there."""
        if known := _TRIPS.search(loop.attributes):
            return int(known[1])
        limits = [limit for one in self.computations.get(condition, {}).values() if (limit := _integer(one)) is not None]
        return limits[0] if len(limits) == 1 else 1


def read(text: str) -> Program:
    """The program of HLO text; instructions before the first computation go to one named ''."""
    found: dict[str, dict[str, Instruction]] = {}
    body, entry = found.setdefault("", {}), ""
    for line in text.splitlines():
        if start := _COMPUTATION.match(line):
            body = found.setdefault(start[2], {})
            entry = start[2] if start[1] else entry
        elif at := _INSTRUCTION.match(line):
            body[at[2]] = _instruction(at, line)
    return Program(found, entry)


def _instruction(at: re.Match, line: str) -> Instruction:
    inside, attributes = _split(line, at.end())
    scope, target = (match[1] if (match := pattern.search(attributes)) else "" for pattern in (_SCOPE, _TARGET))
    arrays = tuple(_array(*found.groups()) for found in _ARRAY.finditer(at[3]))
    # The value of a constant is in the place of the operands.
    operands = tuple(re.findall(r"%([\w.-]+)", inside)) if at[4] != "constant" else ()
    attributes = f"{inside} {attributes}" if at[4] in ("constant", "parameter") else attributes
    return Instruction(at[4], arrays, operands, scope, target, tuple(_CALLED.findall(attributes)), attributes, bool(at[1]))


def _split(line: str, start: int) -> tuple[str, str]:
    """(the content of the parenthesis that opens before `start`, the rest of the line)."""
    depth = 1
    for bracket in re.compile(r"[()]").finditer(line, start):
        depth += 1 if bracket[0] == "(" else -1
        if not depth:
            return line[start : bracket.start()], line[bracket.end() :]
    return line[start:], ""


def _array(dtype: str, shape: str, space: str | None) -> Array:
    sizes = (axis.strip(" <=") for axis in shape.split(","))
    return Array(dtype, tuple(int(axis) for axis in sizes if axis), int(space or 0))


def _bits(dtype: str) -> int:
    """Bits of an element: the number in the name of its type, 8 for a truth value, 0 for a token."""
    if dtype == "pred":
        return 8
    number = _BITS.search(dtype)
    return int(number[0]) if number else 0


def _integer(one: Instruction) -> int | None:
    """The value of an integer constant."""
    if one.opcode == "constant" and one.arrays and one.arrays[0].dtype in ("s32", "u32", "s64") and not one.arrays[0].shape:
        value = re.match(r"-?\d+", one.attributes)
        return int(value[0]) if value else None
    return None
