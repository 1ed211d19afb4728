"""`jaxenc resize-vocab`: more words for a trained model and its tokenizer."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from jaxenc.cli.parser import Parser
from jaxenc.convert import onward
from jaxenc.convert.resize import extended
from jaxenc.data.folders import must_be_new
from jaxenc.data.tokenizers import Tokenizer
from jaxenc.errors import UserError
from jaxenc.files import read_lines
from jaxenc.inference.load import load

BLANK = "in a byte-level vocabulary a word inside a sentence is written with the blank before it: ' word'"


def add_arguments(parser: Parser) -> None:
    parser.add_argument("--model", required=True, metavar="DIR", help="a run's directory, or the folder of one checkpoint")
    pieces = parser.add_mutually_exclusive_group(required=True)
    pieces.add_argument("--add", metavar="FILE", help=f"the new pieces, one a line in UTF-8; {BLANK}")
    pieces.add_argument("--tokens", nargs="+", metavar="PIECE", help=f"the new pieces themselves; {BLANK}")
    parser.add_argument("--out", required=True, metavar="DIR", help="folder to write: parameters, config and tokenizer")
    parser.add_examples("jaxenc resize-vocab --model runs/first --add words.txt --out runs/larger")


def run(args: argparse.Namespace) -> int:
    """Writes the larger model; prints its size and how to train it further. Raises UserError."""
    out = Path(args.out).expanduser()
    must_be_new(out, "--out")
    pieces = args.tokens or _pieces(Path(args.add))
    model = load(os.path.expanduser(args.model))
    if model.tokenizer is None:
        raise UserError("it has no tokenizer to add pieces to", f"--model {args.model}", "convert it with one")
    larger = extended(model, pieces)
    larger.save(out)
    had, size = (one.tokenizer.vocabulary.size for one in (model, larger))
    print(f"{out}: {size:,} pieces, {size - had:,} of them new")
    if taken := min(model.config.model.vocab_size, size) - had:
        spare = larger.config.model.spare_rows
        print(f"{taken:,} of them take rows of the token table that had no piece; {spare:,} such rows are left")
    print("new rows start as the mean of all old rows, equal to one another until they are trained")
    if advice := _advice(larger.tokenizer, pieces):
        print(advice, file=sys.stderr)
    print(onward.commands(out, larger))
    return 0


def _advice(tokenizer: Tokenizer, pieces: Sequence[str]) -> str:
    """A warning about new pieces that become two tokens inside a sentence, in vocabularies whose words start with a blank; '' for none."""
    bare = [piece for piece in pieces if not piece[0].isspace()]
    if not bare or not tokenizer.encode([" "])[0]:
        return ""
    return f"resize-vocab: {bare[0]!r} inside a sentence is two tokens, a blank and it: as one it is written {' ' + bare[0]!r}"


def _pieces(path: Path) -> list[str]:
    """The lines of a file that are not blank. A blank at the start of a line is part of the piece. Raises UserError for none."""
    advice = "name a UTF-8 file with one piece a line"
    pieces = [line for line in read_lines(path, advice) if line.strip()]
    if not pieces:
        raise UserError("holds no piece", path, advice)
    return pieces
