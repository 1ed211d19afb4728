"""What the devices of a compiled program send each other, for tests that say what may be sent."""

import dataclasses

from jaxenc.hlo.program import read

KINDS = ("all-gather", "all-reduce", "reduce-scatter", "all-to-all", "collective-permute", "collective-broadcast", "ragged-all-to-all")


@dataclasses.dataclass(frozen=True)
class Sent:
    """One array of one collective. kind: of KINDS; inside: in a loop of several rounds."""

    kind: str
    dtype: str
    shape: tuple[int, ...]
    inside: bool


def sent(hlo: str) -> list[Sent]:
    """Every array in the results of collectives, in the order of the text of a compiled program."""
    program = read(hlo)
    times = program.times()
    found = []
    for name, body in program.computations.items():
        for one in body.values():
            if (kind := one.opcode.removesuffix("-start")) in KINDS:
                found += [Sent(kind, array.dtype, array.shape, times[name] > 1) for array in one.arrays]
    return found
