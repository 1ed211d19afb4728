"""`jaxenc data`: text to a folder of token shards."""

import argparse
import dataclasses
import shlex
import sys
from pathlib import Path
from typing import NoReturn

from jaxenc.cli import inputs
from jaxenc.data import held_out, report
from jaxenc.data.build import build
from jaxenc.data.duplicates import Duplicates
from jaxenc.data.inspect import counted, describe
from jaxenc.errors import UserError

DUPLICATES = {field.name: field.default for field in dataclasses.fields(Duplicates)}


def add_arguments(parser: argparse.ArgumentParser) -> None:
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
    parser.add_argument("--inspect", action=_Inspect, metavar="DIR", help="only print what a data folder holds: counts, sizes, some rows")
    parser.add_argument("--runner", choices=("local", "beam"), default="local", help="local processes or Apache Beam (default: local)")
    parser.add_argument("--beam-options", default="", metavar="OPTIONS", help="its pipeline options, in quotes: '--runner FlinkRunner ...'")
    parser.add_argument("--drop-duplicates", choices=("exact", "near"), default="", help="keep the first of equal or similar documents")
    parser.add_argument(
        "--duplicate-words", type=int, default=DUPLICATES["words"], metavar="N",
        help=f"near: length in words of the runs that are compared (default: {DUPLICATES['words']})",
    )  # fmt: skip
    parser.add_argument(
        "--duplicate-permutations", type=int, default=DUPLICATES["permutations"], metavar="N",
        help=f"near: hashes for each document (default: {DUPLICATES['permutations']})",
    )  # fmt: skip
    parser.add_argument(
        "--duplicate-similarity", type=float, default=DUPLICATES["similarity"], metavar="SHARE",
        help=f"near: smallest Jaccard index of their runs at which one is dropped (default: {DUPLICATES['similarity']})",
    )  # fmt: skip


class _Inspect(argparse.Action):
    """Prints what a data folder holds and exits, as --help does, so that the arguments of a build are not required."""

    def __call__(self, parser: argparse.ArgumentParser, namespace: object, folder: str, option: str | None = None) -> NoReturn:
        for line in describe(folder):
            print(line)
        parser.exit()


def run(args: argparse.Namespace) -> int:
    """Builds the folder and prints its report. Raises UserError."""
    if args.beam_options and args.runner != "beam":
        raise UserError("--beam-options: only --runner beam takes them")
    beam_options = shlex.split(args.beam_options) if args.runner == "beam" else None
    rule = Duplicates(args.drop_duplicates, args.duplicate_words, args.duplicate_permutations, args.duplicate_similarity)
    result = build(args.input, args.tokenizer, args.out, args.held_out, args.workers, inputs.reading(args), rule, beam_options)
    for name, split in result.splits.items():
        print(f"{name}: {counted(split, result.tokenizer)}, {split.empty_sentences + split.empty_documents:,} dropped as empty")
    folder = Path(args.out)
    if not (folder / report.FACTS).exists():
        print(f"{folder}: made by an older jaxenc, so it has no report", file=sys.stderr)
        return 0
    if not (folder / report.TEXT).exists():
        report.write(folder)
    print("\n".join(report.summary(folder)))
    print(f"sampled rows and lengths: {folder / report.TEXT}, {folder / report.PICTURE}")
    return 0
