"""The page in headless Chromium: no errors, readable on a phone and on a wide screen, dark and light, values under the pointer."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from jaxenc.reports.report import report
from tests.reports.runs import EVENTS_OF_A_KILL, make, metrics

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

# Within the page: moves the pointer over each chart, then measures. Boxes of texts are in pixels of the screen.
PROBE = """<script>
const box = (one) => { const b = one.getBoundingClientRect(); return [b.left, b.top, b.right, b.bottom]; };
const charts = [...document.querySelectorAll("figure[data-chart]")].map((figure) => {
  const svg = figure.querySelector("svg.chart"), b = svg.getBoundingClientRect();
  const at = {clientX: b.left + b.width * 0.6, clientY: b.top + b.height / 2, bubbles: true};
  svg.dispatchEvent(new PointerEvent("pointermove", at));
  const tip = figure.querySelector(".tip"), shown = getComputedStyle(tip).visibility, said = tip.innerText;
  const inside = box(tip), outer = box(figure);
  svg.dispatchEvent(new PointerEvent("pointerleave", at));
  const texts = [...svg.querySelectorAll("text")].map((one) => [one.textContent, box(one)]);
  return {title: figure.querySelector("figcaption").textContent, shown, said, inside, outer, texts,
          size: b.height / 260 * parseFloat(getComputedStyle(svg.querySelector("text")).fontSize)};
});
const out = document.createElement("pre");
out.id = "probe";
out.textContent = JSON.stringify({charts, wide: document.documentElement.scrollWidth, room: window.innerWidth,
  background: getComputedStyle(document.body).backgroundColor, text: getComputedStyle(document.body).color});
document.body.append(out);
</script>"""


def opened(page: Path, width: int, dark: bool) -> Any:
    """What PROBE found. A window is at least about 500 pixels wide, so a narrow page is in a frame; both write to the console of errors."""
    inner = page.with_name("probed.html")
    inner.write_text(page.read_text().replace("</body>", f"{PROBE}</body>"))
    outer = page.with_name("frame.html")
    outer.write_text(
        f'<body style="margin:0"><iframe src="probed.html" style="border:0;width:{width}px;height:4000px"></iframe><script>'
        'onmessage = (event) => { const pre = document.createElement("pre"); pre.id = "found"; pre.textContent = event.data; '
        "document.body.append(pre); };</script></body>"
    )
    inner.write_text(inner.read_text().replace("document.body.append(out);", 'parent.postMessage(out.textContent, "*");'))
    command = [
        CHROMIUM,
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--enable-logging=stderr",
        "--v=0",
        "--virtual-time-budget=5000",
    ]
    command += [f"--blink-settings=preferredColorScheme={0 if dark else 1}", f"--window-size={max(width, 600)},4000", "--dump-dom"]
    done = subprocess.run([*command, outer.as_uri()], capture_output=True, text=True, timeout=240)
    assert [line for line in done.stderr.splitlines() if "CONSOLE" in line] == []
    found = re.search(r'<pre id="found">(.*?)</pre>', done.stdout, re.DOTALL)
    return json.loads(found[1].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))


def overlap(a: list[float], b: list[float]) -> bool:
    """Whether two boxes share more than a pixel."""
    return min(a[2], b[2]) - max(a[0], b[0]) > 1 and min(a[3], b[3]) - max(a[1], b[1]) > 1


@pytest.mark.full
@pytest.mark.skipif(not CHROMIUM, reason="chromium is not installed (apt-get install chromium)")
@pytest.mark.parametrize("width, dark", [(400, True), (1600, False)])
def test_the_page_is_readable(width: int, dark: bool, tmp_path: Path) -> None:
    page = report(make(tmp_path / "run", metrics(rtd_loss=0.3, rtd_accuracy=0.87), EVENTS_OF_A_KILL), False).page
    found = opened(page, width, dark)
    assert found["wide"] <= found["room"] == width
    light = [sum(map(int, re.findall(r"\d+", found[name])[:3])) for name in ("background", "text")]
    assert (light[0] < 150 and light[1] > 600) if dark else (light[0] > 700 and light[1] < 150)
    assert len(found["charts"]) == 10
    for chart in found["charts"]:
        title, size = chart["title"], chart["size"]
        assert chart["shown"] == "visible" and len(chart["said"].splitlines()) >= 2, title
        assert chart["inside"][0] >= chart["outer"][0] and chart["inside"][2] <= chart["outer"][2], title
        texts = chart["texts"]
        assert [(a, b) for i, (a, one) in enumerate(texts) for b, other in texts[i + 1 :] if overlap(one, other)] == [], title
        assert all(box[0] >= chart["outer"][0] and box[2] <= chart["outer"][2] for _, box in texts), title
        assert size >= 9, f"{title}: texts of {size} pixels"
