"""The page of a fine-tuning: the scores of every seed, their spread, and the curves of all."""

import math
from collections.abc import Mapping, Sequence

from jaxenc.reports import parts, several
from jaxenc.reports.chart import chart
from jaxenc.reports.history import History
from jaxenc.reports.panels import MARKS, Curve, Panel
from jaxenc.tasks.results import REMEDY, SUMMARY, Results


def page(name: str, found: Results, runs: Sequence[History], links: Mapping[str, str]) -> str:
    """The page as HTML. name: of the fine-tuning. runs: those of the seeds that have metrics. links: {name of a run: address of its
    page}."""
    linked = "".join(f'<li><a href="{parts.escape(address, quote=True)}">{parts.escape(run)}</a></li>' for run, address in links.items())
    return parts.page(f"{name}: jaxenc report", [
        f"<h1>{parts.escape(name)}</h1>",
        f'<div class="verdict">{parts.escape(verdict(found))}</div>',
        parts.section("Scores", table(found), f'<div class="charts" style="margin-top:14px">{chart(scores(found))}</div>'),
        parts.section("Settings that differ", several.settings(runs) if len(runs) > 1 else ""),
        parts.section("Curves of the seeds", several.curves(runs, "step", {}) if runs else ""),
        parts.section("A page a seed", f"<ul>{linked}</ul>" if linked else ""),
    ])  # fmt: skip


def verdict(found: Results) -> str:
    """The score to quote, in a sentence."""
    done, metric = len(found.seeds) - found.failed, found.shown.get(found.metric, found.metric)
    same = f" A seed has one answer for all: {REMEDY}." if found.degenerate else ""
    failed = f" {found.left_out}." if found.failed else ""
    if found.metric not in found.summary:
        return f"No dev set, so no scores.{failed}" if done else "All seeds failed."
    spread = found.summary[found.metric]
    if done == 1:
        return f"{metric} {spread['median']:.4f}, one seed.{failed}{same}"
    return f"{metric} {spread['median']:.4f}, median of {done} seeds ({spread['min']:.4f} to {spread['max']:.4f}).{failed}{same}"


def table(found: Results) -> str:
    """A row a seed, then the summary of those that have scores."""
    names = [found.metric] * (found.metric in found.summary) + [name for name in found.summary if name != found.metric]
    rows = []
    for one in found.seeds:
        scores = [parts.number(one.scores[name]) if name in one.scores else "" for name in names]
        rows.append((str(one.seed), f"failed: {one.failed}" if one.failed else f"{one.step:,}", *scores))
    if len(found.seeds) - found.failed > 1:
        rows += [(key, "", *(_rounded(found.summary[name][key]) for name in names)) for key in SUMMARY]
    return parts.table(("seed", "step", *(found.shown.get(name, name) for name in names)), rows, len(names) + 1)


def scores(found: Results) -> Panel:
    """The metric of each seed, and the median as a line."""
    done = [one for one in found.seeds if not one.failed and found.metric in one.scores]
    title = found.shown.get(found.metric, found.metric)
    if not done:
        return Panel(title, "seed", ())
    curve = Curve("seeds", tuple(float(one.seed) for one in done), tuple(float(one.scores[found.metric]) for one in done), 0, MARKS)
    median = found.summary[found.metric]["median"] if found.metric in found.summary else math.nan
    return Panel(title, "seed", (curve,), {f"median {median:.4f}": median} if math.isfinite(median) else {})


def _rounded(value: float) -> str:
    return parts.number(value) if math.isfinite(value) else ""
