"""`jaxenc bench step`, `attention` and `data`: how fast a training step, attention or the data pipeline is on this machine."""

import argparse
import contextlib
import dataclasses
import json
import os
import sys

from jaxenc.bench.attention import AttentionTiming, Work, time_attention, time_product
from jaxenc.bench.data import KINDS, made_up, time_rows
from jaxenc.bench.data import Timing as RowTiming
from jaxenc.bench.peer import PEERS, PeerTiming, time_peer
from jaxenc.bench.step import Timing, time_step
from jaxenc.cli import recipe as cli_config
from jaxenc.data import manifest
from jaxenc.errors import UserError
from jaxenc.layers.attend import BACKENDS
from jaxenc.processes import cluster

SHAPE = {"rows": "rows of a batch", "length": "tokens of a row", "heads": "attention heads", "head_size": "width of a head"}

# What is timed -> the options that it needs, and those that it may have.
NEEDS = {"step": ("config",), "attention": tuple(SHAPE), "data": ()}
TAKES = {"step": ("peer", "kinds"), "attention": ("dropout", "precision"), "data": ("data",)}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    what = "step: the training step on random rows; attention: one layer's, with each backend that runs here; data: each kind of row"
    parser.add_argument("what", choices=tuple(NEEDS), help=what)
    parser.add_argument("--steps", type=int, default=20, help="steps, calls of attention or batches that are timed")
    step = parser.add_argument_group("step")
    step.add_argument("--config", help=cli_config.HELP)
    peers = "also time the same architecture in transformers: its own loss (hf), or logits of the predicted tokens only (hf-gathered)"
    step.add_argument("--peer", choices=PEERS, help=peers)
    step.add_argument("--kinds", action="store_true", default=None, help="also profile three steps: milliseconds by kind of kernel")
    attention = parser.add_argument_group("attention")
    for name, meaning in SHAPE.items():
        attention.add_argument(_option(name), type=int, help=meaning)
    attention.add_argument("--dropout", type=float, help="of the attention weights (default 0)")
    attention.add_argument("--precision", choices=("bfloat16", "float32"), help="of inputs and products (default bfloat16)")
    parser.add_argument_group("data").add_argument("--data", metavar="DIR", help="folder of `jaxenc data` (default: made-up text)")


def run(args: argparse.Namespace) -> int:
    """Prints JSON lines. step: seconds to compile, median milliseconds a step, tokens a second, model FLOPs utilisation, peak memory, and
    with --kinds the time by kind of kernel; with --peer another line before it, of transformers. attention: a line for each backend; data:
    one for each kind of row. On stderr, why one is left out."""
    cluster.must_be_alone(os.environ, "jaxenc bench")
    if args.steps < 1:
        raise UserError("less than 1", f"--steps {args.steps}", "use 1 or more")
    needed = NEEDS[args.what]
    every = {name for names in (*NEEDS.values(), *TAKES.values()) for name in names}
    given = [_option(name) for name in sorted(every - {*needed, *TAKES[args.what]}) if getattr(args, name) is not None]
    given += args.overrides if args.what != "step" else []
    if given:
        raise UserError(f"`jaxenc bench {args.what}` does not take it", given[0], "leave it out")
    if missing := [_option(name) for name in needed if getattr(args, name) is None]:
        raise UserError(f"`jaxenc bench {args.what}` needs {' '.join(map(_option, needed))}", fix=f"add {' and '.join(missing)}")
    return {"step": _step, "attention": _attention, "data": _data}[args.what](args)


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _step(args: argparse.Namespace) -> int:
    recipe, vocabulary = cli_config.with_vocabulary(cli_config.resolve(args.config, args.overrides), args.overrides)
    if args.peer:
        # First: JAX reserves most of the device's memory at the first array.
        _print({"config": args.config}, time_peer(recipe, vocabulary, args.steps, args.peer))
    _print({"config": args.config}, time_step(recipe, vocabulary, args.steps, by_kind=bool(args.kinds)))
    return 0


def _attention(args: argparse.Namespace) -> int:
    work = Work(*(getattr(args, name) for name in SHAPE), args.dropout or 0.0, args.precision or "bfloat16")
    product = time_product(work.precision, args.steps)
    for backend in BACKENDS:
        try:
            timing = time_attention(work, backend, product, args.steps)
        except UserError as error:
            print(f"left out: {error}", file=sys.stderr)
        else:
            _print(dataclasses.asdict(work), timing)
    return 0


def _data(args: argparse.Namespace) -> int:
    with contextlib.nullcontext(args.data) if args.data is not None else made_up() as folder:
        manifest.read(folder)  # else each kind of row would be left out because there is no data
        for config, batch in KINDS:
            try:
                timing = time_rows(folder, config, batch, args.steps)
            except UserError as error:
                print(f"left out: {error}", file=sys.stderr)
            else:
                _print({}, timing)
    return 0


def _print(given: dict[str, object], timing: Timing | PeerTiming | AttentionTiming | RowTiming) -> None:
    values = {name: value for name, value in dataclasses.asdict(timing).items() if value is not None}
    print(json.dumps({**given, **_rounded(values)}), flush=True)


def _rounded(value: object) -> object:
    if isinstance(value, dict):
        return {name: _rounded(item) for name, item in value.items()}
    return round(value, 4) if isinstance(value, float) else value
