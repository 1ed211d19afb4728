"""`jaxenc resize-vocab`: more words for a trained model and its tokenizer."""

import argparse
from pathlib import Path

from jaxenc.data.files import must_be_new, read_lines
from jaxenc.errors import UserError
from jaxenc.models.resize import resized
from jaxenc.pretrained import Model, load, save


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the flags of the command."""
    parser.add_argument("--model", required=True, metavar="DIR", help="a run's directory, or the folder of one checkpoint")
    pieces = parser.add_mutually_exclusive_group(required=True)
    pieces.add_argument("--add", metavar="FILE", help="the new pieces, one a line in UTF-8")
    pieces.add_argument("--tokens", nargs="+", metavar="PIECE", help="the new pieces themselves")
    parser.add_argument("--out", required=True, metavar="DIR", help="folder to write: parameters, config and tokenizer")


def run(args: argparse.Namespace) -> int:
    """Writes the larger model; prints its size and how to train it on. Raises UserError."""
    out = Path(args.out).expanduser()
    must_be_new(out, "--out")
    pieces = args.tokens or _pieces(Path(args.add))
    model = load(Path(args.model).expanduser())
    if model.tokenizer is None:
        raise UserError(f"--model {args.model}: it has no tokenizer to add pieces to: convert it with one")
    had, rows = model.tokenizer.vocabulary.size, model.config.model.vocab_size
    if had != rows:
        raise UserError(f"--model {args.model}: it has {rows:,} rows and its tokenizer {had:,} pieces: new pieces need equal numbers")
    tokenizer = model.tokenizer.extended(pieces)
    size = tokenizer.vocabulary.size
    save(out, Model(model.config.with_vocabulary(tokenizer.vocabulary), resized(model.params, had, size), tokenizer))
    print(f"{out}: {size:,} pieces, {size - had:,} of them new; each starts as the mean of the old ones")
    print(f"the optimizer's moments start again: build data with {out}/tokenizer and run `jaxenc pretrain --init-from {out}`")
    return 0


def _pieces(path: Path) -> list[str]:
    lines = read_lines(path, "name a UTF-8 file with one piece a line")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            raise UserError(f"{path}:{number}: blank line; every line is one piece")
    return lines
