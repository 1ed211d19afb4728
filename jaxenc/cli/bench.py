"""`jaxenc bench`: how fast a training step, attention, the data pipeline or a fine-tuning run is on this machine."""

import argparse
import contextlib
import dataclasses
import json
import os
import pathlib
import sys
import tempfile

from jaxenc.bench import tune as tunes
from jaxenc.bench.attention import AttentionTiming, Work, time_attention, time_product
from jaxenc.bench.data import KINDS, made_up, time_rows
from jaxenc.bench.data import Timing as RowTiming
from jaxenc.bench.peer import PEERS, PeerTiming, time_peer
from jaxenc.bench.step import Timing, time_step
from jaxenc.bench.tune import AGREE
from jaxenc.cli import finetune as cli_finetune
from jaxenc.cli import recipe as cli_config
from jaxenc.cli.main import FAILED
from jaxenc.cli.parser import Parser
from jaxenc.data import manifest, staging
from jaxenc.errors import UserError
from jaxenc.layers.attend import BACKENDS
from jaxenc.processes import cluster
from jaxenc.progress import Bars

SHAPE = {"rows": "rows per batch", "length": "tokens per row", "heads": "attention heads", "head_size": "width of a head"}

# What is timed -> the options that it needs, and those that it may have.
NEEDS = {"step": ("config",), "attention": tuple(SHAPE), "data": (), "finetune": ("config", "init_from")}
TAKES = {
    "step": ("steps", "peer", "kinds"),
    "attention": ("steps", "dropout", "precision"),
    "data": ("steps", "data"),
    "finetune": ("text", "label", "peer", "seeds", "losses"),
}
CONFIGURED = ("step", "finetune")
STEPS = 20


def add_arguments(parser: Parser) -> None:
    what = "the training step on random rows, one layer's attention with each backend, each kind of row, or a fine-tuning run"
    parser.add_argument("what", choices=tuple(NEEDS), help=what)
    parser.add_argument("--steps", type=int, metavar="N", help=f"timed steps, calls or batches (default {STEPS})")
    step = parser.add_argument_group("step")
    step.add_argument("--config", help=cli_config.HELP)
    peers = "also time transformers: with its own loss, or logits of the predicted tokens only"
    step.add_argument("--peer", choices=PEERS, help=peers)
    step.add_argument("--kinds", action="store_true", default=None, help="also give milliseconds by kind of kernel")
    attention = parser.add_argument_group("attention")
    for name, meaning in SHAPE.items():
        attention.add_argument(_option(name), type=int, metavar="N", help=meaning)
    attention.add_argument("--dropout", type=float, metavar="P", help="of the attention weights (default 0)")
    attention.add_argument("--precision", choices=("bfloat16", "float32"), help="of inputs and products (default bfloat16)")
    tuned = parser.add_argument_group("finetune, with --config tasks/... and --peer hf")
    tuned.add_argument("--init-from", metavar="DIR", help="the pretrained model")
    cli_finetune.add_columns(tuned)
    tuned.add_argument("--seeds", type=int, metavar="N", help="number of seeds (default 1)")
    losses = "only compare the first N losses with the peer's, in float32: exit code 1 where they differ by more than"
    tuned.add_argument("--losses", type=int, metavar="N", help=f"{losses} {AGREE}")
    parser.add_argument_group("data").add_argument("--data", metavar="DIR", help="folder of `jaxenc data` (default: made-up text)")
    parser.add_examples(
        "jaxenc bench step --config bert/base --config.train.batch=32",
        "jaxenc bench attention --rows 32 --length 512 --heads 12 --head-size 64",
    )


def run(args: argparse.Namespace) -> int:
    """Prints JSON lines. step: seconds to compile, median milliseconds a step, tokens a second, model FLOPs utilisation, peak memory, and
    with --kinds the time by kind of kernel; with --peer another line before it, of transformers. attention: a line for each backend; data:
    one for each kind of row. On stderr, why one is left out. finetune: the scores, seconds and examples a second of all seeds; with --peer
    a line of transformers before it and a table after both, or with --losses the largest difference of the losses: exit code 1 where it is
    too large."""
    cluster.must_be_alone(os.environ, "jaxenc bench")
    for name in ("steps", "seeds", "losses"):
        if (given := getattr(args, name)) is not None and given < 1:
            raise UserError("less than 1", f"{_option(name)} {given}", "use 1 or more")
    needed = NEEDS[args.what]
    every = {name for names in (*NEEDS.values(), *TAKES.values()) for name in names}
    given = [_option(name) for name in sorted(every - {*needed, *TAKES[args.what]}) if getattr(args, name) is not None]
    given += args.overrides if args.what not in CONFIGURED else []
    if given:
        raise UserError(f"`jaxenc bench {args.what}` does not take it", given[0], "leave it out")
    if missing := [_option(name) for name in needed if getattr(args, name) is None]:
        raise UserError(f"`jaxenc bench {args.what}` needs {' '.join(map(_option, needed))}", fix=f"add {' and '.join(missing)}")
    args.steps = STEPS if args.steps is None else args.steps
    return {"step": _step, "attention": _attention, "data": _data, "finetune": _finetune}[args.what](args)


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
    given = contextlib.nullcontext(args.data) if args.data is not None else made_up()
    with given as folder, Bars().shown("timing kinds of rows", len(KINDS), "kinds") as bar:
        manifest.read(staging.facts(folder))  # else each kind of row would be left out because there is no data
        for config, batch in bar.counting(KINDS):
            try:
                timing = time_rows(folder, config, batch, args.steps)
            except UserError as error:
                print(f"left out: {error}", file=sys.stderr)
            else:
                _print({}, timing)
    return 0


def _finetune(args: argparse.Namespace) -> int:
    if args.peer not in (None, "hf"):
        raise UserError("`jaxenc bench finetune` has the peer hf", f"--peer {args.peer}", "use --peer hf")
    if args.losses and not args.peer:
        raise UserError("without a peer to compare with", f"--losses {args.losses}", "add --peer hf")
    asked = cli_finetune.resolve(args.config, args.init_from, "--init-from", args.overrides, cli_finetune.columns(args))
    tune = tunes.settings(asked, args.losses or 0)
    seeds = args.seeds or 1
    if not args.peer:
        with tempfile.TemporaryDirectory() as folder:
            _print_side(args.config, tunes.ours(tune, args.init_from, seeds, pathlib.Path(folder)))
        return 0
    found = tunes.compare(tune, args.init_from, seeds, args.peer)
    _print_side(args.config, found.theirs)
    _print_side(args.config, found.ours)
    if args.losses:
        agree = found.of_losses <= AGREE
        print(f"{args.losses} losses in float32 without dropout: largest difference {found.of_losses:.2e}, bound {AGREE}")
        return 0 if agree else FAILED
    print(*tunes.table(args.config, found), sep="\n")
    return 0


def _print_side(config: str, side: tunes.Side) -> None:
    print(json.dumps(_rounded({"config": config, **side.to_json()})), flush=True)


def _print(given: dict[str, object], timing: Timing | PeerTiming | AttentionTiming | RowTiming) -> None:
    values = {name: value for name, value in dataclasses.asdict(timing).items() if value is not None}
    print(json.dumps({**given, **_rounded(values)}), flush=True)


def _rounded(value: object) -> object:
    if isinstance(value, dict):
        return {name: _rounded(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    return round(value, 4) if isinstance(value, float) else value
