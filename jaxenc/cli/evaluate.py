"""`jaxenc evaluate`: held-out numbers of a run's checkpoint, and its predictions in a file."""

import argparse
import json
import os
import pathlib

from jaxenc.config import flatten
from jaxenc.processes import cluster
from jaxenc.sharding.rules import PRESETS
from jaxenc.training.held_out import check_place, evaluate


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--workdir", required=True, type=pathlib.Path, help="the run's directory")
    parser.add_argument("--step", type=int, default=0, help="which checkpoint; the newest that verifies where it is not given")
    parser.add_argument("--data", default="", metavar="DIR", help="other data with the same tokenizer; the run's own where it is not given")
    parser.add_argument("--batch", type=int, default=0, help="rows at a time; it changes no number")
    parser.add_argument("--mesh", choices=tuple(PRESETS), default="", help="how devices share the model; the run's own otherwise")
    told = "also write what the heads predict of each row to this new file, with the row's number as `index`"
    parser.add_argument("--predictions", type=pathlib.Path, metavar="FILE.npz", help=told)


def run(args: argparse.Namespace) -> int:
    """Prints one JSON line: the step, every held-out number and how many predictions the losses rest on. It stands before the file of
    predictions is written: a disk that is full loses no number."""
    cluster.must_be_alone(os.environ, "jaxenc evaluate")
    if args.predictions:
        check_place(args.predictions)
    found = evaluate(args.workdir, args.step, args.data, args.batch, args.mesh, predictions=bool(args.predictions))
    print(json.dumps(dict(flatten({"step": found.step, **found.numbers}))), flush=True)
    if args.predictions:
        found.save(args.predictions)
    return 0
