"""The page of several runs, side by side."""

from collections.abc import Mapping, Sequence

from jaxenc.reports import align, differences, panels, parts, verdict
from jaxenc.reports.chart import chart, sample
from jaxenc.reports.goodput import goodput
from jaxenc.reports.history import ADDRESS, History


def page(runs: Sequence[History], by: str, counts: Mapping[str, float], notes: Sequence[str]) -> str:
    """The page of several runs as HTML: what became of each, last held-out numbers, settings that differ, and a chart of each metric with
    a curve of each run.

    by: a name of `align.AXES`. counts: {count baseline: nats a token}, where the runs share their data. Raises UserError as
    `align.positions`.
    """
    title = f"{len(runs)} runs"
    return parts.page(f"{title}: jaxenc report", [
        f"<h1>{title}, by {parts.escape(align.AXES[by])}</h1>",
        states(runs),
        *(f'<p class="soft">{parts.escape(note)}</p>' for note in notes),
        parts.section("Last held-out numbers", numbers(runs, counts)),
        parts.section("Settings that differ", settings(runs)),
        parts.section("Curves", curves(runs, by, counts)),
    ])  # fmt: skip


def states(runs: Sequence[History]) -> str:
    """A row for each run, with the line and marker of its curves."""
    rows = []
    for run in runs:
        spent = goodput(run.events)
        time = (parts.duration(spent.wall), f"{spent.share:.1%}", str(spent.starts)) if spent.wall else ("", "", "")
        rows.append((run.name, verdict.state(run), f"{align.positions(run, 'tokens')(run.step):,.0f}", *time))
    table = parts.table(("run", "", "tokens seen", "wall time", "goodput", "starts"), rows, 4)
    for style, run in enumerate(runs):
        name = f"<tr><td>{parts.escape(run.name)}"
        table = table.replace(name, name.replace("<td>", f"<td>{sample(style, True, True)} "), 1)
    return table


def held_out(runs: Sequence[History], counts: Mapping[str, float]) -> list[tuple[str, ...]]:
    """The rows of a table: the last held-out numbers of each run, and the count baselines below them."""
    names = dict.fromkeys(name for run in runs for name in run.held_out if name not in ADDRESS)
    shown = lambda run, name: parts.number(run.held_out[name]) if name in run.held_out else ""
    rows = [(name, *(shown(run, name) for run in runs)) for name in names]
    return rows + [(f"counts: {name.replace('_', ' + ')}, nats a token", *[f"{nats:.4f}"] * len(runs)) for name, nats in counts.items()]


def numbers(runs: Sequence[History], counts: Mapping[str, float]) -> str:
    """The table of the last held-out numbers of each run, with their steps."""
    rows = held_out(runs, counts)
    rows = [("step", *(f"{run.held_out['step']:,}" if run.held_out else "" for run in runs)), *rows] if rows else []
    return parts.table(("", *(run.name for run in runs)), rows, len(runs))


def settings(runs: Sequence[History]) -> str:
    """The fields that are not the same in all runs."""
    rows = [(path, *values) for path, values in differences.between(runs).items()]
    return parts.table(("field", *(run.name for run in runs)), rows) or "<p>None.</p>"


def curves(runs: Sequence[History], by: str, counts: Mapping[str, float]) -> str:
    """The charts."""
    return f'<div class="charts">{"".join(map(chart, panels.of_runs(runs, by, counts)))}</div>'
