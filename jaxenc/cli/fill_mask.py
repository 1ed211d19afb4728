"""`jaxenc fill-mask`: the tokens that a model predicts for a mask."""

import argparse
from collections import Counter

from jaxenc.cli.parser import Parser
from jaxenc.inference.fill_mask import Guess
from jaxenc.inference.load import load


def add_arguments(parser: Parser) -> None:
    parser.add_argument("--model", required=True, metavar="DIR", help="a run's directory, or the folder of one checkpoint")
    parser.add_argument("--text", required=True, action="append", help="a text with the model's mask, [MASK] or <mask>; may be repeated")
    k = "how many candidates for each mask, as `k` of `Model.fill_mask`; --top is an older name (default: %(default)s)"
    parser.add_argument("--k", "--top", type=int, default=5, metavar="K", help=k)
    parser.add_examples("jaxenc fill-mask --model runs/first --text 'Paris is in [MASK].' --k 3")


def run(args: argparse.Namespace) -> int:
    """Prints each text and, for each of its masks, the most probable tokens with their probabilities."""
    model = load(args.model)
    for text in args.text:
        print("\n".join([text, *(shown(guesses) for guesses in model.fill_mask(text, args.k))]))
    return 0


def shown(guesses: list[Guess]) -> str:
    """`  library 0.21 · module 0.11 · ...`; of candidates with the same text, with and without a blank before it, the pieces as they are
    in the vocabulary."""
    times = Counter(guess.text for guess in guesses)
    return "  " + " · ".join(f"{guess.text if times[guess.text] == 1 else guess.token} {guess.probability:.2f}" for guess in guesses)
