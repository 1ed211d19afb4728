"""`jaxenc complete`: texts continued by a causal model."""

import argparse
import sys
import unicodedata

from jaxenc.errors import UserError
from jaxenc.inference import sentences
from jaxenc.inference.complete import MAX_NEW, SAMPLES
from jaxenc.inference.decode import POSITIONS
from jaxenc.inference.load import load
from jaxenc.inference.sampling import Sampling


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", required=True, metavar="DIR", help="a run's directory, or the folder of one checkpoint")
    parser.add_argument("--text", action="append", default=[], help="a text to continue; may be repeated")
    parser.add_argument("--input", metavar="FILE", help="texts to continue, one a line, after those of --text")
    parser.add_argument("--max-new", type=int, default=MAX_NEW, metavar="N", help="most tokens that a text gets (default: %(default)s)")
    temperature = "0 takes the most probable token (default), 1 draws by the model's probabilities, less is nearer to 0"
    parser.add_argument("--temperature", type=float, default=Sampling.temperature, metavar="T", help=temperature)
    top_k = "draw from the K most probable tokens only (default: %(default)s, all)"
    parser.add_argument("--top-k", type=int, default=Sampling.top_k, metavar="K", help=top_k)
    parser.add_argument("--samples", type=int, default=SAMPLES, metavar="N", help="continuations of each text (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=Sampling.seed, help="of the draws (default: %(default)s)")


def run(args: argparse.Namespace) -> int:
    """Prints each text with its continuation, one a line; on stderr, which texts end at the model's last position, and whether some are
    longer than the rows of its training. Raises UserError."""
    texts = [*args.text, *(sentences.read(args.input) if args.input else ())]
    if not texts:
        raise UserError("no text is given: name one with --text, or a file with --input")
    if args.top_k and not args.temperature:
        print("complete: --top-k changes nothing without a --temperature above 0", file=sys.stderr)
    model = load(args.model)
    found = model.complete(texts, args.max_new, args.temperature, args.top_k, args.seed, args.samples)
    for number, one in enumerate(found, 1):
        print(shown(one.text), flush=True)
        if one.unknown:
            print(
                f"complete: line {number} begins with a text of which this vocabulary does not know {one.unknown} tokens", file=sys.stderr
            )
        if one.ended == POSITIONS:
            after = f"after {len(one.tokens)} of {args.max_new} tokens"
            print(f"complete: line {number} stops {after}, at the model's last position, {model.config.model.positions}", file=sys.stderr)
    if beyond := sum(one.length > model.longest_row for one in found):
        what = f"the rows that the model was trained on have {model.longest_row} tokens, and {beyond} of {len(found)} texts have more"
        print(f"complete: {what}: expect no sense from there on", file=sys.stderr)
    return 0


def shown(text: str) -> str:
    """`text` on one line: line ends and control characters, which a model of bytes may write, are escaped."""
    return "".join(ascii(letter)[1:-1] if unicodedata.category(letter) in ("Cc", "Cs", "Zl", "Zp") else letter for letter in text)
