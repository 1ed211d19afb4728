"""What the charts of a report show, by the names of the metrics; the page and the picture draw the same panels."""

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jaxenc.reports import align, labels
from jaxenc.reports.goodput import sessions
from jaxenc.reports.history import ADDRESS, History

TOKENS = "loss, nats a token"
DIRECTION_LOSSES = ("forward_loss", "backward_loss")
# Losses of a softmax over tokens, which count baselines can be compared with, beside those whose names end in `lm_loss`.
TOKEN_LOSSES = (*DIRECTION_LOSSES, "causal_loss", "forward_sampled_loss", "backward_sampled_loss")
RATES = ("mask_rate", "replaced", "padding")
# Not drawn: the axis itself, clocks and counts, and what is drawn under another name (a perplexity is the exponential of a loss).
LEFT_OUT = (*ADDRESS, "skipped")
LINE, DOTS, MARKS = "line", "dots", "marks"
FEW = 20  # points of a line below which each is marked with a dot: a line alone hides how few there are, and a single point


@dataclasses.dataclass(frozen=True)
class Curve:
    """name: in the legend. x, y: the points; y may hold NaN and infinities. style: number of its colour, dashes and marker. kind: LINE for
    training, DOTS for held-out numbers, MARKS for points without a line."""

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    style: int
    kind: str = LINE

    @property
    def dotted(self) -> bool:
        """Whether a dot marks each point of the line."""
        return self.kind == LINE and len(self.x) < FEW


@dataclasses.dataclass(frozen=True)
class Panel:
    """title: what y is. across: what x is. levels: {label: y} of horizontal lines. log: y is logarithmic where it spans a factor of 10.
    percent: y are shares, shown as percentages."""

    title: str
    across: str
    curves: tuple[Curve, ...]
    levels: Mapping[str, float] = dataclasses.field(default_factory=dict)
    log: bool = False
    percent: bool = False

    @property
    def whole(self) -> bool:
        """Whether x are whole numbers."""
        return all(x == round(x) for curve in self.curves for x in curve.x if math.isfinite(x))


def groups(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    """{title: names of metrics} of the panels with data. The token losses always have one, since it shows the count baselines. Numbers of
    one scale share a panel; a metric of no kind that is known here has its own."""
    names = {name: None for row in rows for name in row if name not in LEFT_OUT and not name.endswith(("perplexity", "_predictions"))}
    ending = lambda *ends: [name for name in names if name.endswith(ends)]
    tokens = [name for name in names if name.endswith("lm_loss") or name in TOKEN_LOSSES]
    others = [name for name in ending("_loss") if name not in tokens]
    accuracies = [name for name in names if name == "accuracy" or name.endswith("_accuracy")]
    found = {
        TOKENS: tokens,
        "other losses, nats": others,
        # With a single term the total is that term.
        "total loss": ["loss"] * ("loss" in names and len(tokens) + len(others) != 1),
        "accuracy": accuracies,
        "detection": ending("_auc", "_auc_identity", "_precision", "_recall"),
        "learning rate": ["lr"] * ("lr" in names),
        "gradient norm": ["gradient_norm"] * ("gradient_norm" in names),
        "tokens per second": ["tokens_per_second"] * ("tokens_per_second" in names),
        "model FLOPs utilisation (MFU)": ["mfu"] * any(row.get("mfu", 0) > 0 for row in rows),
        "share of tokens": [name for name in RATES if name in names],
    }
    shown = {name for group in found.values() for name in group} | {"loss", "mfu"}
    alone = {name: [name] for name in names if name not in shown}
    return {title: group for title, group in (found | alone).items() if group or title == TOKENS}


def of_run(run: History, counts: Mapping[str, float]) -> list[Panel]:
    """The panels of one run over its steps, one colour a metric. counts: {count baseline: nats a token}."""
    found = []
    for title, names in groups(run.rows).items():
        curves = [curve for style, name in enumerate(names) for curve in _both(run, name, float, style, name)]
        found.append(_panel(title, "step", curves, counts))
    return found


def of_runs(runs: Sequence[History], by: str, counts: Mapping[str, float]) -> list[Panel]:
    """The panels of several runs, one metric each and one colour a run. by: a name of `align.AXES`. Raises UserError as
    `align.positions`."""
    places = [align.positions(run, by) for run in runs]
    found = []
    for title, names in groups([row for run in runs for row in run.rows]).items():
        for name in names:
            curves = [curve for style, run in enumerate(runs) for curve in _both(run, name, places[style], style, run.name)]
            panel = _panel(title, align.AXES[by], curves, counts)
            found.append(dataclasses.replace(panel, title=_alone(title, name, len(names))))
    return found


def of_time(run: History) -> Panel:
    """Steps over the hours, minutes or seconds since the first start, with checkpoints, evaluations and starts as marks; without curves
    for a run without events."""
    if not (starts := sessions(run.events)):
        return Panel("steps over time", "time", ())
    began = starts[0][0]["time"] - starts[0][0]["seconds"]
    last = max(row["time"] for row in run.events) - began
    unit, size = next(((unit, size) for unit, size in (("hours", 3600.0), ("minutes", 60.0)) if last > 2 * size), ("seconds", 1.0))
    at = lambda row: (row["time"] - began) / size
    curves = []
    line: list[tuple[float, float]] = []
    for rows in starts:
        # A process that was killed and the next one are not joined.
        line += [(math.nan, math.nan)] * bool(line)
        line += [(at(row), row["step"]) for row in rows if row["event"] != "checkpoint"]
    curves.append(Curve("steps", *_columns(line), 0))
    for style, event in enumerate(("evaluation", "checkpoint", "start"), 1):
        points = [(at(row), row["step"]) for row in run.events if row["event"] == event]
        if points:
            curves.append(Curve(event, *_columns(points), style, MARKS))
    return Panel("steps over time", f"{unit} since the first start", tuple(curves))


def _panel(title: str, across: str, curves: Sequence[Curve], counts: Mapping[str, float]) -> Panel:
    levels = labels.merged(counts) if title == TOKENS else {}
    percent = title in ("model FLOPs utilisation (MFU)", "share of tokens")
    return Panel(title, across, tuple(curves), levels, title == "gradient norm", percent)


def _alone(title: str, name: str, many: int) -> str:
    """The title of a panel that shows one metric of a group of `many`: its name and the unit of the group, or the title of the group where
    the metric is all of it."""
    _, comma, unit = title.partition(", ")
    return f"{name}, {unit}" if comma else name if many > 1 else title


def _both(run: History, metric: str, place: Callable[[int], float], style: int, name: str) -> list[Curve]:
    """The curves of a metric in training and in evaluations, those there are."""
    found = []
    for split, kind in (("train", LINE), ("held_out", DOTS)):
        points = [(place(row["step"]), float(row[metric])) for row in run.rows if row["split"] == split and metric in row]
        if points:
            found.append(Curve(name, *_columns(points), style, kind))
    return found


def _columns(points: Sequence[tuple[float, float]]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    return tuple(x for x, _ in points), tuple(y for _, y in points)
