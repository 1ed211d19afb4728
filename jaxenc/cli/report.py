"""`jaxenc report`: the curves of a run, and its held-out loss next to count baselines."""

import argparse
import math
import pathlib
import sys

from jaxenc.report.curves import DIRECTION_LOSSES
from jaxenc.report.report import Report, report
from jaxenc.tasks import results
from jaxenc.training.record import METRICS

# Losses of the full softmax over the next token, whose exponential is the perplexity of the text.
PERPLEXITIES = (*DIRECTION_LOSSES, "causal_loss")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--workdir", required=True, metavar="DIR", help="the run's directory, or its URL")
    parser.add_argument("--no-baselines", action="store_true", help="leave out the count baselines, which read the whole data set")


def run(args: argparse.Namespace) -> int:
    """Writes report.png and prints a table of the last held-out numbers, and the count baselines of the run's data. Of a fine-tuning with
    several seeds it prints their table, and how to see the curves of one."""
    folder = pathlib.Path(args.workdir)
    if (folder / results.NAME).is_file() and not (folder / METRICS).is_file():
        found = results.Results.read(folder / results.NAME)
        print(*results.table(found), results.quoted(found, folder), sep="\n")
        print(f"curves:  jaxenc report --workdir {folder / results.SEEDS.format(found.seeds[0].seed)}")
        return 0
    show(report(args.workdir, with_baselines=not args.no_baselines))
    return 0


def show(found: Report) -> None:
    """Prints a report, its notes on stderr."""
    for note in found.notes:
        print(f"report: {note}", file=sys.stderr)
    for name, value in found.held_out.items():
        if name not in ("step", "split", "seconds") and not name.endswith("_perplexity"):
            shown = f"{value:>9,}" if isinstance(value, int) else f"{value:>9.4f}"
            beside = f", {perplexity(value)}" if name in PERPLEXITIES else ""
            print(f"held out {name:<26}{shown}   at step {found.held_out['step']:,}{beside}")
    for name, nats in found.counts.items():
        print(f"counts   {name:<26}{nats:>9.4f}   nats a token, {perplexity(nats)}")
    print(f"curves   {found.picture}")


def perplexity(nats: float) -> str:
    """A loss in nats as the text `perplexity N`; `inf` above e^100, which no vocabulary reaches and math.exp may not hold."""
    return f"perplexity {math.inf if nats > 100 else math.exp(nats):,.1f}"
