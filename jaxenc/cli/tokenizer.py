"""`jaxenc tokenizer`: trains a vocabulary on text."""

import argparse
import dataclasses
import functools
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType

from jaxenc.cli import inputs
from jaxenc.cli.parser import Parser
from jaxenc.data import readers
from jaxenc.data.folders import must_be_new
from jaxenc.data.readers.document import described
from jaxenc.data.tokenizers import bpe, load, marks, training, word_bpe, word_list, wordpiece
from jaxenc.data.tokenizers.lines import LongWords, thinned
from jaxenc.data.tokenizers.normalization import FORMS, Normalization
from jaxenc.data.tokenizers.sentencepiece import unigram
from jaxenc.data.tokenizers.wordpiece_rules import LONGEST_WORD
from jaxenc.errors import UserError
from jaxenc.files import made

# {--type: module that trains it}; characters are a list of words
TYPES: Mapping[str, ModuleType] = {
    "wordpiece": wordpiece,
    "bpe": bpe,
    "word_bpe": word_bpe,
    "unigram": unigram,
    "characters": word_list,
}
CUT = ("wordpiece", "word_bpe")  # types that cut words of more than LONGEST_WORD characters
FEW = 0.01  # share of a text in such words up to which no message is printed


def add_arguments(parser: Parser) -> None:
    inputs.add_arguments(parser)
    parser.add_argument("--type", choices=TYPES, default="wordpiece", help="kind of vocabulary (default: wordpiece)")
    parser.add_argument("--vocab-size", type=int, default=30000, metavar="N", help="pieces, or words to predict (default: 30000)")
    rule, switch = Normalization(), argparse.BooleanOptionalAction
    normalize = "nfc: letters and marks composed; nfkc: also ligatures, full-width and presentation forms folded; none: text as it is"
    parser.add_argument("--normalize", choices=FORMS, default=rule.form, help=f"{normalize} (default: {rule.form})")
    parser.add_argument("--lowercase", action=switch, default=rule.lowercase, help="lower-case the text (default: off)")
    accents = "remove accents, and with them vowels and tones of many scripts (default: off)"
    parser.add_argument("--strip-accents", action=switch, default=rule.strip_accents, help=accents)
    parser.add_argument("--pretokenized", action="store_true", help="characters: words stand between blanks and a line is a sentence")
    parser.add_argument("--workers", type=int, default=1, metavar="N", help="threads that count words; the result is the same (default: 1)")
    parser.add_argument("--out", required=True, metavar="DIR", help="folder to write")
    parser.add_examples("jaxenc tokenizer --input text/*.txt --vocab-size 16000 --out tokenizer")


def run(args: argparse.Namespace) -> int:
    """Trains and saves; prints the folder and the size. Raises UserError."""
    if args.type != "characters" and args.pretokenized:
        raise UserError("cuts words itself", f"--type {args.type}", "use --type characters with --pretokenized, or leave that out")
    out = Path(args.out)
    must_be_new(out, "--out")
    long_words, counts, sample = LongWords(), readers.Counts(), []
    lines = _lines(args, counts) if args.type == "characters" else thinned(_lines(args, counts), long_words)
    with made(out) as folder:
        training.train_and_save(_train(args), marks.sampled(lines, sample), folder, args.workers)
    tool = load(out)
    _report(args.type, long_words)
    size, words_read = tool.vocabulary.size, tool.vocabulary.words
    print(f"{out}: {size:,} words to predict, {words_read:,} to read" if words_read else f"{out}: {size:,} pieces")
    if size < args.vocab_size:
        less = "fewer words" if words_read else "fewer pieces"
        print(f"tokenizer: the text gave {less} than --vocab-size {args.vocab_size:,}; more text gives more", file=sys.stderr)
    if noticed := described(dataclasses.asdict(counts)):
        print(f"tokenizer: while reading: {noticed}", file=sys.stderr)
    lost = marks.count(sample, tool.written)
    if lost.many:
        print(f"tokenizer: warning: --strip-accents drops {lost.summary}; leave it out to keep them", file=sys.stderr)
    return 0


def _train(args: argparse.Namespace) -> training.Train:
    own = {"pretokenized": args.pretokenized} if args.type == "characters" else {}
    rule = Normalization(args.normalize, args.lowercase, args.strip_accents)
    return functools.partial(TYPES[args.type].train, vocab_size=args.vocab_size, rule=rule, **own)


def _report(kind: str, counts: LongWords) -> None:
    long = f"words of more than {LONGEST_WORD} characters"
    if kind in CUT and counts.share > FEW:
        way = f"which --type {kind} cuts into parts of at most {LONGEST_WORD}; --type unigram and bpe find pieces anywhere in them"
        print(f"tokenizer: {counts.share:.1%} of the text is in {long}, {way}", file=sys.stderr)
    if counts.left_out:
        kept = f"of {counts.long:,} characters in {long}, {counts.used:,} are trained on"
        print(f"tokenizer: {counts.left_out:.1%} of the text was left out: {kept}", file=sys.stderr)


def _lines(args: argparse.Namespace, counts: readers.Counts) -> Iterator[str]:
    reading = inputs.reading(args)
    sources = readers.inputs(args.input, reading, counts)
    for document in readers.watched(sources, reading, counts, "tokenizer"):
        yield from document.lines
