"""`jaxenc compile`: what a training step takes on accelerators that this machine does not have."""

import argparse
import dataclasses
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax

from jaxenc.cli import recipe as cli_config
from jaxenc.data.folders import must_be_new_file
from jaxenc.errors import UserError
from jaxenc.files import user_errors, write_bytes
from jaxenc.hlo.collectives import by_kind
from jaxenc.progress import Bars
from jaxenc.sharding import cards, chips, topology
from jaxenc.training import ahead
from jaxenc.training.ahead import Forecast, Target
from jaxenc.training.phases import Phase

WAIT = "half a minute for a tiny model, 1 to 15 minutes for a base or large one; train.scan=true compiles one layer instead of all"
FORMULA = (
    "a lower bound, not a measurement: the largest of FLOPs / peak, bytes / bandwidth of the memory, and bytes sent / bandwidth of the "
    "links, by published rates; a step takes longer"
)
OF_A_CARD = (
    "compiled from a description of the card, without one: what XLA chooses by timing kernels, such as a product's algorithm, may differ"
)
SIMULATED = (
    "compiled for CPU devices in place of GPUs, since jax's CUDA plugin is not installed (pip install jax-cuda13-plugin "
    "jax-cuda13-pjrt). What carries over: the state, the batch, model FLOPs, the kinds of collectives and their bytes. What does not: "
    "activations and the bytes of memory, since a GPU fuses differently and has attention of its own"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", required=True, help=cli_config.HELP)
    names = f"{', '.join(topology.TPUS)} and the shape of a slice, or {', '.join(cards.CARDS)} and a number of cards: v5e:16x16, h100:8"
    parser.add_argument("--topology", required=True, help=names)
    parser.add_argument("--slices", type=int, default=1, help="slices of that shape, joined by the data center's network (default: 1)")
    parser.add_argument("--phase", type=int, default=0, metavar="N", help="compile this phase only, from 1 (default: all of them)")
    more = "also find the largest batch that fits, which compiles the step up to six times more"
    parser.add_argument("--largest-batch", action="store_true", help=more)
    parser.add_argument("--out", type=Path, metavar="FILE.json", help="also write the numbers to this new file, as JSON")
    parser.add_examples("jaxenc compile --config bert/base --topology v5e:2x2 --config.train.batch=128")


def run(args: argparse.Namespace) -> int:
    """Compiles the step of each phase ahead of time and prints its memory, work, collectives and the least time that it can take. Raises
    UserError, before anything is compiled, for a topology that is unknown and for what a run there would refuse."""
    if args.out:
        must_be_new_file(args.out, "--out")
    recipe, vocabulary = cli_config.with_vocabulary(cli_config.resolve(args.config, args.overrides), args.overrides)
    if not 0 <= args.phase <= len(recipe.plan):
        raise UserError(f"the run has {len(recipe.plan)} phases", f"--phase {args.phase}", "name one of them, from 1")
    found = ahead.target(recipe, vocabulary, topology.parse(args.topology, args.slices))
    print("\n".join(header(found)), flush=True)
    written = []
    for number, phase in enumerate(recipe.plan):
        if args.phase in (0, number + 1):
            written.append(_phase(args, found, number, phase))
    if args.out:
        with user_errors(args.out, "choose another file"):
            write_bytes(args.out, json.dumps(facts(args, found, written), indent=1).encode())
    return 0


def _phase(args: argparse.Namespace, found: Target, number: int, phase: Phase) -> dict[str, Any]:
    """Prints the forecast of a phase; returns its numbers."""
    devices = f"{found.mesh.size} x {found.topology.kind}"
    what = f"compiling the step of phase {number + 1}: {phase.batch:,} rows of {phase.length} tokens for {devices}"
    print(f"{what} ({WAIT})", file=sys.stderr, flush=True)
    with Bars().shown(what):
        one = ahead.forecast(found, number, phase)
    title = f"phase {number + 1}: {phase.batch:,} rows of {phase.length} tokens, compiled in {one.seconds:.0f} s"
    print("\n".join([title, *(f"  {line}" for line in lines(found, one))]), flush=True)
    numbers = record(found, one)
    if args.largest_batch:
        print("compiling the step with other batches, to find the largest that fits", file=sys.stderr, flush=True)
        with Bars().shown("compiling the step with other batches"):
            most = ahead.largest(found, number, one)
        print(f"  {largest_line(found, most)}", flush=True)
        numbers["largest_batch"] = most.phase.batch if most.fits else 0
    return numbers


def header(found: Target) -> list[str]:
    """The devices that the step is compiled for, and their mesh."""
    mesh = " x ".join(f"{axis} {size}" for axis, size in found.mesh.shape.items())
    slices = f" in {found.topology.slices} slices" if found.topology.slices > 1 else ""
    chip = chips.of_kind(found.topology.kind)
    sheet = f"{chip.flops / 1e12:,.0f} TFLOP/s, memory {chip.bandwidth / 1e9:,.0f} GB/s, links {chip.interconnect / 1e9:,.0f} GB/s"
    first = f"{found.topology.name}{slices}: {found.mesh.size} x {found.topology.kind} ({sheet}); mesh {found.run.mesh.preset}: {mesh}"
    if found.topology.is_tpu:
        return [first]
    return [first, SIMULATED if found.topology.simulated else OF_A_CARD]


def lines(found: Target, one: Forecast) -> Iterator[str]:
    """The forecast of a phase, one fact a line."""
    sizes = ", ".join(f"{name} {size / 1e6:,.1f}" for name, size in dataclasses.asdict(one.memory).items() if size)
    yield f"memory of each device, MB: {sizes}; in all {one.memory.total / 1e6:,.1f} of {found.room / 1e6:,.1f}"
    yield one.verdict
    yield f"attention: {'none' if 'train.attention' in found.run.unused else one.attention}"
    if one.refused:
        yield f"the compiler: {one.refused}"
        return
    times = f", {one.flops / one.model_flops:.2f} times as many" if one.model_flops else ""
    yield f"FLOPs of each device in a step: model {one.model_flops / 1e12:,.4g} T, compiled {one.flops / 1e12:,.4g} T{times}"
    for (kind, dtype), (count, nbytes) in by_kind(list(one.collectives)).items():
        yield f"{kind} {dtype}: {count:,} in a step, {nbytes / 1e6:,.2f} MB"
    if not one.collectives:
        yield "no collectives"
    parts = ", ".join(f"{name} {seconds * 1e3:,.2f}" for name, seconds in dataclasses.asdict(one.bound).items() if seconds)
    separate = one.bound.without_overlap * 1e3
    yield f"at least {one.bound.step * 1e3:,.2f} ms a step, by {one.bound.limit} (ms: {parts}); {separate:,.2f} without overlap"
    peak = chips.of_kind(found.topology.kind).flops
    if peak and one.bound.step:
        yield f"so model FLOPs utilisation is at most {one.model_flops / peak / one.bound.step:.0%}"
    yield FORMULA


def largest_line(found: Target, most: Forecast) -> str:
    """The largest batch that fits, in rows."""
    held = f"{most.memory.total / 1e6:,.1f} of {found.room / 1e6:,.1f} MB"
    if not most.fits:
        return f"no batch fits: with {most.phase.batch:,} rows a step takes {held}"
    rows = most.phase.batch // (found.mesh.shape["data"] * found.mesh.shape["fsdp"])
    return f"the largest batch that fits: {most.phase.batch:,} rows, {rows:,} on each device that shares them ({held})"


def record(found: Target, one: Forecast) -> dict[str, Any]:
    """The numbers of a phase, in bytes, seconds and FLOPs of each device."""
    sent = [
        {"kind": kind, "dtype": dtype, "count": count, "bytes": size}
        for (kind, dtype), (count, size) in by_kind(list(one.collectives)).items()
    ]
    return {
        **{"batch": one.phase.batch, "length": one.phase.length, "attention": one.attention, "compile_s": round(one.seconds, 1)},
        **{"fits": one.fits, "verdict": one.verdict},
        "memory": {**dataclasses.asdict(one.memory), "total": one.memory.total, "room": found.room},
        **{"model_flops": one.model_flops, "flops": one.flops, "traffic": one.traffic, "collectives": sent},
        "bound_s": {**dataclasses.asdict(one.bound), "step": one.bound.step},
    }


def facts(args: argparse.Namespace, found: Target, phases: list[dict[str, Any]]) -> dict[str, Any]:
    """What `--out` holds."""
    asked = {"config": args.config, "overrides": args.overrides, "topology": args.topology, "slices": args.slices}
    device = {"kind": found.topology.kind, "devices": found.mesh.size, "simulated": found.topology.simulated}
    return {**asked, **device, "preset": found.run.mesh.preset, "mesh": dict(found.mesh.shape), "jax": jax.__version__, "phases": phases}
