"""`jaxenc data`: text to a folder of token shards."""

import argparse
from typing import NoReturn

from jaxenc.data.build import build
from jaxenc.data.inspect import describe
from jaxenc.errors import UserError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--input", nargs="+", required=True, metavar="FILE", help="text or .jsonl, .gz or .xz; or docstrings")
    parser.add_argument("--tokenizer", required=True, metavar="DIR", help="folder of `jaxenc tokenizer`, or with a published vocab.txt")
    parser.add_argument("--out", required=True, metavar="DIR", help="folder to write")
    parser.add_argument("--held-out", type=float, default=0.01, metavar="SHARE", help="share of documents kept apart (default: 0.01)")
    parser.add_argument("--workers", type=int, default=1, metavar="N", help="processes; the result does not depend on it (default: 1)")
    parser.add_argument("--inspect", action=_Inspect, metavar="DIR", help="only print what a data folder holds: facts, sizes and some rows")
    parser.add_argument("--runner", choices=("local", "beam"), default="local", help="where the workers run (default: local)")


class _Inspect(argparse.Action):
    """Prints what a data folder holds and ends the command, as --help does: the arguments of a build are then not needed."""

    def __call__(self, parser: argparse.ArgumentParser, namespace: object, folder: str, option: str | None = None) -> NoReturn:
        for line in describe(folder):
            print(line)
        parser.exit()


def run(args: argparse.Namespace) -> int:
    """Builds the folder and prints its counts. Raises UserError."""
    if args.runner != "local":
        raise UserError(f"--runner {args.runner}: not supported yet; use --runner local with --workers")
    result = build(args.input, args.tokenizer, args.out, args.held_out, args.workers)
    unknown = "predicted as unknown" if result.tokenizer.words else "unknown"
    for name, split in result.splits.items():
        print(
            f"{name}: {split.documents:,} documents, {split.sentences:,} sentences, {split.tokens:,} tokens, "
            f"{split.unknown / max(split.tokens, 1):.2%} {unknown}, {split.empty_sentences + split.empty_documents:,} dropped as empty"
        )
    changed = ", ".join(f"{name.replace('_', ' ')} {count:,}" for name, count in result.reader.items() if count)
    if changed:
        print(f"{args.out}: changed while reading: {changed}")
    return 0
