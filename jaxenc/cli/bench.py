"""`jaxenc bench step`: how fast a recipe trains on this machine."""

import argparse
import dataclasses
import json
import os

from jaxenc.bench.step import time_step
from jaxenc.cli import recipe as cli_config
from jaxenc.processes import cluster


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", choices=("step",), help="the training step on random rows")
    parser.add_argument("--config", required=True, help=cli_config.HELP)
    parser.add_argument("--steps", type=int, default=20, help="steps that are timed")


def run(args: argparse.Namespace) -> int:
    """Prints one JSON line: seconds to compile, median milliseconds a step, tokens a second, model FLOPs utilisation, peak memory."""
    cluster.must_be_alone(os.environ, "jaxenc bench")
    recipe = cli_config.resolve(args.config, args.overrides)
    timing = time_step(recipe, recipe.model.published_vocabulary, args.steps)
    numbers = {name: round(value, 4) if isinstance(value, float) else value for name, value in dataclasses.asdict(timing).items()}
    print(json.dumps({"config": args.config, **numbers}))
    return 0
