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
from jaxenc.files import user_errors, write_bytes
from jaxenc.hlo.collectives import by_kind
from jaxenc.sharding import chips, topology
from jaxenc.training import ahead
from jaxenc.training.ahead import Forecast, Target
from jaxenc.training.phases import Phase

FORMULA = (
    "the bound: the largest of FLOPs / peak, bytes / bandwidth of memory, and bytes sent / bandwidth of the links, by data sheets; "
    "nothing was measured, and a step takes longer"
)
SIMULATED = (
    "compiled for CPU devices in the place of GPUs (jax's CUDA plugin is not installed: pip install jax-cuda13-plugin jax-cuda13-pjrt). "
    "What carries over: the state, the batch, and the kinds and bytes of collectives. What does not: activations, since a GPU fuses "
    "differently and has its own attention"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", required=True, help=cli_config.HELP)
    names = f"{', '.join(topology.TPUS)} with the shape of a slice, as v5e:16x16; {', '.join(topology.target.CARDS)} with a number of cards, as h100:8"
    parser.add_argument("--topology", required=True, help=names)
    parser.add_argument("--slices", type=int, default=1, help="slices of that shape, joined by the data center's network (default: 1)")
    more = "also find the largest batch that fits, which compiles the step two to five times more"
    parser.add_argument("--largest-batch", action="store_true", help=more)
    parser.add_argument("--out", type=Path, default=Path(), metavar="FILE.json", help="also write the numbers, as JSON")
    parser.add_examples("jaxenc compile --config bert/base --topology v5e:2x2 --config.train.batch=128")


def run(args: argparse.Namespace) -> int:
    """Compiles the step of each phase ahead of time and prints its memory, work, collectives and the least time that it can take. Raises
    UserError, before anything is compiled, for a topology that is unknown and for what a run there would refuse."""
    recipe, vocabulary = cli_config.with_vocabulary(cli_config.resolve(args.config, args.overrides), args.overrides)
    found = ahead.target(recipe, vocabulary, topology.parse(args.topology, args.slices))
    print("\n".join(header(found)), flush=True)
    written = []
    for number, phase in enumerate(recipe.plan):
        one = _compiled(found, number, phase)
        print("\n".join(lines(found, number, one)), flush=True)
        written.append(record(found, one))
        if args.largest_batch:
            most = ahead.largest(found, number, one)
            print(largest_line(found, number, most), flush=True)
            written[-1]["largest_batch"] = most.phase.batch if most.fits else 0
    if args.out != Path():
        with user_errors(args.out, "choose another file"):
            write_bytes(args.out, json.dumps(facts(args, found, written), indent=1).encode())
    return 0


def _compiled(found: Target, number: int, phase: Phase) -> Forecast:
    devices = f"{found.mesh.size} x {found.topology.kind}"
    what = f"compiling the step of phase {number + 1}: {phase.batch:,} rows of {phase.length} tokens for {devices}"
    wait = "half a minute for a tiny model, 1 to 15 minutes for a base or large one; model.scan... compiles one layer instead of all"
    print(f"{what} ({wait.replace('model.scan...', 'train.scan=true')})", file=sys.stderr, flush=True)
    return ahead.forecast(found, number, phase)


def header(found: Target) -> list[str]:
    """What is compiled for what, and by which versions."""
    mesh = " x ".join(f"{axis} {size}" for axis, size in found.mesh.shape.items())
    slices = f" in {found.topology.slices} slices" if found.topology.slices > 1 else ""
    chip = chips.of_kind(found.topology.kind)
    sheet = f"{chip.flops / 1e12:,.0f} TFLOP/s, {chip.bandwidth / 1e9:,.0f} GB/s, links {chip.interconnect / 1e9:,.0f} GB/s"
    first = f"{found.topology.name}{slices}: {found.mesh.size} x {found.topology.kind} ({sheet}); mesh {found.run.mesh.preset}: {mesh}"
    return [first, *([SIMULATED] if found.topology.simulated else [])]


def lines(found: Target, number: int, one: Forecast) -> list[str]:
    """The forecast of a phase, one fact a line."""
    return [f"phase {number + 1}: {one.phase.batch:,} rows of {one.phase.length} tokens, compiled in {one.seconds:.0f} s", *_facts(found, one)]


def _facts(found: Target, one: Forecast) -> Iterator[str]:
    sizes = ", ".join(f"{name} {size / 1e6:,.1f}" for name, size in dataclasses.asdict(one.memory).items() if size)
    yield f"  memory of each device, MB: {sizes}; in all {one.memory.total / 1e6:,.1f} of {found.room / 1e6:,.1f}"
    yield f"  {one.verdict}"
    attention = "none" if "train.attention" in found.run.unused else one.attention
    yield f"  attention: {attention}"
    if one.refused:
        yield f"  the compiler: {one.refused}"
        return
    again = f", {one.flops / one.model_flops:.2f} of them" if one.model_flops else ""
    yield f"  FLOPs of each device, in a step: model {one.model_flops / 1e12:,.4g} T, compiled {one.flops / 1e12:,.4g} T{again}"
    for (kind, dtype), (count, nbytes) in by_kind(list(one.collectives)).items():
        yield f"  {kind} {dtype}: {count:,} in a step, {nbytes / 1e6:,.2f} MB"
    if not one.collectives:
        yield "  no collectives"
    bound = {name: seconds for name, seconds in dataclasses.asdict(one.bound).items() if seconds}
    parts = ", ".join(f"{name} {seconds * 1e3:,.2f}" for name, seconds in bound.items())
    yield f"  at least {one.bound.step * 1e3:,.2f} ms a step, by {one.bound.limit} (ms: {parts}); {one.bound.apart * 1e3:,.2f} if nothing overlaps"
    peak = chips.of_kind(found.topology.kind).flops
    if peak and one.bound.step:
        yield f"  so model FLOPs utilisation is at most {one.model_flops / peak / one.bound.step:.0%}"
    yield f"  {FORMULA}"


def largest_line(found: Target, number: int, most: Forecast) -> str:
    """The largest batch that fits, in rows."""
    apart = ahead.rows_a_step(found)
    if not most.fits:
        return f"  no batch of phase {number + 1} fits: with {most.phase.batch:,} rows a step takes {most.memory.total / 1e6:,.1f} MB"
    rows = most.phase.batch // (apart // found.run.train.microbatches)
    held = f"{most.memory.total / 1e6:,.1f} of {found.room / 1e6:,.1f} MB"
    return f"  the largest batch that fits: {most.phase.batch:,} rows, {rows:,} on each device that shares them ({held})"


def record(found: Target, one: Forecast) -> dict[str, Any]:
    """The numbers of a phase, in bytes, seconds and FLOPs of each device."""
    sent = [{"kind": kind, "dtype": dtype, "count": count, "bytes": size} for (kind, dtype), (count, size) in by_kind(list(one.collectives)).items()]
    numbers = {"batch": one.phase.batch, "length": one.phase.length, "attention": one.attention, "compile_s": round(one.seconds, 1)}
    memory = {**dataclasses.asdict(one.memory), "total": one.memory.total, "room": found.room}
    work = {"model_flops": one.model_flops, "flops": one.flops, "traffic": one.traffic}
    bound = {**dataclasses.asdict(one.bound), "step": one.bound.step}
    return {**numbers, "fits": one.fits, "verdict": one.verdict, "memory": memory, **work, "collectives": sent, "bound_s": bound}


def facts(args: argparse.Namespace, found: Target, phases: list[dict[str, Any]]) -> dict[str, Any]:
    """What `--out` holds."""
    asked = {"config": args.config, "overrides": args.overrides, "topology": args.topology, "slices": args.slices}
    device = {"kind": found.topology.kind, "devices": found.mesh.size, "simulated": found.topology.simulated}
    return {**asked, **device, "preset": found.run.mesh.preset, "mesh": dict(found.mesh.shape), "jax": jax.__version__, "phases": phases}
