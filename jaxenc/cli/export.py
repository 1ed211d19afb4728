"""`jaxenc export`: a model of ours as a folder that other libraries open."""

import argparse
from pathlib import Path

from jaxenc import pretrained
from jaxenc.convert import hf
from jaxenc.data.files import must_be_new


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", required=True, metavar="DIR", help="a run's directory, or the folder of one checkpoint")
    parser.add_argument("--to", choices=("hf",), default="hf", help="hf: what transformers' from_pretrained opens (default)")
    parser.add_argument("--out", required=True, metavar="DIR", help="folder to write")
    parser.add_argument("--dtype", choices=hf.WRITTEN, default=hf.WRITTEN[0], help="of the weights (default: %(default)s)")


def run(args: argparse.Namespace) -> int:
    """Loads and writes; prints where and what to open it with. Raises UserError."""
    out = Path(args.out).expanduser()
    must_be_new(out, "--out")
    for folder, name in hf.save(out, pretrained.load(Path(args.model).expanduser()), args.dtype).items():
        print(f"{folder}: {name}.from_pretrained({str(folder)!r}) opens it")
    return 0
