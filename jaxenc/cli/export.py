"""`jaxenc export`: a model to a folder that other libraries open."""

import argparse
import os
import sys
from pathlib import Path

from jaxenc.cli.parser import Parser
from jaxenc.convert import allennlp, hf
from jaxenc.data.folders import must_be_new
from jaxenc.errors import UserError
from jaxenc.inference import load
from jaxenc.progress import Bars
from jaxenc.storage import is_url
from jaxenc.tasks.kept import kept
from jaxenc.tasks.tag import Tag

INSTALL = "pip install torch transformers --extra-index-url https://download.pytorch.org/whl/cpu"
TO = "hf: what transformers' from_pretrained opens (default); allennlp: an options.json and weights in HDF5"

FIRST_PIECES = (
    'words are tagged by their first pieces: pipeline("token-classification", aggregation_strategy="first") reads them, "simple" does not'
)


def add_arguments(parser: Parser) -> None:
    parser.add_argument("--model", required=True, metavar="DIR", help="a run's directory, or the folder of one checkpoint")
    parser.add_argument("--seed", type=int, metavar="N", help="which seed of a work directory (default: the best on the dev set)")
    parser.add_argument("--to", choices=("hf", "allennlp"), default="hf", help=TO)
    parser.add_argument("--out", required=True, metavar="DIR", help="folder to write")
    parser.add_argument("--dtype", choices=hf.WRITTEN, default=hf.WRITTEN[0], help="of the weights (default: %(default)s)")
    parser.add_examples("jaxenc export --model runs/first --to hf --out exported")


def run(args: argparse.Namespace) -> int:
    """Loads and exports; prints the folder and how to open it. Raises UserError."""
    out = Path(args.out).expanduser()
    must_be_new(out, "--out")
    folder = os.path.expanduser(args.model)
    where, why = kept(folder if is_url(folder) else Path(folder), args.seed)
    model = load.load(where)
    if str(where) != folder.rstrip("/"):
        print(f"export: {where}{f', {why}' if why else ''}", file=sys.stderr)
    if args.to == "allennlp":
        if args.dtype != hf.WRITTEN[0]:
            raise UserError(f"the published files hold {hf.WRITTEN[0]}", f"--dtype {args.dtype}", "leave it out")
        with Bars().shown(f"writing {out}"):
            allennlp.save(out, model)
        print(f"{out}: {allennlp.OPTIONS} and {allennlp.WEIGHTS}")
        return 0
    if model.tokenizer is not None and model.tokenizer.only_here:
        print(f"export: {model.tokenizer.only_here}", file=sys.stderr)
    with Bars().shown(f"writing {out}"):
        written = hf.save(out, model, args.dtype)
    for folder, name in written.items():
        print(f"{folder}: {name}.from_pretrained({str(folder)!r}) opens it")
    print(f"export: that needs torch and transformers, for a CPU: {INSTALL}", file=sys.stderr)
    if isinstance(model.task, Tag):
        print(f"export: {FIRST_PIECES}", file=sys.stderr)
    return 0
