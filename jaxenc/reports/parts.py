"""The parts that pages are made of: text is escaped here."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape

from jaxenc.reports import style

# Nothing in a page may load anything.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"


def page(title: str, body: Iterable[str]) -> str:
    """A whole HTML document. title: text; body: HTML."""
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        f"<title>{escape(title)}</title><style>{style.SHEET}</style>"
    )
    inside = "\n".join(body)
    return (
        f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body>'
        f"<main>\n{inside}\n</main>\n<script>{style.SCRIPT}</script></body></html>\n"
    )


def section(title: str, *inside: str) -> str:
    """A heading and what is below it; '' where nothing is. title: text; inside: HTML."""
    return f"<h2>{escape(title)}</h2>\n" + "\n".join(inside) if any(inside) else ""


def facts(pairs: Mapping[str, str | Sequence[str]], code: Sequence[str] = ()) -> str:
    """A list of names and their texts; a name without a text is left out. code: names whose texts are commands."""
    out = []
    for name, texts in pairs.items():
        lines = [texts] if isinstance(texts, str) else texts
        wrap = _command if name in code else escape
        if any(lines):
            out.append(f"<dt>{escape(name)}</dt><dd>{'<br>'.join(map(wrap, lines))}</dd>")
    return f"<dl>{''.join(out)}</dl>"


def _command(line: str) -> str:
    """A command that is broken between its words, not after the hyphens of its options."""
    words = (f'<span class="word">{escape(word)}</span>' for word in line.split(" "))
    return f"<code>{' '.join(words)}</code>"


def table(head: Sequence[str], rows: Iterable[Sequence[str]], numbers: int = 0, differs: Sequence[int] = ()) -> str:
    """A table of texts that scrolls by itself where it is too wide. numbers: how many of the last columns are aligned to the right;
    differs: numbers of the rows that stand out. '' without rows."""
    first = len(head) - numbers
    kind = lambda i: ' class="n"' if i >= first else ""
    line = lambda cells, tag: "".join(f"<{tag}{kind(i)}>{escape(cell)}</{tag}>" for i, cell in enumerate(cells))
    out = []
    for number, cells in enumerate(rows):
        out.append(f"<tr{' class=differs' if number in differs else ''}>{line(cells, 'td')}</tr>")
    if not out:
        return ""
    return f'<div class="scroll"><table><thead><tr>{line(head, "th")}</tr></thead><tbody>{"".join(out)}</tbody></table></div>'


def folded(title: str, inside: str) -> str:
    """What is shown when the reader asks for it. title: text; inside: HTML."""
    return f"<details><summary>{escape(title)}</summary>{inside}</details>" if inside else ""


def duration(seconds: float) -> str:
    """Seconds as a text with two units at most: 12.3 s, 4 min 10 s, 3 h 5 min, 2 d 4 h."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    for size, small, names in ((3600, 60, ("min", "s")), (86400, 3600, ("h", "min"))):
        if whole < size:
            return f"{whole // small} {names[0]} {whole % small // (small // 60)} {names[1]}"
    return f"{whole // 86400} d {whole % 86400 // 3600} h"


def size(count: float) -> str:
    """Bytes as a text."""
    for unit, one in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= one:
            return f"{count / one:.1f} {unit}"
    return f"{count:.0f} B"


def number(value: float) -> str:
    """A metric as a text: four decimals, or four digits of a small one; a whole number with separators."""
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.4g}" if value and abs(value) < 1e-3 else f"{value:,.4f}"
