"""jaxenc tokenizer: a vocabulary from text."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from jaxenc.data import readers
from jaxenc.data.tokenizers import Tokenizer, bpe, sentencepiece, word_list, wordpiece
from jaxenc.errors import UserError
from jaxenc.files import made, must_be_new

KINDS = ("wordpiece", "bpe", "unigram", "characters")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the flags of the command."""
    parser.add_argument("--input", nargs="+", required=True, metavar="FILE", help="text or .jsonl, .gz or .xz; or docstrings")
    parser.add_argument("--type", choices=KINDS, default="wordpiece", help="kind of vocabulary (default: wordpiece)")
    parser.add_argument("--vocab-size", type=int, default=30000, metavar="N", help="pieces, or words to predict (default: 30000)")
    switch = argparse.BooleanOptionalAction
    parser.add_argument("--lowercase", action=switch, help="lower-case the text (wordpiece: on; others: off)")
    parser.add_argument("--strip-accents", action=switch, help="remove accents (wordpiece: as --lowercase; unigram: on)")
    parser.add_argument("--pretokenized", action="store_true", help="characters: words stand between blanks and a line is a sentence")
    parser.add_argument("--out", required=True, metavar="DIR", help="folder to write")


def run(args: argparse.Namespace) -> int:
    """Trains and saves; prints where and how large. Raises UserError."""
    if args.type == "bpe" and (args.lowercase, args.strip_accents) != (None, None):
        raise UserError("--type bpe: keeps the text as it is; leave out --lowercase and --strip-accents")
    if args.type == "characters" and args.strip_accents is not None:
        raise UserError("--type characters: reads accents as they are; leave out --strip-accents")
    if args.type != "characters" and args.pretokenized:
        raise UserError(f"--type {args.type}: cuts words itself; --pretokenized goes with --type characters")
    out = Path(args.out)
    must_be_new(out, "--out")
    tool = _trained(args)
    with made(out) as folder:
        tool.save(folder)
    size, words_read = tool.vocabulary.size, tool.vocabulary.words
    print(f"{out}: {size:,} words to predict, {words_read:,} to read" if words_read else f"{out}: {size:,} pieces")
    if size < args.vocab_size:
        less = "fewer words" if words_read else "fewer pieces"
        print(f"tokenizer: the text gave {less} than --vocab-size {args.vocab_size:,}; more text gives more", file=sys.stderr)
    return 0


def _trained(args: argparse.Namespace) -> Tokenizer:
    if args.type == "bpe":
        return bpe.train(_lines(args.input), args.vocab_size)
    if args.type == "unigram":
        return sentencepiece.train(_lines(args.input), args.vocab_size, bool(args.lowercase), args.strip_accents is not False)
    if args.type == "characters":
        return word_list.train(_lines(args.input), args.vocab_size, bool(args.lowercase), args.pretokenized)
    lowercase = True if args.lowercase is None else args.lowercase
    strip_accents = lowercase if args.strip_accents is None else args.strip_accents
    return wordpiece.train(_lines(args.input), args.vocab_size, lowercase, strip_accents)


def _lines(inputs: Sequence[str]) -> Iterator[str]:
    for document in readers.watched(readers.documents(inputs, readers.Counts()), "tokenizer"):
        yield from document.lines
