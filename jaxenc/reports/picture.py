"""The panels of a report as a PNG."""

import io
import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from jaxenc.errors import one_line
from jaxenc.reports import labels, scale, style
from jaxenc.reports.panels import DOTS, LINE, MARKS, Curve, Panel
from jaxenc.reports.thin import thin

MOST = 2000  # points of a curve
LABEL = 7.0  # points, of the labels of levels


def picture(panels: Sequence[Panel]) -> bytes:
    """The panels with curves or levels as a PNG, three in a row: training as lines, held-out numbers with markers, levels as dotted lines
    with labels that do not overlap."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    shown = [panel for panel in panels if panel.curves or panel.levels]
    across = min(3, max(1, len(shown)))
    down = max(1, -(-len(shown) // across))
    figure, axes = pyplot.subplots(down, across, figsize=(4.8 * across, 3.6 * down), layout="constrained", squeeze=False)
    figure.get_layout_engine().set(w_pad=0.1, h_pad=0.1)
    for axis in axes.flat[len(shown) :]:
        axis.set_axis_off()
    for axis, panel in zip(axes.flat[: len(shown)], shown, strict=True):
        draw(axis, panel)
    file = io.BytesIO()
    with warnings.catch_warnings():
        # A name in a script that the font lacks is drawn as boxes; the page shows it.
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        warnings.filterwarnings("ignore", "Matplotlib currently does not support .* natively")
        figure.canvas.draw()
        for axis in axes.flat[: len(shown)]:
            _move_labels_apart(axis)
        figure.savefig(file, format="png", dpi=130)
    pyplot.close(figure)
    return file.getvalue()


def draw(axis: Any, panel: Panel) -> None:
    """Draws a panel on a matplotlib Axes."""
    for curve in panel.curves:
        _curve(axis, curve)
    up = scale.fitted([*(y for curve in panel.curves for y in curve.y), *panel.levels.values()], panel.log)
    if up.log:
        axis.set_yscale("log")
    axis.set_ylim(up.low, up.high)
    axis.set_title(one_line(panel.title), loc="left", fontsize=10, parse_math=False)
    axis.set_xlabel(panel.across, fontsize=9)
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(alpha=0.3, linewidth=0.5)
    axis.tick_params(labelsize=8)
    ends = scale.fitted((x for curve in panel.curves for x in curve.x), margin=0.01)
    if panel.curves:
        axis.set_xlim(ends.low, ends.high)
    _ticks(axis.xaxis, scale.Scale(*axis.get_xlim()).ticks(5, panel.whole))
    _ticks(axis.yaxis, up.ticks(), panel.percent)
    for name, y in panel.levels.items():
        axis.axhline(y, linestyle=":", linewidth=1, color="dimgrey")
        at = {"xy": (1, y), "xytext": (0, 2), "xycoords": axis.get_yaxis_transform(), "textcoords": "offset points"}
        box = {"boxstyle": "square,pad=0.1", "facecolor": "white", "edgecolor": "none", "alpha": 0.75}
        axis.annotate(name, **at, ha="right", fontsize=LABEL, color="black", bbox=box)
    if panel.curves:
        names = len({curve.name for curve in panel.curves})
        columns = 1 if max(len(curve.name) for curve in panel.curves) > 24 else min(names, 2)
        keys = _keys(panel.curves)
        legend = axis.legend(handles=keys, loc="upper center", bbox_to_anchor=(0.5, -0.19), ncols=columns, fontsize=7.5, frameon=False)
        # Set here, a name is not a formula and may begin with an underscore.
        for text, (name, _) in zip(legend.get_texts(), dict.fromkeys((curve.name, curve.style) for curve in panel.curves), strict=True):
            text.set_parse_math(False)
            text.set_text(one_line(name if len(name) < 40 else f"...{name[-36:]}"))


def _ticks(axis: Any, places: Sequence[float], percent: bool = False) -> None:
    axis.set_ticks(places, scale.texts(places, percent))
    axis.set_ticks([], minor=True)


def _curve(axis: Any, curve: Curve) -> None:
    kept = thin(np.array(curve.y), MOST)
    x, y = np.array(curve.x)[kept], np.array(curve.y)[kept]
    colour = style.COLOURS["light"][curve.style % len(style.COLOURS["light"])]
    look: dict[str, Any] = {"color": colour, "linewidth": 1.2}
    if curve.kind == LINE:
        look |= {"alpha": 0.75, "linestyle": _dashes(curve.style), **({"marker": ".", "markersize": 4} if curve.dotted else {})}
    else:
        look |= {"marker": style.MARKERS[curve.style % len(style.MARKERS)], "markersize": 4, "markevery": max(1, len(x) // 60)}
    axis.plot(x, np.where(np.abs(y) < 1e300, y, math.nan), **look | ({"linestyle": ""} if curve.kind == MARKS else {}))


def _dashes(number: int) -> Any:
    dashes = style.DASHES[number % len(style.DASHES)]
    return (0, dashes) if dashes else "-"


def _keys(curves: Sequence[Curve]) -> list[Any]:
    """A line of the legend for each name, in the order of the curves; `draw` sets the names."""
    from matplotlib.lines import Line2D

    kinds: dict[tuple[str, int], set[str]] = {}
    for curve in curves:
        kinds.setdefault((curve.name, curve.style), set()).add(curve.kind)
    found = []
    for (_, number), own in kinds.items():
        marked = {DOTS, MARKS} & own
        found.append(
            Line2D(
                [], [],
                color=style.COLOURS["light"][number % len(style.COLOURS["light"])],
                linestyle=_dashes(number) if LINE in own else "-" if DOTS in own else "",
                marker=style.MARKERS[number % len(style.MARKERS)] if marked else "",
                markersize=4,
                linewidth=1.2,
                label="-",
            )
        )  # fmt: skip
    return found


def _move_labels_apart(axis: Any) -> None:
    """Moves the labels of levels that are close to each other, once the size of the axes is known."""
    if not axis.texts:
        return
    pixel = 72.0 / axis.figure.dpi  # points
    heights = [text.get_window_extent().height * pixel for text in axis.texts]
    places = [axis.transData.transform((0, text.xy[1]))[1] * pixel for text in axis.texts]
    box = axis.get_window_extent()
    gap = max(heights) + 3
    moved = labels.apart([place + 2 for place in places], gap, box.y0 * pixel, box.y1 * pixel - max(heights))
    for text, place, new in zip(axis.texts, places, moved, strict=True):
        text.set_position((0, new - place))
