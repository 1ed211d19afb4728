"""Plots the curves of a run."""

import pathlib
from typing import Any

TOKENS = "loss, nats a token"
DIRECTION_LOSSES = ("forward_loss", "backward_loss")
HELD_OUT = {"marker": "o", "markersize": 3.5, "linewidth": 0.8, "linestyle": "--"}


def panels(rows: list[dict[str, Any]]) -> dict[str, list[str]]:
    """{title: names of metrics} of the panels with data, and always of the token losses, which the count baselines are drawn with: metrics
    whose names end in `lm_loss`, and the losses of the two directions of a language model. Other losses have another scale and so a
    separate panel.
    """
    names = dict.fromkeys(name for row in rows for name in row)
    ending = lambda *ends: [name for name in names if name.endswith(ends)]
    tokens = [name for name in names if name.endswith("lm_loss") or name in DIRECTION_LOSSES]
    found = {
        "other losses, nats": [name for name in ending("_loss") if name not in tokens],
        "accuracy": ending("_accuracy"),
        "detection": ending("_auc", "_auc_identity", "_precision", "_recall"),
    }
    return {TOKENS: tokens, **{title: names for title, names in found.items() if names}}


def draw(rows: list[dict[str, Any]], counts: dict[str, float], path: pathlib.Path) -> None:
    """Plots the panels over steps to the file `path`: training as lines, held-out numbers as dots of the same colour, count baselines as
    dotted lines."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot
    from matplotlib.lines import Line2D

    shown = panels(rows)
    across = len(shown) if len(shown) < 4 else 2
    down = -(-len(shown) // across)
    figure, axes = pyplot.subplots(down, across, figsize=(4.6 * across, 3.6 * down), layout="constrained", squeeze=False)
    for axis, (title, names) in zip(axes.flat, shown.items(), strict=True):
        curves(axis, rows, names)
        axis.set_title(title, loc="left", fontsize=10)
        axis.set_xlabel("step", fontsize=9)
        if "nats" not in title:
            axis.set_ylim(-0.02, 1.02)
    baselines_beside(axes.flat[0], counts)
    keys = [Line2D([], [], color="dimgrey", linewidth=1, label="training"), Line2D([], [], color="dimgrey", **HELD_OUT, label="held out")]
    figure.legend(handles=keys, loc="outside lower center", ncols=2, fontsize=9, frameon=False)
    figure.savefig(path, dpi=150)
    pyplot.close(figure)


def curves(axis: Any, rows: list[dict[str, Any]], names: list[str]) -> None:
    """Draws metrics on a matplotlib Axes, one colour each."""
    from matplotlib.lines import Line2D

    keys = []
    for number, name in enumerate(names):
        for split, style in (("train", {"linewidth": 1, "alpha": 0.6}), ("held_out", HELD_OUT)):
            points = [(row["step"], row[name]) for row in rows if row["split"] == split and name in row]
            if points:
                axis.plot(*zip(*points, strict=True), color=f"C{number}", **style)
        keys.append(Line2D([], [], color=f"C{number}", linewidth=2, label=name))
    axis.legend(handles=keys, fontsize=8, frameon=False)
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(alpha=0.25, linewidth=0.5)
    axis.tick_params(labelsize=8)
    axis.locator_params(axis="x", nbins=5, integer=True)
    axis.xaxis.set_major_formatter("{x:,.0f}")


def baselines_beside(axis: Any, counts: dict[str, float]) -> None:
    """Draws the count baselines as horizontal lines on a matplotlib Axes, with names at the right end; equal values share a label."""
    names: dict[str, list[str]] = {}
    for name, nats in counts.items():
        axis.axhline(nats, linestyle=":", linewidth=1, color="dimgrey")
        names.setdefault(f"{nats:.2f}", []).append(name.replace("_", " + "))
    for number, alike in names.items():
        words = f"{', '.join(alike)} counts {number}"
        at = (1, float(number))
        axis.annotate(words, at, (0, 2), axis.get_yaxis_transform(), "offset points", ha="right", fontsize=7, color="dimgrey")
