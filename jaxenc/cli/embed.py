"""`jaxenc embed`: writes the contextual vectors of the words of a text to a file."""

import argparse
import sys
from pathlib import Path

from jaxenc.cli import words_of
from jaxenc.cli.parser import Parser
from jaxenc.inference import sentences, vectors, words
from jaxenc.inference.embed import embed
from jaxenc.inference.load import load


def add_arguments(parser: Parser) -> None:
    parser.add_argument("--model", required=True, metavar="DIR", help="a run's directory, or the folder of one checkpoint")
    words_of.add_arguments(parser)
    parser.add_argument("--out", required=True, type=Path, metavar="FILE", help="file to write: .npz, or .hdf5 as AllenNLP writes it")
    layers = 'all, [layers, words, width] (default), the top one or their average, [words, width], or a mix: {"weights": [...], "gamma": 1}'
    parser.add_argument("--layers", default="all", metavar="all|top|average|mix:FILE", help=layers)
    parser.add_argument("--batch", type=int, default=words.BATCH, metavar="N", help="sentences at a time (default: %(default)s)")
    stateful = "line i starts from the state after line i - N, where N is --batch, as allenai/bilm-tf does"
    parser.add_argument("--stateful", action="store_true", help=stateful)
    parser.add_examples("jaxenc embed --model runs/first --input sentences.txt --raw --out vectors.npz")


def run(args: argparse.Namespace) -> int:
    """Writes the file; prints the number of sentences and words. Raises UserError."""
    vectors.check(args.out)
    lines = list(sentences.read(args.input))
    if args.stateful and args.batch >= len(lines):
        print(f"embed: --batch {args.batch} is at least the {len(lines)} lines, so no line continues from another", file=sys.stderr)
    written = embed(load(args.model), lines, args.out, args.layers, args.batch, args.stateful, words_of.by(args))
    print(f"{args.out}: {written.sentences:,} sentences, {written.words:,} words, vectors of {written.width}")
    return 0
