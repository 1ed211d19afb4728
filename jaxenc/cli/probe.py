"""`jaxenc probe`: which layer of a model knows the labels of a task."""

import argparse
import os
import pathlib

from jaxenc.cli import finetune
from jaxenc.errors import UserError
from jaxenc.inference.probe import lines, probe
from jaxenc.processes import cluster
from jaxenc.tasks.probe import ProbeSettings

ALL = "all"
READ = ("task.", "data.")  # the fields of a recipe that a probe reads


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", required=True, metavar="DIR", help="a run's directory, or the folder of one checkpoint")
    what = "a task such as tasks/text or tasks/frozen:words, a FILE.py or a task.json; --config.task.* and --config.data.* set fields"
    parser.add_argument("--config", required=True, help=what)
    parser.add_argument("--workdir", required=True, type=pathlib.Path, help="a new folder, for probe.json")
    layers = "which layers, as 0,3,6; 0 is the input of the first layer (default: %(default)s)"
    parser.add_argument("--layers", default=ALL, metavar="all|N,N", help=layers)
    parser.add_argument("--seeds", type=int, default=ProbeSettings.seeds, metavar="N", help="how many seeds (default: %(default)s)")
    epochs = "passes over the training data (default: %(default)s)"
    parser.add_argument("--epochs", type=int, default=ProbeSettings.epochs, metavar="N", help=epochs)
    batch = "words or texts of a step (default: %(default)s)"
    parser.add_argument("--batch", type=int, default=ProbeSettings.batch, metavar="N", help=batch)
    parser.add_argument("--lr", type=float, default=ProbeSettings.lr, help="the first learning rate (default: %(default)s)")
    finetune.add_columns(parser)


def run(args: argparse.Namespace) -> int:
    """Prints the score of every layer, of the mix and of the baselines. Returns 0. Raises UserError."""
    cluster.must_be_alone(os.environ, "jaxenc probe")
    for item in args.overrides:
        if not item.removeprefix("--config.").startswith(READ):
            raise UserError("a probe does not read this field", item, "leave it out; --epochs, --batch, --lr and --seeds set the training")
    settings = ProbeSettings(_layers(args.layers), args.seeds, epochs=args.epochs, batch=args.batch, lr=args.lr)
    # How the family is fine-tuned does not matter, and some families publish nothing.
    tune = finetune.resolve(args.config, args.model, "--model", [*args.overrides, "--config.published="], finetune.columns(args))
    table = probe(args.model, tune, args.workdir, settings)
    print(f"{table.units['train']:,} units to train on, {table.units['dev']:,} to score, {settings.seeds} seeds")
    print(*lines(table), sep="\n")
    return 0


def _layers(text: str) -> tuple[int, ...]:
    if text == ALL:
        return ()
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError as error:
        raise UserError("not a list of layers", f"--layers {text}", "write all, or numbers as in 0,3,6") from error
