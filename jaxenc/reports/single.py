"""The page of one run."""

from collections.abc import Mapping, Sequence
from typing import Any

from jaxenc.reports import differences, panels, parts, several, verdict, words
from jaxenc.reports.chart import chart
from jaxenc.reports.goodput import PARTS, Goodput, goodput
from jaxenc.reports.history import History
from jaxenc.training.events import EVENTS


def page(run: History, counts: Mapping[str, float], notes: Sequence[str], recipe: Mapping[str, Any], comments: Sequence[str]) -> str:
    """The page of a run as HTML: header, comments, curves, last held-out numbers, where the time went, settings.

    counts: {count baseline: nats a token}. notes: what is missing and why. recipe: the fields of the run's recipe, {} where it is not
    known. comments: lines of "Is this normal?".
    """
    spent = goodput(run.events)
    return parts.page(f"{run.name}: jaxenc report", [
        *header(run, counts, spent),
        *(f'<p class="soft">{parts.escape(note)}</p>' for note in notes),
        normal(comments),
        parts.section(
            "Curves",
            f'<div class="charts">{"".join(map(chart, panels.of_run(run, counts)))}</div>',
            parts.folded("what the names mean", parts.table(("name", "meaning"), words.explained(run.rows))),
        ),
        parts.section("Last held-out numbers", held_out(run, counts)),
        parts.section("Where the time went", *time(run, spent)),
        parts.section("Configuration", *configuration(run, recipe)),
    ])  # fmt: skip


def header(run: History, counts: Mapping[str, float], spent: Goodput) -> list[str]:
    """The name of the run, what became of it, and what it is."""
    kinds = [str(run.settings.fields.get(part, {}).get("kind", "")) for part in ("objective", "model")]
    facts = {
        "recipe": differences.recipe_name(run),
        "objective, model": ", ".join(filter(None, kinds)),
        "when": verdict.began(run),
        "hardware": verdict.hardware(run),
        "versions": verdict.versions(run),
        "data": run.settings.data.named,
        "command": differences.commands(run),
    }
    said = "<br>".join(map(parts.escape, verdict.lines(run, counts, spent)))
    return [f"<h1>{parts.escape(run.name)}</h1>", f'<div class="verdict">{said}</div>', parts.facts(facts, ("command",))]


def normal(comments: Sequence[str]) -> str:
    """The section "Is this normal?", '' without comments."""
    items = "".join(f"<li>{parts.escape(line)}</li>" for line in comments)
    return parts.section("Is this normal?", f"<ul>{items}</ul>" if items else "")


def held_out(run: History, counts: Mapping[str, float]) -> str:
    """The table of the last held-out numbers, and the count baselines below them."""
    head = ("number", f"at step {run.held_out['step']:,}" if run.held_out else "value")
    return parts.table(head, several.held_out([run], counts), 1)


def time(run: History, spent: Goodput) -> list[str]:
    """The goodput table and the steps over time."""
    if not spent.wall:
        return [f'<p class="soft">This run has no {EVENTS}, so it is not known when it started, compiled, saved or stopped.</p>']
    shown = {name: seconds for name, seconds in spent.seconds.items() if seconds > 0}
    colours = {name: f"var(--c{(2, 1, 0, 3, 4, 6, 7, 5)[i]})" for i, name in enumerate(PARTS)}
    width = lambda name: f"flex:{shown[name] / spent.wall:.5f} 0 0;background:{colours[name]}"
    bar = "".join(f'<span style="{width(name)}" title="{name} {shown[name] / spent.wall:.1%}"></span>' for name in shown)
    rows = [(name, PARTS[name], parts.duration(seconds), f"{seconds / spent.wall:.1%}") for name, seconds in shown.items()]
    rows.append(("sum", "first start to last event", parts.duration(spent.wall), "100.0%"))
    table = parts.table(("part", "what it is", "time", "share"), rows, 2)
    for name in shown:
        table = table.replace(f"<td>{name}</td>", f'<td><span class="key" style="background:{colours[name]}"></span>{name}</td>', 1)
    saved = f"; {spent.checkpoints} checkpoints, the last of {parts.size(spent.saved_bytes)}" if spent.checkpoints else ""
    line = f"Goodput {spent.share:.1%}: training that counts, of the time from the first start to the last event. Starts: {spent.starts}"
    return [
        f"<p>{line}; steps taken twice: {spent.twice}{saved}.</p>",
        f'<div class="bar">{bar}</div>{table}',
        f'<div class="charts" style="margin-top:14px">{chart(panels.of_time(run))}</div>',
    ]


def configuration(run: History, recipe: Mapping[str, Any]) -> list[str]:
    """The settings: first those that differ from the recipe, then all."""
    every = parts.table(("field", "value"), [(path, value) for path, value in differences.settings(run.settings.fields).items()])
    if not recipe:
        return [parts.folded("all settings", every)]
    differing = [(path, *values) for path, values in differences.of_recipe(run, recipe).items()]
    table = parts.table(("differs from the recipe", "this run", differences.recipe_name(run)), differing)
    return [table or "<p>As in the recipe.</p>", parts.folded("all settings", every)]
