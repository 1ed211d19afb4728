"""A panel as an SVG in a page: it scales, follows the theme of the page and shows values under the pointer."""

import html
import json
import math
from collections.abc import Sequence

import numpy as np

from jaxenc.reports import labels, scale, style
from jaxenc.reports.panels import DOTS, LINE, MARKS, Curve, Panel
from jaxenc.reports.scale import Scale
from jaxenc.reports.thin import thin

WIDTH, HEIGHT = 440, 260
LEFT, RIGHT, TOP, BOTTOM = 64, 428, 12, 222
# Points of a curve that are drawn: about two a unit of the picture's width.
MOST = 800
LINE_HEIGHT = 13


def chart(panel: Panel) -> str:
    """The `<figure>` of a panel; with a sentence in place of the picture where no curve has a point."""
    title = f"<figcaption>{html.escape(panel.title)}</figcaption>"
    curves = [_thinned(curve) for curve in panel.curves if any(map(math.isfinite, curve.y))]
    if not curves:
        return f'<figure>{title}<p class="soft">no numbers yet</p></figure>'
    across = scale.fitted((x for curve in curves for x in curve.x), margin=0.01)
    up = scale.fitted([*(y for curve in curves for y in curve.y), *panel.levels.values()], panel.log)
    drawn = [*_axes(panel, across, up), *_levels(panel, up), *(_curve(curve, across, up) for curve in curves)]
    guide = f'<line class="guide" y1="{TOP}" y2="{BOTTOM}" x1="0" x2="0"/>'
    named = html.escape(f"{panel.title} over {panel.across}: {', '.join(dict.fromkeys(curve.name for curve in curves))}", quote=True)
    picture = f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{named}">{"".join(drawn)}{guide}</svg>'
    return f'<figure data-chart>{title}{picture}{_legend(curves)}<div class="tip"></div>{_data(panel, curves, across)}</figure>'


def _thinned(curve: Curve) -> Curve:
    kept = thin(np.array(curve.y), MOST)
    return Curve(curve.name, tuple(curve.x[i] for i in kept), tuple(curve.y[i] for i in kept), curve.style, curve.kind)


def _x(across: Scale, value: float) -> float:
    return LEFT + across.share(value) * (RIGHT - LEFT)


def _y(up: Scale, value: float) -> float:
    return BOTTOM - min(max(up.share(value), -1.0), 2.0) * (BOTTOM - TOP)


def _axes(panel: Panel, across: Scale, up: Scale) -> list[str]:
    out = []
    ticks = up.ticks()
    for value, text in zip(ticks, scale.texts(ticks, panel.percent), strict=True):
        y = _y(up, value)
        out.append(f'<line class="grid" x1="{LEFT}" x2="{RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        out.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{text}</text>')
    ticks = across.ticks(5, panel.whole)
    for value, text in zip(ticks, scale.texts(ticks), strict=True):
        out.append(f'<text x="{_x(across, value):.1f}" y="{BOTTOM + 16}" text-anchor="middle">{text}</text>')
    out.append(f'<text x="{(LEFT + RIGHT) / 2}" y="{HEIGHT - 5}" text-anchor="middle">{html.escape(panel.across)}</text>')
    return out


def _levels(panel: Panel, up: Scale) -> list[str]:
    """The horizontal lines and their labels, which sit at the right end, moved apart where lines are close."""
    out = [f'<line class="levelline" x1="{LEFT}" x2="{RIGHT}" y1="{_y(up, y):.1f}" y2="{_y(up, y):.1f}"/>' for y in panel.levels.values()]
    places = labels.apart([_y(up, y) - 3 for y in panel.levels.values()], LINE_HEIGHT, TOP + LINE_HEIGHT - 3, BOTTOM - 3)
    for name, y in zip(panel.levels, places, strict=True):
        out.append(f'<text class="level" x="{RIGHT}" y="{y:.1f}" text-anchor="end">{html.escape(name)}</text>')
    return out


def _curve(curve: Curve, across: Scale, up: Scale) -> str:
    """A line, broken where a number is not finite, and markers on held-out numbers."""
    points = [(_x(across, x), _y(up, y)) if math.isfinite(x) and math.isfinite(y) else None for x, y in zip(curve.x, curve.y, strict=True)]
    colour, out = style.colour(curve.style), ""
    if curve.kind != MARKS:
        faint, dashes = (' opacity="0.75"', style.dashes(curve.style)) if curve.kind == LINE else ("", "")
        dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
        out = f'<path fill="none" style="stroke:{colour}" stroke-width="1.5" stroke-linejoin="round"{faint}{dashed} d="{_line(points)}"/>'
    if curve.dotted:
        dots = "".join(style.dot(*point) for point in points if point)
        out += f'<path style="fill:{colour}" opacity="0.75" d="{dots}"/>'
    if curve.kind != LINE:
        few = [point for point in points if point][:: max(1, len(points) // 60)]
        out += f'<path style="fill:{colour}" d="{"".join(style.marker(curve.style, *point) for point in few)}"/>'
    return out


def _line(points: Sequence[tuple[float, float] | None]) -> str:
    parts, pen = [], "M"
    for point in points:
        if point is None:
            pen = "M"
        else:
            parts.append(f"{pen}{point[0]:.1f},{point[1]:.1f}")
            pen = "L"
    return "".join(parts)


def _legend(curves: Sequence[Curve]) -> str:
    """An item for each name: its line where it has one, its marker where it has one."""
    items = {}
    for curve in curves:
        items.setdefault((curve.name, curve.style), set()).add(curve.kind)
    out = []
    for (name, number), kinds in items.items():
        out.append(f"<li>{sample(number, LINE in kinds, DOTS in kinds or MARKS in kinds)}{html.escape(name)}</li>")
    both = {kind for kinds in items.values() for kind in kinds} >= {LINE, DOTS}
    note = '<li class="soft">line: training; markers: held out</li>' if both else ""
    return f'<ul class="legend">{"".join(out)}{note}</ul>'


def sample(number: int, line: bool, dots: bool) -> str:
    """The line and the marker of a style, as a small picture."""
    dashes = f' stroke-dasharray="{style.dashes(number)}"' if style.dashes(number) else ""
    drawn = f'<path style="stroke:{style.colour(number)}" stroke-width="1.5"{dashes} d="M0,6H28"/>' if line else ""
    drawn += f'<path style="fill:{style.colour(number)}" d="{style.marker(number, 14, 6)}"/>' if dots else ""
    return f'<svg width="28" height="12" viewBox="0 0 28 12" aria-hidden="true">{drawn}</svg>'


def _data(panel: Panel, curves: Sequence[Curve], across: Scale) -> str:
    """What the script of the page reads."""
    rounded = lambda values: [float(f"{value:.5g}") if math.isfinite(value) else None for value in values]
    exact = lambda values: [round(value, 6) if math.isfinite(value) else None for value in values]
    several = {curve.kind for curve in curves} >= {LINE, DOTS}
    named = lambda curve: f"{curve.name}, held out" if several and curve.kind == DOTS else curve.name
    data = {
        **{"width": WIDTH, "left": LEFT, "right": RIGHT, "low": across.low, "high": across.high, "across": panel.across},
        "curves": [{"name": named(curve), "x": exact(curve.x), "y": rounded(curve.y)} for curve in curves],
    }
    text = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return f'<script type="application/json">{text}</script>'
