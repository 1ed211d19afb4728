"""`jaxenc report`: a page and a picture of one run or several, and the held-out loss next to count baselines."""

import argparse
import math
import shlex
import sys
from collections.abc import Mapping
from typing import Any

from jaxenc.cli import recipe
from jaxenc.cli.parser import Parser
from jaxenc.errors import UserError
from jaxenc.reports import history
from jaxenc.reports.align import AXES
from jaxenc.reports.history import ADDRESS
from jaxenc.reports.panels import DIRECTION_LOSSES
from jaxenc.reports.report import Report, compare, is_tuning, of_tuning, report
from jaxenc.storage import below
from jaxenc.tasks import results

# Losses of the full softmax over the next token, whose exponential is the perplexity of the text.
PERPLEXITIES = (*DIRECTION_LOSSES, "causal_loss")


def add_arguments(parser: Parser) -> None:
    help = "the run's directory, or its URL; several, each after a --workdir or all after one, are compared on one page"
    parser.add_argument("--workdir", required=True, action="extend", nargs="+", metavar="DIR", help=help)
    parser.add_argument("--align", choices=AXES, default="step", help="what several runs are aligned by")
    parser.add_argument(
        "--out", default="", metavar="FILE.html", help="the page; the picture is beside it (default: in the run's directory)"
    )
    parser.add_argument("--no-baselines", action="store_true", help="leave out the count baselines, which read the whole data set")
    parser.add_examples(
        "jaxenc report --workdir runs/first",
        "jaxenc report --workdir runs/first runs/second --align tokens",
    )


def run(args: argparse.Namespace) -> int:
    """Writes report.html and report.png and prints a table of the last held-out numbers, and the count baselines of the run's data. Of a
    fine-tuning it prints the table of its seeds, and how to see the curves of one; before any has finished, and beside other runs, its
    seeds are runs of their own."""
    runs = history.expanded(args.workdir)
    if len(args.workdir) == 1 and is_tuning(args.workdir[0]):
        folder = args.workdir[0]
        tuned, found = of_tuning(folder, args.out)
        print(*results.table(tuned), results.quoted(tuned, folder), f"page:    {found.page}", sep="\n")
        first = below(folder, results.SEEDS.format(tuned.seeds[0].seed))
        print(f"curves:  jaxenc report --workdir {shlex.quote(first)}")
    elif len(runs) > 1:
        found = compare(args.workdir, args.align, not args.no_baselines, args.out)
        for note in found.notes:
            print(f"report: {note}", file=sys.stderr)
        print(f"page     {found.page}", f"curves   {found.picture}", sep="\n")
    else:
        show(report(runs[0], not args.no_baselines, args.out, fields_of))
    return 0


def fields_of(name: str) -> Mapping[str, Any]:
    """The fields of a recipe of the package; {} for '' and for a file of the user, whose code a report does not run."""
    if name.partition(":")[0] not in recipe.names():
        return {}
    try:
        return recipe.read(name)
    except UserError:  # of a text after the colon that it takes no more
        return {}


def show(found: Report) -> None:
    """Prints a report, its notes on stderr."""
    for note in found.notes:
        print(f"report: {note}", file=sys.stderr)
    for name, value in found.held_out.items():
        if name not in ADDRESS and not name.endswith("_perplexity"):
            shown = f"{value:>9,}" if isinstance(value, int) else f"{value:>9.4f}"
            beside = f", {perplexity(value)}" if name in PERPLEXITIES else ""
            print(f"held out {name:<26}{shown}   at step {found.held_out['step']:,}{beside}")
    for name, nats in found.counts.items():
        print(f"counts   {name:<26}{nats:>9.4f}   nats a token, {perplexity(nats)}")
    print(f"page     {found.page}", f"curves   {found.picture}", sep="\n")


def perplexity(nats: float) -> str:
    """A loss in nats as the text `perplexity N`; `inf` above e^100, which no vocabulary reaches and math.exp may not hold."""
    return f"perplexity {math.inf if nats > 100 else math.exp(nats):,.1f}"
