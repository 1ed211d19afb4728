"""`jaxenc probe`: how well each layer of a frozen model predicts the labels of a task."""

import argparse
import os

from jaxenc.cli import finetune
from jaxenc.cli.parser import Parser
from jaxenc.errors import UserError
from jaxenc.inference.probe import lines, probe
from jaxenc.processes import cluster
from jaxenc.tasks.probe import LARGEST, PASSES, SMALLEST, STEPS, ProbeSettings

ALL = "all"
READ = ("task.", "data.")  # the fields of a recipe that a probe reads


EXAMPLES = (
    """jaxenc probe --config tasks/frozen:words --model runs/first
--workdir probes/words
--config.data.train=train.conllu --config.data.dev=dev.conllu""",
)


def add_arguments(parser: Parser) -> None:
    parser.add_argument("--model", required=True, metavar="DIR", help="a run directory or one of its checkpoints")
    what = "a task such as tasks/text or tasks/frozen:words, your own FILE.py, or a task.json; a probe reads its task.* and data.*"
    parser.add_argument("--config", required=True, metavar="TASK", help=what)
    parser.add_argument("--workdir", required=True, metavar="DIR", help="a new folder, or its URL, for probe.json")
    layers = "such as 0,3,6; 0 is the input of the first layer (default: %(default)s)"
    parser.add_argument("--layers", default=ALL, metavar="all|N,N", help=layers)
    parser.add_argument("--seeds", type=int, default=ProbeSettings.seeds, metavar="N", help="number of seeds (default: %(default)s)")
    epochs = f"passes over the training data (default: {PASSES}, or more for {STEPS:,} steps)"
    parser.add_argument("--epochs", type=int, default=ProbeSettings.epochs, metavar="N", help=epochs)
    batch = f"words or texts per step (default: {SMALLEST} to {LARGEST}, by the amount of data)"
    parser.add_argument("--batch", type=int, default=ProbeSettings.batch, metavar="N", help=batch)
    parser.add_argument("--lr", type=float, default=ProbeSettings.lr, metavar="RATE", help="initial learning rate (default: %(default)s)")
    finetune.add_columns(parser)
    parser.add_examples(*EXAMPLES)


def run(args: argparse.Namespace) -> int:
    """Prints the scores of every layer, of the mix and of the baselines. Returns 0. Raises UserError."""
    cluster.must_be_alone(os.environ, "jaxenc probe")
    for item in args.overrides:
        if not item.removeprefix("--config.").startswith(READ):
            raise UserError("a probe does not read this field", item, "leave it out; --epochs, --batch, --lr and --seeds set the training")
    settings = ProbeSettings(_layers(args.layers), args.seeds, epochs=args.epochs, batch=args.batch, lr=args.lr)
    # A probe reads no fine-tuning hyper-parameters, and some families have none published.
    tune = finetune.resolve(args.config, args.model, "--model", [*args.overrides, "--config.published="], finetune.columns(args))
    table = probe(args.model, tune, args.workdir, settings)
    print(f"{table.units['train']:,} units to train on, {table.units['dev']:,} to score, {settings.seeds} seed{'s' * (settings.seeds > 1)}")
    print(*lines(table), sep="\n")
    return 0


def _layers(text: str) -> tuple[int, ...]:
    if text == ALL:
        return ()
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError as error:
        raise UserError("not a list of layers", f"--layers {text}", "write all, or numbers as in 0,3,6") from error
