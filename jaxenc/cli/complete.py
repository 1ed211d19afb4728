"""`jaxenc complete`: texts continued by a causal model."""

import argparse
import sys
import unicodedata

from jaxenc.cli.parser import Parser
from jaxenc.errors import UserError
from jaxenc.inference import sentences
from jaxenc.inference.complete import DEFAULT_MAX_NEW, DEFAULT_SAMPLES
from jaxenc.inference.decode import POSITIONS
from jaxenc.inference.load import load
from jaxenc.inference.sampling import Sampling


def add_arguments(parser: Parser) -> None:
    parser.add_argument("--model", required=True, metavar="DIR", help="a run's directory, or the folder of one checkpoint")
    parser.add_argument("--text", action="append", default=[], help="a text to continue; may be repeated")
    parser.add_argument("--input", metavar="FILE", help="texts to continue, one a line, after those of --text")
    most = "maximum number of new tokens (default: %(default)s)"
    parser.add_argument("--max-new", type=int, default=DEFAULT_MAX_NEW, metavar="N", help=most)
    temperature = "0 takes the most probable token (default); otherwise tokens are sampled at this temperature"
    parser.add_argument("--temperature", type=float, default=Sampling.temperature, metavar="T", help=temperature)
    top_k = "sample from the K most probable tokens only (default: %(default)s, all)"
    parser.add_argument("--top-k", type=int, default=Sampling.top_k, metavar="K", help=top_k)
    samples = "continuations of each text (default: %(default)s)"
    parser.add_argument("--samples", type=int, default=DEFAULT_SAMPLES, metavar="N", help=samples)
    parser.add_argument("--seed", type=int, default=Sampling.seed, help="seed of the sampling (default: %(default)s)")
    parser.add_examples("jaxenc complete --model runs/causal --text 'It was a dark' --temperature 0.8")


def run(args: argparse.Namespace) -> int:
    """Prints each text with its continuation, one a line. Warns on stderr of unknown tokens in a prompt, of texts that reach the model's
    last position, and of texts that are longer than its training rows. Raises UserError."""
    texts = [*args.text, *(sentences.read(args.input) if args.input else ())]
    if not texts:
        raise UserError("no text is given", fix="name one with --text, or a file with --input")
    if args.top_k and not args.temperature:
        print("complete: --top-k has no effect without a --temperature above 0", file=sys.stderr)
    model = load(args.model)
    found = model.complete(texts, args.max_new, args.temperature, args.top_k, args.seed, args.samples)
    for number, one in enumerate(found, 1):
        print(shown(one.text), flush=True)
        if one.unknown:
            print(f"complete: line {number}: {one.unknown} tokens of the prompt are not in the vocabulary", file=sys.stderr)
        if one.finish_reason == POSITIONS:
            after = f"after {len(one.tokens)} of {args.max_new} tokens"
            print(f"complete: line {number} ends {after}, at the model's last position, {model.config.model.positions}", file=sys.stderr)
    if beyond := sum(one.length > model.config.longest_row for one in found):
        what = f"the model was trained on rows of {model.config.longest_row} tokens, and {beyond} of {len(found)} texts are longer"
        print(f"complete: {what}: do not trust the text beyond that", file=sys.stderr)
    return 0


def shown(text: str) -> str:
    """`text` on one line: line ends and control characters, which a byte-level vocabulary may produce, are escaped."""
    return "".join(ascii(letter)[1:-1] if unicodedata.category(letter) in ("Cc", "Cs", "Zl", "Zp") else letter for letter in text)
