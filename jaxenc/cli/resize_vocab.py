"""`jaxenc resize-vocab`: more words for a trained model and its tokenizer."""

import argparse
from pathlib import Path

from jaxenc.data.files import user_errors
from jaxenc.errors import UserError
from jaxenc.models.resize import resized
from jaxenc.pretrained import load, save


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the flags of the command."""
    parser.add_argument("--model", required=True, metavar="DIR", help="a run's directory, or the folder of one checkpoint")
    pieces = parser.add_mutually_exclusive_group(required=True)
    pieces.add_argument("--add", metavar="FILE", help="the new pieces, one a line in UTF-8")
    pieces.add_argument("--tokens", nargs="+", metavar="PIECE", help="the new pieces themselves")
    parser.add_argument("--out", required=True, type=Path, metavar="DIR", help="folder to write: parameters, config and tokenizer")


def run(args: argparse.Namespace) -> int:
    """Writes the larger model; prints its size and how to train it on. Raises UserError."""
    pieces = args.tokens or lines(Path(args.add))
    model = load(args.model)
    if model.tokenizer is None:
        raise UserError(f"--model {args.model}: it has no tokenizer to add pieces to: convert it with one")
    had, rows = model.tokenizer.vocabulary.size, model.config.model.vocab_size
    if had != rows:
        raise UserError(f"--model {args.model}: it has {rows:,} rows and its tokenizer {had:,} pieces: new pieces need equal numbers")
    tokenizer = model.tokenizer.extended(pieces)
    size = tokenizer.vocabulary.size
    save(args.out, model.config.with_vocabulary(tokenizer.vocabulary), resized(model.params, had, size), tokenizer)
    print(f"{args.out}: {size:,} pieces, {size - had:,} of them new; each starts as the mean of the old ones")
    print(f"the optimizer's moments start again: build data with {args.out}/tokenizer and run `jaxenc pretrain --init-from {args.out}`")
    return 0


def lines(path: Path) -> list[str]:
    """The lines of a UTF-8 file without their ends. Raises UserError for a file that cannot be read and for a blank line."""
    with user_errors(path, "name a file with one piece a line"):
        content = path.read_bytes()
    try:
        found = content.decode("utf-8").removesuffix("\n").split("\n")
    except UnicodeDecodeError as error:
        raise UserError(f"{path}:{content[: error.start].count(10) + 1}: not UTF-8; write the pieces in UTF-8") from error
    found = [line.removesuffix("\r") for line in found]
    blank = [number for number, line in enumerate(found, 1) if not line.strip()]
    if blank:
        raise UserError(f"{path}:{blank[0]}: blank line; every line is one piece")
    return found
