"""The collectives of a compiled program: kind, bytes, devices, and how often each runs in one call."""

import dataclasses
import re
from collections import Counter
from collections.abc import Iterator, Mapping

from jaxenc.hlo.program import Instruction, Program

KINDS = ("all-reduce", "reduce-scatter", "all-gather", "all-to-all", "collective-permute", "collective-broadcast")
# A computation of a TPU's program that reduces and keeps one part: an all-reduce in the text, a reduce-scatter on the wire.
SCATTERED = "all-reduce-scatter"
STARTED = "AsyncCollectiveStart"
# An attribute of the sends by which a TPU's program reaches other slices: the operation, which the hosts do.
BETWEEN_SLICES = "_xla_megascale_transfer_type"

_CHANNEL = re.compile(r"channel_id=(\d+)")
_LISTED = re.compile(r"replica_groups=\{\{([\d,]*)\}")
_TILED = re.compile(r"replica_groups=\[(\d+),(\d+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?")
_BY_AXES = re.compile(r"replica_groups=mesh\[([^\]]*)\](?:, device_ids=\([^)]*\))? \{([^}]*)\}")
_TRANSFER = re.compile(BETWEEN_SLICES + r'="(\w+)"')
_PAIRS = re.compile(r"source_target_pairs=\{\{(\d+),(\d+)\}")


@dataclasses.dataclass(frozen=True)
class Collective:
    """One collective operation. dtype: of most of its bytes. nbytes: of the whole array on a device, such as the operand of an all-reduce
    and the result of an all-gather. group: the first group of devices that take part; between slices, the slices. between: whether it is
    between slices. times: how often it runs in a step."""

    kind: str
    dtype: str
    nbytes: int
    group: tuple[int, ...]
    between: bool
    times: int

    @property
    def sent(self) -> float:
        """Bytes that each device sends in a step, at least: an all-reduce of n devices sends 2 (n - 1) / n of its array, a reduce-scatter,
        an all-gather and an all-to-all (n - 1) / n."""
        count = len(self.group)
        share = 1.0 if self.kind.startswith("collective") else (count - 1) / max(count, 1)
        return self.times * self.nbytes * share * (2 if self.kind == "all-reduce" else 1)


def collectives(program: Program, devices: int, slices: int = 1) -> list[Collective]:
    """Every collective that a program on `devices` devices in `slices` slices runs, in the order of the text. One that the compiler splits
    over several fusions, as a TPU's does to overlap it with products, is listed once."""
    times = program.times()
    begun = {channel for body in program.computations.values() for channel in _begun(body)}
    found = []
    for name, body in program.computations.items():
        own = set(_begun(body))
        for one in body.values():
            kind = one.opcode.removesuffix("-start")
            channel = _channel(one)
            if kind in KINDS and times[name] and not (channel in begun and channel not in own):
                found.append(_collective(kind, one, body, times[name], devices // slices, name))
            elif times[name] and one.opcode == "send" and (transfer := _TRANSFER.search(one.attributes)):
                kind, array = transfer[1].lower().replace("_", "-"), one.arrays[0]
                found.append(Collective(kind, array.dtype, array.nbytes, tuple(range(slices)), True, times[name]))
    return found


def by_kind(found: list[Collective]) -> dict[tuple[str, str], tuple[int, int]]:
    """{(kind, dtype): (how many run in a step, their bytes on a device)}, the largest first; the kind says where it is between slices."""
    count, nbytes = Counter(), Counter()
    for one in found:
        key = f"{one.kind} between slices" if one.between else one.kind, one.dtype
        count[key] += one.times
        nbytes[key] += one.times * one.nbytes
    return {key: (count[key], nbytes[key]) for key, _ in nbytes.most_common()}


def _begun(body: Mapping[str, Instruction]) -> Iterator[str]:
    """The channels of the collectives that start in a computation."""
    if any(one.target == STARTED for one in body.values()):
        yield from (channel for one in body.values() if one.opcode in KINDS and (channel := _channel(one)))


def _channel(one: Instruction) -> str:
    match = _CHANNEL.search(one.attributes)
    return match[1] if match else ""


def _collective(kind: str, one: Instruction, body: Mapping[str, Instruction], times: int, devices: int, where: str) -> Collective:
    arrays = one.arrays
    if kind == "reduce-scatter":
        arrays = tuple(array for name in one.operands if name in body for array in body[name].arrays)
    elif one.opcode == "all-gather-start":  # its result holds the operands, then what they become
        arrays = arrays[len(arrays) // 2 :]
    elif one.opcode == "collective-permute-start":
        arrays = arrays[:1]
    bytes_of = Counter()
    for array in arrays:
        bytes_of[array.dtype] += array.nbytes
    dtype = bytes_of.most_common(1)[0][0] if bytes_of else ""
    kind = "reduce-scatter" if where.startswith(SCATTERED) and kind == "all-reduce" else kind
    return Collective(kind, dtype, bytes_of.total(), group(one.attributes, devices), False, times)


def group(attributes: str, devices: int) -> tuple[int, ...]:
    """The first group of devices of a collective, from its attributes in any of the forms that XLA prints; all `devices` where it names
    none."""
    if pair := _PAIRS.search(attributes):
        return int(pair[1]), int(pair[2])
    if listed := _LISTED.search(attributes):
        return tuple(int(one) for one in listed[1].split(",") if one) or tuple(range(devices))
    if tiled := _TILED.search(attributes):
        shape = [int(size) for size in tiled[3].split(",")]
        order = [int(axis) for axis in tiled[4].split(",")] if tiled[4] else list(range(len(shape)))
        return tuple(_row_major(shape, order)[: int(tiled[2])])
    if axes := _BY_AXES.search(attributes):
        sizes = {name: int(size) for name, size in re.findall(r"'(\w+)'=(\d+)", axes[1])}
        within = [name for name in sizes if name in re.findall(r"'(\w+)'", axes[2])]
        order = [list(sizes).index(name) for name in sizes if name not in within] + [list(sizes).index(name) for name in within]
        count = 1
        for name in within:
            count *= sizes[name]
        return tuple(_row_major(list(sizes.values()), order)[:count])
    return tuple(range(devices))


def _row_major(shape: list[int], order: list[int]) -> list[int]:
    """The numbers of an array that counts from 0 in `shape`, its axes put in `order`, row by row."""
    strides = [1] * len(shape)
    for axis in range(len(shape) - 2, -1, -1):
        strides[axis] = strides[axis + 1] * shape[axis + 1]
    out = [0]
    for axis in order:
        out = [start + index * strides[axis] for start in out for index in range(shape[axis])]
    return out
