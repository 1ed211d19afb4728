"""The look of a report: colours, dashes and markers of curves, and the style sheet of the page."""

import string

# {theme: colours of curves}: each has a contrast of 3 or more with its background, and neighbours differ in lightness too.
COLOURS = {
    "light": ("#0b62a8", "#c2410c", "#15803d", "#9333ea", "#a16207", "#be185d", "#0e7490", "#57534e"),
    "dark": ("#6cb6ff", "#ff9f5a", "#5fd38a", "#c79bff", "#e3c04a", "#ff8ac0", "#5fd4e6", "#b8b2ab"),
}
# Lengths of dash and gap, in the widths of the line; () = solid.
DASHES = ((), (6, 2.5), (1.5, 1.5), (8, 2, 1.5, 2), (3, 2), (10, 3), (5, 1.5, 1.5, 1.5, 1.5, 1.5), (1.5, 3))
# Of matplotlib; `marker` draws the same in SVG.
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")


def colour(style: int) -> str:
    """The CSS variable of a curve's colour."""
    return f"var(--c{style % len(MARKERS)})"


def dashes(style: int, width: float = 1.5) -> str:
    """The stroke-dasharray of a curve, '' for a solid line."""
    return " ".join(f"{length * width:g}" for length in DASHES[style % len(DASHES)])


def marker(style: int, x: float, y: float, size: float = 3.4) -> str:
    """The path of a marker around a point, in SVG."""
    s = size
    shapes = (
        f"m{-s:g},0a{s:g},{s:g} 0 1 0 {2 * s:g},0a{s:g},{s:g} 0 1 0 {-2 * s:g},0z",
        f"m{-s:g},{-s:g}h{2 * s:g}v{2 * s:g}h{-2 * s:g}z",
        f"m0,{-1.2 * s:g}l{1.2 * s:g},{2.1 * s:g}h{-2.4 * s:g}z",
        f"m0,{-1.4 * s:g}l{1.4 * s:g},{1.4 * s:g}l{-1.4 * s:g},{1.4 * s:g}l{-1.4 * s:g},{-1.4 * s:g}z",
        f"m0,{1.2 * s:g}l{1.2 * s:g},{-2.1 * s:g}h{-2.4 * s:g}z",
        f"m{-s / 2.5:g},{-1.2 * s:g}h{2 * s / 2.5:g}v{0.8 * s:g}h{0.8 * s:g}v{0.8 * s:g}h{-0.8 * s:g}v{0.8 * s:g}"
        f"h{-0.8 * s:g}v{-0.8 * s:g}h{-0.8 * s:g}v{-0.8 * s:g}h{0.8 * s:g}z",
        f"m{-s:g},{-s:g}l{2 * s:g},{2 * s:g}l{-s:g},{-s:g}l{s:g},{-s:g}l{-2 * s:g},{2 * s:g}l{s:g},{-s:g}z",
        f"m0,{-1.4 * s:g}l{0.5 * s:g},{1.9 * s:g}l{-1.7 * s:g},{-1 * s:g}h{2.4 * s:g}l{-1.7 * s:g},{1 * s:g}z",
    )
    return f"M{x:.1f},{y:.1f}{shapes[style % len(shapes)]}"


def dot(x: float, y: float) -> str:
    """The path of a small dot at a point, in SVG."""
    return marker(0, x, y, 1.8)


def _variables(theme: str) -> str:
    names = ("bg", "fg", "soft", "line", "card", "mark")
    values = {
        "light": ("#ffffff", "#1c1e21", "#5b616b", "#d9dce1", "#f6f7f9", "#fff4d6"),
        "dark": ("#14161a", "#e8eaed", "#a2a9b4", "#363b44", "#1c1f25", "#3a3214"),
    }[theme]
    own = [f"--{name}:{value}" for name, value in zip(names, values, strict=True)]
    return ";".join([f"color-scheme:{theme}", *own, *(f"--c{i}:{value}" for i, value in enumerate(COLOURS[theme]))])


