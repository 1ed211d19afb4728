"""The floating-point operations of a compiled program's matrix products, and the bytes that it moves to and from memory."""

import json
import math
import re
from collections.abc import Mapping

from jaxenc.hlo.program import Instruction, Program

# Operations that move no bytes: they name existing arrays, or end an operation that has started.
FREE = {
    "parameter", "constant", "tuple", "get-tuple-element", "bitcast", "while", "conditional", "call", "after-all", "partition-id",
    "replica-id", "copy-done", "async-done", "async-update", "all-reduce-done", "all-gather-done", "collective-permute-done", "slice-done",
    "dynamic-slice-done", "dynamic-update-slice-done", "opt-barrier",
}  # fmt: skip
SLICES = ("dynamic-slice", "slice", "gather")

_DIMS = re.compile(r"lhs_contracting_dims=\{([\d,]*)\}")
_LABELS = re.compile(r"dim_labels=(\w+)_(\w+)->(\w+)")
_WINDOW = re.compile(r"window=\{([^}]*)\}")
_CONFIG = re.compile(r"backend_config=(\{.*\})")


def flops(program: Program) -> float:
    """Floating-point operations of the matrix products and convolutions of one call, two a multiply-add, on one device. A loop's body is
    counted as often as it runs, unlike in XLA's `cost_analysis`. What a custom kernel computes is not in the text and not counted, except
    for cuBLAS's products."""
    times = program.times()
    return sum(times[name] * sum(_flops(one, body) for one in body.values()) for name, body in program.computations.items() if times[name])


def traffic(program: Program) -> float:
    """Bytes that one call reads from and writes to the memory of one device: the operands and results of every kernel that lie there. Of an
    array that a kernel slices, only the slice counts. Caches are not modelled, so kernels may move less."""
    times, fused = program.times(), _fused(program)
    return sum(
        times[name] * sum(_moved(one, body, program) for one in body.values())
        for name, body in program.computations.items()
        if times[name] and name not in fused
    )


def _fused(program: Program) -> set[str]:
    calls = ("fusion", "custom-call")
    return {name for body in program.computations.values() for one in body.values() if one.opcode in calls for name in one.called}


def _flops(one: Instruction, body: Mapping[str, Instruction]) -> float:
    if one.opcode == "dot":
        dims = [int(axis) for axis in _DIMS.search(one.attributes)[1].split(",") if axis]
        return 2.0 * one.arrays[0].size * math.prod(_shape(one, 0, body)[axis] for axis in dims)
    if one.opcode == "convolution":
        return _convolution(one, body)
    if one.opcode == "custom-call" and "cublas" in one.target:
        return _library_product(one, body)
    return 0.0


def _shape(one: Instruction, operand: int, body: Mapping[str, Instruction]) -> tuple[int, ...]:
    return body[one.operands[operand]].arrays[0].shape


def _library_product(one: Instruction, body: Mapping[str, Instruction]) -> float:
    config = _CONFIG.search(one.attributes)
    found = re.search(r'"lhs_contracting_dimensions":(\[[^\]]*\])', config[1]) if config else None
    if not found:
        return 0.0
    return 2.0 * one.arrays[0].size * math.prod(_shape(one, 0, body)[int(axis)] for axis in json.loads(found[1]))


def _convolution(one: Instruction, body: Mapping[str, Instruction]) -> float:
    """2 · batch · features out · features in of the kernel · the pairs (place of the output, place of the kernel) that read an element of
    the input, and not padding or dilation: a TPU's compiler writes batched products as convolutions that are mostly dilation."""
    labels = _LABELS.search(one.attributes)
    left, right, out = (_shape(one, 0, body), _shape(one, 1, body), one.arrays[0].shape)
    window = dict(item.partition("=")[::2] for item in _WINDOW.search(one.attributes)[1].split()) if "window={" in one.attributes else {}
    spatial = [digit for digit in labels[3] if digit.isdigit()]
    valid = 1
    for index, digit in enumerate(sorted(spatial)):
        sizes = left[labels[1].index(digit)], right[labels[2].index(digit)], out[labels[3].index(digit)]
        valid *= _valid_pairs(*sizes, index, window)
    batch, features = out[labels[3].index("b")], out[labels[3].index("f")]
    return 2.0 * batch * features * right[labels[2].index("i")] * valid


def _valid_pairs(size: int, kernel: int, places: int, axis: int, window: Mapping[str, str]) -> int:
    of_axis = lambda name, default: window[name].split("x")[axis] if name in window else default
    stride, dilate, spread = (int(of_axis(name, "1")) for name in ("stride", "lhs_dilate", "rhs_dilate"))
    low = int(of_axis("pad", "0_0").split("_")[0])
    last = (size - 1) * dilate
    at = (place * stride - low + offset * spread for place in range(places) for offset in range(kernel))
    return sum(0 <= where <= last and where % dilate == 0 for where in at)


def _moved(one: Instruction, body: Mapping[str, Instruction], program: Program) -> float:
    if one.opcode in FREE or (one.opcode.endswith("-start") and one.called):
        return 0.0
    operands = [body[name] for name in one.operands if name in body]
    if one.opcode.removesuffix("-start") in SLICES:
        # The start of an asynchronous slice holds its operand, then the slice.
        part = one.arrays[1] if one.opcode.endswith("-start") else one.arrays[0]
        return float(part.nbytes * ((_held(operands[0]) > 0) + (not part.space)))
    if one.opcode in ("dynamic-update-slice", "scatter"):
        return 2.0 * sum(_held(operand) for operand in operands[1:])
    if one.opcode == "copy-start":
        return float(_held(operands[0]) + (0 if one.arrays[0].space else one.arrays[0].nbytes))
    if one.opcode == "fusion" and one.called and one.called[0] in program.computations:
        return _of_fusion(one, operands, program)
    return float(_held(one) + sum(map(_held, operands)))


def _held(one: Instruction) -> int:
    """Bytes of the results that lie in the memory of the device."""
    return sum(array.nbytes for array in one.arrays if not array.space)


def _of_fusion(one: Instruction, operands: list[Instruction], program: Program) -> float:
    """Each operand, or the slices of it that the fusion takes, and each result, or the slice of it that the fusion updates in place."""
    total = sum(min(_held(operand), _read(one.called[0], number, program)) for number, operand in enumerate(operands) if _held(operand))
    inner = program.computations[one.called[0]]
    held = {array.nbytes for array in one.arrays if not array.space}
    updates = [update for update in inner.values() if update.opcode == "dynamic-update-slice" and update.nbytes in held]
    return total + _held(one) - sum(update.nbytes - inner[update.operands[1]].nbytes for update in updates)


def _read(computation: str, number: int, program: Program) -> float:
    """Bytes that a fused computation reads of its parameter `number`, in the fusions inside it too; infinite for all of them."""
    inner = program.computations[computation]
    names = [name for name, one in inner.items() if one.opcode == "parameter" and one.attributes.startswith(f"{number} ")]
    return sum(_used(user, name, program) for name in names for user in inner.values() if name in user.operands)


def _used(user: Instruction, name: str, program: Program) -> float:
    if user.opcode in SLICES and user.operands[0] == name:
        return float(user.nbytes)
    if user.opcode == "dynamic-update-slice" and user.operands[0] == name:
        return 0.0
    if user.opcode == "fusion" and user.called and user.called[0] in program.computations:
        return sum(_read(user.called[0], number, program) for number, operand in enumerate(user.operands) if operand == name)
    return math.inf
