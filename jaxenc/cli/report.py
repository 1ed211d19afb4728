"""`jaxenc report`: the curves of a run, and its held-out loss beside what counting gives."""

import argparse
import pathlib
import sys
from typing import Any

from jaxenc.cli import jobs
from jaxenc.data import baselines
from jaxenc.data.files import read_json
from jaxenc.errors import UserError
from jaxenc.run import from_dict
from jaxenc.train import record
from jaxenc.train.record import METRICS

CURVES = (
    ("loss", ("mlm_loss", "next_sentence_loss", "rtd_loss")),
    ("accuracy", ("mlm_accuracy", "next_sentence_accuracy", "rtd_accuracy", "rtd_auc")),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--workdir", required=True, type=pathlib.Path, help="the run's directory")
    parser.add_argument("--no-baselines", action="store_true", help="leave out the count baselines, which read the whole data set")


def run(args: argparse.Namespace) -> int:
    """Writes report.png and prints a table of the last held-out numbers, and the count baselines of the run's data."""
    report(args.workdir, with_baselines=not args.no_baselines)
    return 0


def report(workdir: pathlib.Path, with_baselines: bool) -> dict[str, float]:
    """{baseline: nats a token} after writing report.png and printing the table. Raises UserError when the run wrote no metrics."""
    path = workdir / METRICS
    if not path.is_file():
        raise UserError(f"{path}: no such file: name the directory of a run that has trained")
    rows = record.read(path)
    config = from_dict(read_json(workdir / jobs.CONFIG, "name a run directory"))
    counts: dict[str, float] = {}
    try:
        counts = baselines.count_baselines(config.data.path) if with_baselines else {}
    except UserError as error:
        print(f"report: no count baselines: {error}", file=sys.stderr)
    held_out = [row for row in rows if row["split"] == "held_out"]
    for name, value in (held_out[-1] if held_out else {}).items():
        if name not in ("step", "split", "seconds"):
            print(f"held out {name:<26}{value:>9.4f}   at step {held_out[-1]['step']:,}")
    for name, nats in counts.items():
        print(f"counts   {name:<26}{nats:>9.4f}   nats a token")
    draw(rows, counts, workdir / "report.png")
    print(f"curves   {workdir / 'report.png'}")
    return counts


def draw(rows: list[dict[str, Any]], counts: dict[str, float], path: pathlib.Path) -> None:
    """Losses with the count baselines, and accuracies, by step; training as lines, held-out numbers as dots."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, len(CURVES), figsize=(11, 4), layout="constrained")
    for axis, (title, names) in zip(axes, CURVES, strict=True):
        for name in names:
            for split, style in (("train", "-"), ("held_out", "o")):
                points = [(row["step"], row[name]) for row in rows if row["split"] == split and name in row]
                if points:
                    axis.plot(*zip(*points, strict=True), style, label=f"{split.replace('_', ' ')} {name}", linewidth=1, markersize=4)
        if title == "loss":
            for label, nats in counts.items():
                axis.axhline(nats, linestyle=":", linewidth=1, color="grey")
                axis.annotate(f"counts: {label}", (0, nats), xytext=(2, 2), textcoords="offset points", fontsize=7, color="grey")
        axis.set(xlabel="step", title=title)
        if axis.lines:
            axis.legend(fontsize=8)
    figure.savefig(path, dpi=120)
    pyplot.close(figure)
