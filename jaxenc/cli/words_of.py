"""What `jaxenc embed` and `jaxenc neighbours` take as the words of a text."""

import argparse

from jaxenc.cli.parser import Parser


def add_arguments(parser: Parser) -> None:
    """Adds `--input`, and `--raw` or `--pieces`."""
    parser.add_argument("--input", required=True, metavar="FILE", help="text, a sentence a line, its words between blanks")
    cuts = parser.add_mutually_exclusive_group()
    cuts.add_argument("--raw", action="store_true", help="the model's tokenizer cuts a line into words, such as punctuation marks")
    pieces = "the pieces of the vocabulary are the words of a line: for text without blanks between words"
    cuts.add_argument("--pieces", action="store_true", help=pieces)


def by(args: argparse.Namespace) -> str:
    """What cuts a line into words, one of `inference.sentences.CUTS`."""
    return "pieces" if args.pieces else "splitter" if args.raw else "blanks"