# data-theme on the root element overrules what the browser prefers.
SHEET = string.Template("""
:root{$light}
@media (prefers-color-scheme:dark){:root{$dark}}
:root[data-theme=light]{$light}
:root[data-theme=dark]{$dark}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--fg);font:15px/1.5 system-ui,sans-serif}
main{max-width:1560px;margin:0 auto;padding:16px clamp(10px,2vw,28px) 48px}
h1{font-size:1.5rem;margin:.3em 0;overflow-wrap:anywhere}
h2{font-size:1.15rem;margin:1.8em 0 .6em}
p{margin:.3em 0;max-width:90ch}
code,.code{font-family:ui-monospace,monospace;font-size:.88em;overflow-wrap:anywhere}
dl{display:grid;grid-template-columns:max-content 1fr;gap:2px 14px;margin:.6em 0}
dt{color:var(--soft)}
dd{margin:0;overflow-wrap:anywhere;min-width:0}
.verdict{margin:.6em 0;padding:.6em .9em;border-left:4px solid var(--c0);background:var(--card);overflow-wrap:anywhere}
.scroll{overflow-x:auto;max-width:100%}
table{border-collapse:collapse;font-variant-numeric:tabular-nums}
th,td{padding:3px 14px 3px 0;text-align:left;vertical-align:top;border-bottom:1px solid var(--line);overflow-wrap:anywhere}
th{color:var(--soft);font-weight:600}
td.n,th.n{text-align:right;white-space:nowrap;overflow-wrap:normal}
tr.differs td{background:var(--mark)}
.charts{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,400px),1fr));gap:14px}
figure{margin:0;padding:10px 12px 8px;background:var(--card);border:1px solid var(--line);border-radius:8px;position:relative;min-width:0}
figcaption{font-weight:600;overflow-wrap:anywhere}
svg.chart{display:block;width:100%;height:auto;touch-action:pan-y}
svg text{font:12px system-ui,sans-serif;fill:var(--soft)}
svg text.level{fill:var(--fg);paint-order:stroke;stroke:var(--card);stroke-width:3px;stroke-linejoin:round}
.grid{stroke:var(--line);stroke-width:1;vector-effect:non-scaling-stroke}
.levelline{stroke:var(--soft);stroke-width:1;stroke-dasharray:2 3}
.guide{stroke:var(--soft);stroke-width:1;visibility:hidden}
ul.legend{list-style:none;display:flex;flex-wrap:wrap;gap:2px 16px;margin:2px 0 0;padding:0;font-size:13px}
ul.legend li{display:flex;align-items:center;gap:6px;min-width:0;overflow-wrap:anywhere}
ul.legend svg{flex:none}
.tip{position:absolute;visibility:hidden;pointer-events:none;z-index:2;background:var(--bg);color:var(--fg);border:1px solid var(--line);
border-radius:6px;padding:4px 8px;font-size:12.5px;line-height:1.35;white-space:nowrap;max-width:96%;overflow:hidden;
box-shadow:0 2px 8px #0003}
.bar{display:flex;height:20px;border-radius:5px;overflow:hidden;max-width:900px;margin:.6em 0;background:var(--line)}
.bar span{display:block;min-width:0}
.key{display:inline-block;width:.8em;height:.8em;border-radius:2px;margin-right:.5em}
details{margin:.8em 0}
summary{cursor:pointer;color:var(--soft)}
.soft{color:var(--soft)}
.word{display:inline-block;max-width:100%}
@media (max-width:560px){dl{grid-template-columns:1fr}dd{margin-bottom:6px}svg text{font-size:13.5px}}
a{color:var(--c0)}
""").substitute(light=_variables("light"), dark=_variables("dark"))

# Values under the pointer: of each curve, the point nearest in x.
SCRIPT = """
"use strict";
for (const figure of document.querySelectorAll("figure[data-chart]")) {
  const svg = figure.querySelector("svg.chart"), tip = figure.querySelector(".tip"), guide = figure.querySelector(".guide");
  const data = JSON.parse(figure.querySelector("script").textContent);
  const nearest = (xs, x) => {
    let best = -1;
    xs.forEach((value, i) => {
      if (value !== null && (best < 0 || Math.abs(value - x) < Math.abs(xs[best] - x))) best = i;
    });
    return best;
  };
  const text = (value) => value === null ? "not a number" : Math.abs(value) >= 1000 ? value.toLocaleString("en", {maximumFractionDigits: 1})
    : String(Number(value.toPrecision(4)));
  const hide = () => { tip.style.visibility = guide.style.visibility = "hidden"; };
  svg.addEventListener("pointerleave", hide);
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect(), scale = data.width / box.width;
    const share = ((event.clientX - box.left) * scale - data.left) / (data.right - data.left);
    if (share < -0.02 || share > 1.02) return hide();
    const x = data.low + share * (data.high - data.low), curves = data.curves.filter((curve) => curve.x.length);
    let at = null;
    for (const curve of curves) {
      const i = nearest(curve.x, x);
      if (i >= 0 && (at === null || Math.abs(curve.x[i] - x) < Math.abs(at - x))) at = curve.x[i];
    }
    if (at === null) return hide();
    tip.replaceChildren();
    const line = (words) => { const div = document.createElement("div"); div.textContent = words; tip.append(div); };
    line(data.across + " " + text(at));
    for (const curve of curves) {
      const i = nearest(curve.x, at);
      if (i >= 0) line(curve.name + "  " + text(curve.y[i]) + (curve.x[i] === at ? "" : "  at " + text(curve.x[i])));
    }
    const place = data.left + (at - data.low) / (data.high - data.low) * (data.right - data.left);
    guide.setAttribute("x1", place);
    guide.setAttribute("x2", place);
    const left = place / scale, width = tip.offsetWidth, room = figure.clientWidth - width - 6;
    tip.style.left = Math.max(4, Math.min(left + 24 > room ? left - width - 4 : left + 24, room)) + "px";
    tip.style.top = (event.clientY - figure.getBoundingClientRect().top + 14) + "px";
    tip.style.visibility = guide.style.visibility = "visible";
  });
}
"""
