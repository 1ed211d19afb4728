"""Counts of operations in the text of a step, before and after XLA's passes."""

import collections
import re

from jaxenc.hlo.program import read

LOWERED = re.compile(r"= \"?(?:stablehlo|chlo)\.(\w+)")
PRESETS = ("dp", "fsdp")
COLLECTIVES = ("all-gather", "all-reduce", "all-to-all", "collective-broadcast", "collective-permute", "reduce-scatter")
SHOWN = ("dot", "fusion", "reduce", "while", "convolution", "custom-call", *COLLECTIVES)


def compiled(hlo: str) -> dict[str, int]:
    """{operation: how often} of the optimised HLO, fused computations included: those of SHOWN that occur, and `all`.

    The CPU's LLVM optimisation level does not enter: XLA's passes over HLO are the same at level 0 (measured: equal text).
    """
    # An asynchronous pair is counted once, at its start.
    found = collections.Counter(one.opcode.removesuffix("-start") for body in read(hlo).computations.values() for one in body.values())
    return {name: found[name] for name in SHOWN if found[name]} | {"all": found.total()}


def lowered(stablehlo: str) -> dict[str, int]:
    """{operation: how often} of the StableHLO that jax hands to XLA: matrix products, reductions, loops, and `all`."""
    found = collections.Counter(LOWERED.findall(stablehlo))
    return {name: found[name] for name in ("dot_general", "reduce", "while") if found[name]} | {"all": found.total()}


def line_of(version: str) -> str:
    """`0.10` of 0.10.2: the version line whose passes give one set of counts."""
    return ".".join(version.split(".")[:2])
