"""`jaxenc convert`: a published checkpoint to a run directory."""

import argparse
import shlex
import sys
import tempfile
from pathlib import Path

from jaxenc.checkpoint.restore import convert_source
from jaxenc.cli.parser import Parser
from jaxenc.convert import allennlp, fairseq, hf, onward, parity, tf
from jaxenc.data.folders import must_be_new
from jaxenc.errors import UserError
from jaxenc.families import BUILT_IN
from jaxenc.families.count import parameter_count
from jaxenc.inference.load import load
from jaxenc.progress import Bars
from jaxenc.storage import READ_HERE, must_be_local

SOURCES = {"hf": hf.load, "tf": tf.load, "allennlp": allennlp.load, "fairseq": fairseq.load}


def add_arguments(parser: Parser) -> None:
    google = ", ".join(kind for kind, family in BUILT_IN.items() if family.google)
    allennlp_kinds = ", ".join(kind for kind, family in BUILT_IN.items() if family.allennlp)
    fairseq_kinds = ", ".join(kind for kind, family in BUILT_IN.items() if family.fairseq)
    what = (
        f"a folder that transformers wrote, the prefix of a TensorFlow checkpoint that the authors published ({google}), a folder with an "
        f"options.json and HDF5 weights ({allennlp_kinds}), or a checkpoint of fairseq or its folder ({fairseq_kinds})"
    )
    parser.add_argument("--from", dest="source", required=True, metavar="hf:DIR|tf:PREFIX|allennlp:DIR|fairseq:DIR", help=what)
    parser.add_argument("--to", required=True, metavar="DIR", help="run directory to write")
    parser.add_argument("--tokenizer", default="", metavar="DIR|none", help="another tokenizer, or none (default: that of the source)")
    parser.add_argument(
        "--leave-out",
        action="append",
        default=[],
        metavar="PATTERN",
        help="tensors not to read, by their names in the file, such as 'crf.*': of heads that the model does not need (may be repeated)",
    )
    parser.add_argument("--check", action="store_true", help="compare with transformers; exit code 1 beyond the tolerance")
    parser.add_examples(
        "jaxenc convert --from hf:downloads/model --to runs/published --check",
        "jaxenc convert --from tf:downloads/uncased_L-12/model.ckpt --to runs/other",
    )


def run(args: argparse.Namespace) -> int:
    """Converts and saves; prints the folder, the heads and the number of parameters. Raises UserError."""
    kind, _, place = args.source.partition(":")
    if kind not in SOURCES or not place:
        meant = "" if kind in SOURCES else convert_source(Path(args.source).expanduser())
        hint = f"did you mean --from {shlex.quote(meant)}?" if meant else ""
        raise UserError(
            "not a source of models", f"--from {args.source}", hint or "name one as hf:DIR, tf:PREFIX, allennlp:DIR or fairseq:DIR"
        )
    if args.check:
        if kind == "allennlp":
            raise UserError(f"compares with transformers, which opens no {kind} model", "--check", "leave it out")
        parity.must_be_installed()
    out = Path(args.to).expanduser()
    must_be_new(out, "--to")
    must_be_local(place, "--from", READ_HERE)
    source = Path(place).expanduser()
    bars = Bars()
    with bars.shown(f"reading {args.source}"):
        found = SOURCES[kind](source, args.tokenizer, args.leave_out)
    if found.tokenizer is None and args.tokenizer != "none":
        print(f"convert: {place} has no tokenizer files: converted without one; --tokenizer DIR adds one", file=sys.stderr)
    with bars.shown(f"writing {out}"):
        found.save(out)
    heads = ", ".join(found.objective.heads) or "no heads"
    count = parameter_count(found.params, found.config.model.vocab_size, found.objective.vocabulary)
    print(f"{out}: {count:,} parameters, {heads}")
    with bars.shown("comparing with transformers"):
        code = _check(kind, source, out) if args.check else 0
    if not code:
        print(onward.commands(out, found))
    return code


def _check(kind: str, source: Path, out: Path) -> int:
    """Compares the written run with the source or, where transformers cannot open the source, with our own export of the run. Returns the
    exit code."""
    model, differences = load(out), None
    reason = f"transformers does not open {kind}:{source}"
    if kind == "hf":
        try:
            differences = parity.compare(model, source)
        except parity.Incomplete as error:
            reason = f"{error.where}: {error.what}"
    if differences is None:
        print(f"convert: {reason}: this compares with our own export of it", file=sys.stderr)
        with tempfile.TemporaryDirectory() as folder:
            hf.save(Path(folder) / "hf", model)
            differences = parity.compare(model, Path(folder) / "hf")
    print(parity.table(differences))
    return 0 if all(one.within for one in differences) else 1
