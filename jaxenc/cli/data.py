"""`jaxenc data`: text to a folder of token shards."""

import argparse
import dataclasses
import shlex
import sys
from pathlib import Path

from jaxenc.cli import inputs
from jaxenc.cli.parser import Parser
from jaxenc.data import held_out, report
from jaxenc.data.build import build
from jaxenc.data.duplicates import Duplicates
from jaxenc.data.inspect import counted, describe
from jaxenc.errors import UserError

DUPLICATES = {field.name: field.default for field in dataclasses.fields(Duplicates)}


def add_arguments(parser: Parser) -> None:
    inputs.add_arguments(parser)
    parser.add_argument("--tokenizer", required=True, metavar="DIR", help="folder of `jaxenc tokenizer`, or with a published vocab.txt")
    parser.add_argument("--out", required=True, metavar="DIR", help="folder to write")
    parser.add_argument(
        "--held-out",
        type=float,
        default=held_out.SHARE,
        metavar="SHARE",
        help=f"share of documents to hold out; at least 20, or one in ten of fewer than 200 (default: {held_out.SHARE})",
    )
    parser.add_argument("--workers", type=int, default=1, metavar="N", help="processes; the result does not depend on it (default: 1)")
    only = "print what a data folder holds, with some rows; takes no other option"
    parser.add_alone("--inspect", ("DIR",), only)
    parser.add_argument("--runner", choices=("local", "beam"), default="local", help="where the work is done (default: local)")
    parser.add_argument("--beam-options", default="", metavar="OPTIONS", help="of --runner beam, in quotes: '--runner FlinkRunner ...'")
    equal = "leave out documents that equal an earlier one, exactly or nearly"
    parser.add_argument("--drop-duplicates", choices=("exact", "near"), default="", help=equal)
    parser.add_argument(
        "--duplicate-words", type=int, default=DUPLICATES["words"], metavar="N",
        help=f"near: words of the runs that are compared (default: {DUPLICATES['words']})",
    )  # fmt: skip
    parser.add_argument(
        "--duplicate-permutations", type=int, default=DUPLICATES["permutations"], metavar="N",
        help=f"near: hashes a document (default: {DUPLICATES['permutations']})",
    )  # fmt: skip
    parser.add_argument(
        "--duplicate-similarity", type=float, default=DUPLICATES["similarity"], metavar="SHARE",
        help=f"near: share of equal runs that makes a duplicate (default: {DUPLICATES['similarity']})",
    )  # fmt: skip
    parser.add_examples(
        "jaxenc data --input text/*.txt --tokenizer tokenizer --out data --workers 4",
        "jaxenc data --inspect data",
    )


def run(args: argparse.Namespace) -> int:
    """Builds the folder and prints its report. With --inspect: prints what a folder holds. Raises UserError."""
    if args.inspect:
        for line in describe(*args.inspect):
            print(line)
        return 0
    if args.beam_options and args.runner != "beam":
        raise UserError("only --runner beam takes them", "--beam-options", "add --runner beam, or leave it out")
    beam_options = shlex.split(args.beam_options) if args.runner == "beam" else None
    rule = Duplicates(args.drop_duplicates, args.duplicate_words, args.duplicate_permutations, args.duplicate_similarity)
    result = build(args.input, args.tokenizer, args.out, args.held_out, args.workers, inputs.reading(args), rule, beam_options)
    for name, split in result.splits.items():
        print(f"{name}: {counted(split, result.tokenizer)}")
    folder = Path(args.out)
    if not (folder / report.FACTS).exists():
        print(f"{folder}: made by an older jaxenc, so it has no report", file=sys.stderr)
        return 0
    if not (folder / report.TEXT).exists():
        report.write(folder)
    print("\n".join(report.summary(folder)))
    print(f"sampled rows and lengths: {folder / report.TEXT}, {folder / report.PICTURE}")
    return 0
