"""`jaxenc neighbours`: the nearest words of a word, in context and without."""

import argparse

from jaxenc.cli import words_of
from jaxenc.cli.parser import Parser
from jaxenc.errors import UserError
from jaxenc.inference import neighbours, sentences
from jaxenc.inference.load import load


def add_arguments(parser: Parser) -> None:
    parser.add_argument("--model", required=True, metavar="DIR", help="a run's directory, or the folder of one checkpoint")
    words_of.add_arguments(parser)
    parser.add_argument("--word", required=True, help="a word of the text; with --pieces any part of a line")
    parser.add_argument("--layer", type=int, default=-1, help="whose vectors are compared (default: -1, the top one)")
    parser.add_argument("--count", type=int, default=8, help="neighbours of each (default: %(default)s)")
    parser.add_argument("--senses", type=int, default=4, help="occurrences that are shown, unlike each other (default: %(default)s)")
    parser.add_examples("jaxenc neighbours --model runs/first --input sentences.txt --word bank")


def run(args: argparse.Namespace) -> int:
    """Prints the neighbours. Raises UserError."""
    for name in ("count", "senses"):
        if getattr(args, name) < 1:
            raise UserError("less than 1", f"--{name} {getattr(args, name)}", "use 1 or more")
    lines = list(sentences.read(args.input))
    model = load(args.model)
    cut = [sentences.cut(model, line, words_of.by(args), args.word) for line in lines]
    states, _ = model.shape
    if not -states <= args.layer < states:
        raise UserError(
            "the model has no such layer",
            f"--layer {args.layer}",
            f"use {-states} to {states - 1}, 0 for before any context and -1 for the top one",
        )
    layer = args.layer % states
    found = neighbours.report(model, cut, args.word, layer, args.count, args.senses)
    print("\n".join(neighbours.lines(found, cut, args.word, layer, states - 1)))
    return 0
