"""`jaxenc predict`: answers of a fine-tuned model to new examples."""

import argparse
import codecs
import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from jaxenc.cli.parser import Parser
from jaxenc.data.folders import must_be_new_file
from jaxenc.errors import UserError
from jaxenc.files import user_errors, written
from jaxenc.inference import predict
from jaxenc.inference.load import load
from jaxenc.processes import cluster
from jaxenc.tasks.framing import TRUNCATIONS
from jaxenc.tasks.kept import kept

STDOUT = "-"
IN_MEMORY = 1 << 20  # characters of output to keep in memory before a temporary file is used


EXAMPLES = (
    "jaxenc predict --model runs/sst2 --input new.tsv --out answers.jsonl",
    "echo 'a fine film' | jaxenc predict --model runs/sst2 --input -",
)


def add_arguments(parser: Parser) -> None:
    model = "the work directory of `jaxenc finetune`, the run directory of one seed, or one checkpoint"
    parser.add_argument("--model", required=True, metavar="DIR", help=model)
    what = (
        "a .txt file with one text per line; a .tsv, .csv, .jsonl or .parquet file with the task's columns; for tags also a .conll or"
        " .conllu file; - for standard input"
    )
    parser.add_argument("--input", required=True, metavar="FILE", help=what)
    out = "file to write, one line of JSON per example; - for standard output (the default)"
    parser.add_argument("--out", default=STDOUT, metavar="FILE", help=out)
    parser.add_argument("--seed", type=int, metavar="N", help="which seed of a work directory (default: the best on the dev set)")
    text = "column of the text, or of both texts (default: the task's)"
    parser.add_argument("--text", default="", metavar="NAME[,NAME]", help=text)
    cut = f"how an example that is too long is shortened: {', '.join(TRUNCATIONS)} (default: the task's)"
    parser.add_argument("--truncation", choices=TRUNCATIONS, default="", metavar="RULE", help=cut)
    parser.add_argument("--batch", type=int, default=predict.BATCH, metavar="N", help="rows per batch (default: %(default)s)")
    parser.add_argument("--encoding", default="", metavar="NAME", help="of the input (default: UTF-8, or from its byte order mark)")
    parser.add_examples(*EXAMPLES)


def run(args: argparse.Namespace) -> int:
    """Writes all answers or, after an error, none. Reports on stderr which checkpoint answered and how many examples were shortened. Raises
    UserError."""
    cluster.must_be_alone(os.environ, "jaxenc predict")
    out = None if args.out == STDOUT else Path(args.out)
    if out:
        must_be_new_file(out, "--out")
    where, why = kept(args.model, args.seed)
    if str(where) != args.model.rstrip("/"):
        print(f"predict: {where}{f', {why}' if why else ''}", file=sys.stderr, flush=True)
    model = load(where)
    if model.task is None:
        what = "it was not fine-tuned, so it has no task to predict"
        raise UserError(what, f"--model {args.model}", "fine-tune it first with `jaxenc finetune`")
    predictor = model.predictor(args.truncation, tuple(args.text.split(",")) if args.text else ())
    count = shortened = 0
    with _output(out) as (stream, ascii_only):
        for some in predict.of_file(predictor, args.input, args.batch, args.encoding):
            stream.writelines(some.lines(ascii_only))
            count, shortened = count + len(some.examples), shortened + some.shortened
    if shortened:
        rows = f"rows of {predictor.framing.length} tokens"
        print(f"predict: {shortened:,} of {count:,} examples were shortened to fit {rows}", file=sys.stderr)
    return 0


@contextlib.contextmanager
def _output(out: Path | None) -> Iterator[tuple[TextIO, bool]]:
    """(stream to write to, whether it takes ASCII only). Its content appears in `out`, or on stdout, once the block has succeeded."""
    if out is None:
        with tempfile.SpooledTemporaryFile(IN_MEMORY, "w+", encoding="utf-8", errors="backslashreplace", newline="") as kept:
            yield kept, codecs.lookup(sys.stdout.encoding or "ascii").name != "utf-8"
            kept.seek(0)
            shutil.copyfileobj(kept, sys.stdout)
        return
    with (
        user_errors(out, "free some space or choose another --out"),
        written(out) as place,
        # A lone surrogate, which JSON allows, is escaped the way JSON escapes it.
        open(place, "w", encoding="utf-8", errors="backslashreplace", newline="") as file,
    ):
        yield file, False
