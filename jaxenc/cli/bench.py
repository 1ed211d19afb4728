"""`jaxenc bench step`: how fast a recipe trains on this machine."""

import argparse
import dataclasses
import json
import os

from jaxenc.bench.peer import PEERS, PeerTiming, time_peer
from jaxenc.bench.step import Timing, time_step
from jaxenc.cli import recipe as cli_config
from jaxenc.errors import UserError
from jaxenc.processes import cluster


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", choices=("step",), help="the training step on random rows")
    parser.add_argument("--config", required=True, help=cli_config.HELP)
    parser.add_argument("--steps", type=int, default=20, help="steps that are timed")
    peers = "first time the same architecture in transformers, with its own loss or with the logits of predicted places alone"
    parser.add_argument("--peer", choices=PEERS, help=peers)


def run(args: argparse.Namespace) -> int:
    """Prints one JSON line: seconds to compile, median milliseconds a step, tokens a second, model FLOPs utilisation, peak memory; and with
    --peer another one before it, of transformers."""
    cluster.must_be_alone(os.environ, "jaxenc bench")
    if args.steps < 1:
        raise UserError(f"--steps is {args.steps}: it takes 1 or more")
    recipe, vocabulary = cli_config.with_vocabulary(cli_config.resolve(args.config, args.overrides), args.overrides)
    if args.peer:
        # Before this process takes the device's memory.
        _print(args.config, time_peer(recipe, vocabulary, args.steps, args.peer))
    _print(args.config, time_step(recipe, vocabulary, args.steps))
    return 0


def _print(config: str, timing: Timing | PeerTiming) -> None:
    numbers = {name: round(value, 4) if isinstance(value, float) else value for name, value in dataclasses.asdict(timing).items()}
    print(json.dumps({"config": config, **numbers}), flush=True)
