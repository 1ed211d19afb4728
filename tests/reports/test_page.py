"""The pages: complete, self-contained, harmless, small."""

import html.parser
import json
import math
import re
from pathlib import Path
from xml.etree import ElementTree

import fsspec
import pytest

from jaxenc.cli.main import main
from jaxenc.errors import UserError
from jaxenc.reports import chart, history, panels, picture, single
from jaxenc.reports.panels import TOKENS, Curve, Panel
from jaxenc.reports.report import compare, report
from jaxenc.tasks.results import Outcome, Results
from jaxenc.training.run import Run
from jaxenc.training.settings import TrainConfig
from tests.reports.runs import EVENTS_OF_A_KILL, make, metrics, row, start

VOID = {"meta", "br"}


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the PNG, which takes longer than the page."""
    monkeypatch.setattr(picture, "picture", lambda panels: b"\x89PNG")


class Page(html.parser.HTMLParser):
    """The tags of a page, which must be closed in order, its text, and the addresses that it names."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.words: list[str] = []
        self.addresses: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href", "srcset", "action", "data")]
        self.open += [tag] * (tag not in VOID)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words += [] if self.open and self.open[-1] in ("script", "style") else [data]

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def written(path: Path) -> tuple[str, Page]:
    text = path.read_text()
    return text, Page(text)


def test_the_page_of_a_run_says_what_happened(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    run = Run(train=TrainConfig(steps=400, batch=8))
    folder = make(tmp_path / "mine", metrics(), EVENTS_OF_A_KILL, run)
    assert main(["report", "--workdir", str(folder), "--no-baselines"]) == 0
    assert f"page     {folder / 'report.html'}" in capsys.readouterr().out
    _, page = written(folder / "report.html")
    for said in (
        "Finished at step 400 of 400.",
        "Held-out mlm_loss 3.2500 at step 400.",
        "Goodput 42.1% of 3 min 10 s, 2 starts, at least 110 steps taken twice.",
        "steps taken twice: at least 110; 2 checkpoints",
        "jaxenc pretrain --config bert/tiny",
        "1 x cpu, 1 process",
        "python 3.11, jax 0.10.2",
        "training in steps that count 1 min 20 s 42.1%",
        "2 checkpoints, the last of 6.0 MB",
        "differs from the recipe this run bert/tiny",
        "train.steps 400 560",
        "mlm_predictions 999",
    ):
        assert said in page.text, said
    titles = [TOKENS, "accuracy", "learning rate", "gradient norm", "tokens per second", "share of tokens", "steps over time"]
    titles.insert(5, "model FLOPs utilisation (MFU)")
    assert re.findall(r"<figcaption>(.*?)</figcaption>", (folder / "report.html").read_text()) == titles


@pytest.mark.usefixtures("undrawn")
def test_a_page_loads_nothing(tmp_path: Path) -> None:
    text, page = written(report(make(tmp_path / "run", metrics(), EVENTS_OF_A_KILL), False).page)
    assert page.addresses == [] and page.tags.count("link") == page.tags.count("img") == 0
    assert "default-src 'none'" in text and "url(" not in text and "@import" not in text


HOSTILE = "<script>alert(1)</script>&\"'"


@pytest.mark.usefixtures("undrawn")
def test_text_of_a_run_is_only_text(tmp_path: Path) -> None:
    """In the names of the folders, a command, a device, a setting, a comment and a note."""
    events = [start(0, 0, command=["jaxenc", "--config", HOSTILE], device=HOSTILE), row(1, "stop", 9, 0, reason=HOSTILE)]
    other = dict(objective={"kind": HOSTILE}, extra={HOSTILE: HOSTILE})
    folders = [make(tmp_path / f"{name}{HOSTILE.replace('/', '')}", metrics(), events, **other) for name in "ab"]
    read = [history.read(folder) for folder in folders]
    page = Page(single.page(read[0], {HOSTILE: 4.0}, [HOSTILE], {"x": HOSTILE}, [HOSTILE]))
    assert page.tags.count("script") == 1 + page.tags.count("figure")
    assert page.text.count(HOSTILE) >= 6 and f"Is this normal? {HOSTILE}" in page.text
    compared = Page(compare(folders, with_baselines=False).page.read_text())
    assert compared.tags.count("script") == 1 + compared.tags.count("figure")
    assert folders[0].name in compared.text
    end = "</script ><p>"
    drawn = chart.chart(Panel(end, end, (Curve(end, (0.0, 1.0), (2.0, 3.0), 0),), {end: 2.0}))
    assert (drawn.count("</script"), Page(drawn).tags.count("p")) == (1, 0)


def figure(panel: Panel) -> tuple[ElementTree.Element, dict]:
    """(the SVG, the data of the script) of a panel."""
    text = chart.chart(panel)
    found = re.search(r'<script type="application/json">(.*?)</script>', text)
    return ElementTree.fromstring(re.search(r'<svg class="chart".*?</svg>', text)[0]), json.loads(found[1])


def test_a_chart_has_its_points_where_its_ticks_say() -> None:
    """The places of two points and of the ticks are on one line through the axis; NaN leaves a gap."""
    curve = Curve("loss", (0.0, 1.0, 2.0, 3.0, 4.0), (2.0, math.nan, 6.0, 5.0, math.inf), 0)
    svg, data = figure(Panel("t", "step", (curve,)))
    assert data["curves"] == [{"name": "loss", "x": [0, 1, 2, 3, 4], "y": [2, None, 6, 5, None]}]
    path = next(one.get("d") for one in svg.iter("path"))
    drawn = [tuple(map(float, pair)) for pair in re.findall(r"[ML]([\d.]+),([\d.]+)", path)]
    assert re.sub(r"[\d.,]", "", path) == "MML" and len(drawn) == 3
    texts = {one.text: one for one in svg.iter("text") if one.get("text-anchor") == "end"}
    at = lambda text: float(texts[text].get("y")) - 4
    assert drawn[0][1] == pytest.approx(at("2"), abs=0.1) and drawn[1][1] == pytest.approx(at("6"), abs=0.1)
    assert drawn[2][1] == pytest.approx((at("4") + at("6")) / 2, abs=0.1)


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity", "3e38", "1e-320", "0"])
def test_numbers_that_are_none_do_not_break_a_page(value: str, tmp_path: Path) -> None:
    folder = make(tmp_path / "run", metrics(), EVENTS_OF_A_KILL)
    lines = (folder / "metrics.jsonl").read_text().splitlines(keepends=True)
    lines[5] = re.sub(r'"(mlm_loss|gradient_norm|lr|mlm_accuracy)": [\d.e-]+', rf'"\1": {value}', lines[5])
    lines[-1] = re.sub(r'"mlm_loss": [\d.]+', f'"mlm_loss": {value}', lines[-1])
    (folder / "metrics.jsonl").write_text("".join(lines))
    text, _ = written(report(folder, False).page)
    for data in re.findall(r'<script type="application/json">(.*?)</script>', text):
        assert json.loads(data, parse_constant=pytest.fail)
    for svg in re.findall(r'<svg class="chart".*?</svg>', text):
        ElementTree.fromstring(svg)
        assert "nan" not in re.sub(r'aria-label=".*?"', "", svg)


def test_labels_of_close_levels_are_a_line_apart() -> None:
    levels = {"unigram counts 6.60": 6.60, "left counts 6.55": 6.55, "left + right counts 6.52": 6.52}
    svg, _ = figure(Panel("t", "step", (Curve("loss", (0.0, 9.0), (9.0, 3.0), 0),), levels))
    places = sorted(float(one.get("y")) for one in svg.iter("text") if one.get("class") == "level")
    assert len(places) == 3 and min(b - a for a, b in zip(places, places[1:])) >= 13  # noqa: B905, RUF007
    assert places[0] >= chart.TOP and places[-1] <= chart.BOTTOM


@pytest.mark.usefixtures("undrawn")
def test_a_long_run_has_a_small_page(tmp_path: Path) -> None:
    """Below 2 MB, with the lowest and highest loss of 6,000 rows; the size does not grow with them, as `thin` is tested with a million."""
    rows = metrics(50_000, 10)
    rows[1_234]["mlm_loss"] = 77.0
    text, _ = written(report(make(tmp_path / "run", rows, EVENTS_OF_A_KILL), False).page)
    assert len(text) < 1_000_000 and "77.0" in text


@pytest.mark.usefixtures("undrawn")
def test_runs_are_compared_by_tokens_and_flops(tmp_path: Path) -> None:
    """The second run has half the batch, so at equal tokens it is at twice the step; its recipe differs in that field alone."""
    large = make(tmp_path / "large", metrics(200), [start(0, 0)], Run(train=TrainConfig(steps=200, batch=64)))
    phases = [{"start": 0, "end": 400, "batch": 32, "length": 128, "flops": 5.0}]
    small = make(tmp_path / "small", metrics(400), [start(0, 0, phases=phases)], Run(train=TrainConfig(steps=400, batch=32)))
    ends = {}
    for by in ("step", "tokens", "flops"):
        found = compare([large, small], by, False, tmp_path / f"{by}.html")
        text, page = written(found.page)
        assert found.picture.read_bytes().startswith(b"\x89PNG")
        data = json.loads(re.search(r'<script type="application/json">(.*?)</script>', text)[1])
        ends[by] = {curve["name"]: curve["x"][-1] for curve in data["curves"]}
    assert ends["step"] == {"large": 200, "large, held out": 200, "small": 400, "small, held out": 400}
    length = Run().data.length
    assert ends["tokens"]["large"] == ends["tokens"]["small, held out"] == 200 * 64 * length
    assert (ends["flops"]["large"], ends["flops"]["small"]) == (200 * 8 * 1e9, 400 * 32 * 5.0)
    assert "train.batch 64 32" in page.text and "train.steps 200 400" in page.text and "optim.lr" not in page.text


@pytest.mark.usefixtures("undrawn")
def test_what_cannot_be_compared_or_written_is_one_line(tmp_path: Path) -> None:
    old = make(tmp_path / "old", metrics())
    with pytest.raises(UserError, match=r"old: has no events.jsonl with the FLOPs of a step; align by tokens or step"):
        compare([old, old], "flops", False)
    with pytest.raises(UserError, match=r"--out .*x.txt: the page is HTML; name a file that ends in .html"):
        report(old, False, tmp_path / "x.txt")
    assert "no events.jsonl" in report(old, False).page.read_text()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["old"]


def test_runs_at_urls_are_compared_though_one_comes_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With and without the slash at the end; the page is uploaded to the first."""
    monkeypatch.setenv("JAXENC_CACHE", str(tmp_path / "cache"))
    store = fsspec.filesystem("memory")
    store.put(str(make(tmp_path / "run", metrics(), EVENTS_OF_A_KILL)), "/compared/run", recursive=True)
    compare(["memory://compared/run", "memory://compared/run/"], with_baselines=False)
    assert {path.rpartition("/")[2] for path in store.ls("/compared/run", detail=False)} >= {"comparison.html", "comparison.png"}


def test_what_is_damaged_at_a_url_is_named_by_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAXENC_CACHE", str(tmp_path / "cache"))
    store = fsspec.filesystem("memory")
    store.put(str(make(tmp_path / "run", metrics())), "/damaged/run", recursive=True)
    store.pipe_file("/damaged/run/metrics.jsonl", b"no row\n")
    with pytest.raises(UserError, match="^memory://damaged/run/metrics.jsonl:1: is not a row"):
        report("memory://damaged/run", with_baselines=False)
    store.rm("/damaged/run/metrics.jsonl")
    with pytest.raises(UserError, match="^memory://damaged/run/metrics.jsonl: no such file"):
        report("memory://damaged/run", with_baselines=False)


def test_a_fine_tuning_beside_another_run_is_its_seeds(tmp_path: Path, undrawn: None, capsys: pytest.CaptureFixture) -> None:
    """A seed without numbers is named. One that has only begun has no results.json, and is reported as its seeds."""
    for seed in (0, 1, 10):
        make(tmp_path / "tuned" / f"seed_{seed}", metrics(100))
    (tmp_path / "tuned" / "seed_2").mkdir()
    run = make(tmp_path / "run", metrics(200))
    assert main(["report", "--workdir", str(tmp_path / "tuned"), str(run), "--no-baselines"]) == 0
    said = capsys.readouterr()
    assert said.err == f"report: {tmp_path}/tuned/seed_2 has no numbers yet, and is left out\n"
    assert f"page     {tmp_path}/tuned/comparison.html" in said.out
    _, page = written(tmp_path / "tuned" / "comparison.html")
    assert "4 runs" in page.text and all(name in page.text for name in ("seed_0", "seed_1", "seed_10", "run"))
    assert main(["report", "--workdir", str(tmp_path / "tuned"), "--no-baselines"]) == 0
    assert "3 runs" in written(tmp_path / "tuned" / "comparison.html")[1].text
    for seed in (0, 1):
        (tmp_path / "new" / f"seed_{seed}").mkdir(parents=True)
    assert main(["report", "--workdir", str(run), str(tmp_path / "new"), "--no-baselines"]) == 0
    said = capsys.readouterr().err
    assert all(f"report: {tmp_path}/new/seed_{seed} has no numbers yet, and is left out\n" in said for seed in (0, 1))
    assert main(["report", "--workdir", str(tmp_path / "new")]) == 2
    assert f"{tmp_path}/new/seed_0/metrics.jsonl: no such file; name the directory of a run" in capsys.readouterr().err


def test_a_fine_tuning_at_a_url_is_reported_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, undrawn: None, capsys: pytest.CaptureFixture
) -> None:
    """Its page, and one for each seed that has numbers; the links between them hold in the bucket and beside the copy that is printed."""
    monkeypatch.setenv("JAXENC_CACHE", str(tmp_path / "cache"))
    found = Results("accuracy", tuple(Outcome(seed, f"seed_{seed}", 100, {"accuracy": 0.5 + seed / 10}) for seed in (0, 1, 2)))
    for seed in (0, 1):
        make(tmp_path / "tuned" / f"seed_{seed}", metrics(100))
    (tmp_path / "tuned" / "results.json").write_text(json.dumps(found.to_json()))
    url, store = "memory://reported/tuned", fsspec.filesystem("memory")
    store.put(str(tmp_path / "tuned"), "/reported/tuned", recursive=True)
    assert main(["report", "--workdir", f"{url}/", "--no-baselines"]) == 0
    said = capsys.readouterr().out
    assert f"results: {url}/results.json; median of 3 seeds: accuracy 0.6000" in said
    assert f"curves:  jaxenc report --workdir {url}/seed_0\n" in said
    page = Page(store.cat_file("/reported/tuned/report.html").decode())
    assert [one for one in page.addresses if "seed" in one] == ["seed_0/report.html", "seed_1/report.html"]
    shown = Path(re.search("page: +(.*)", said)[1])
    for address in page.addresses[-2:]:
        assert (shown.parent / address).is_file() and store.isfile(f"/reported/tuned/{address}")
        assert f"{url}/seed_" in store.cat_file(f"/reported/tuned/{address}").decode()
    assert main(["report", "--workdir", url, "memory://reported/tuned/seed_0", "--no-baselines"]) == 0
    assert "3 runs" in Page(store.cat_file("/reported/tuned/comparison.html").decode()).text
    assert main(["report", "--workdir", url, "--out", "gs://b/mine.html"]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
    store.rm("/reported", recursive=True)


def test_the_page_says_what_its_numbers_mean(tmp_path: Path, undrawn: None) -> None:
    report(make(tmp_path / "run", metrics(20)), with_baselines=False)
    text = written(tmp_path / "run" / "report.html")[1].text
    assert "mask_rate predicted tokens as a share of all real tokens; objective.rate is rounded to whole tokens in each row" in text
    assert "lr the learning rate" in text and "replaced tokens" not in text


def test_each_point_of_a_short_curve_is_marked(tmp_path: Path, undrawn: None) -> None:
    """Of a single row too, which a line alone does not show."""
    for steps, dots in ((10, 1), (190, 19), (200, 0)):
        run = history.read(make(tmp_path / str(steps), metrics(steps)))
        (panel,) = [panel for panel in panels.of_run(run, {}) if panel.title == "learning rate"]
        figure = ElementTree.fromstring(re.search('<svg class="chart".*?</svg>', chart.chart(panel))[0])
        marks = [path.get("d") for path in figure.iter("path") if "fill:" in path.get("style", "")]
        assert sum(path.count("M") for path in marks) == dots


def test_an_unwritable_page_is_named_itself(tmp_path: Path, undrawn: None, capsys: pytest.CaptureFixture) -> None:
    folder = make(tmp_path / "run", metrics(20))
    for out in (tmp_path / "missing" / "page.html", tmp_path / "run" / "metrics.jsonl" / "page.html"):
        assert main(["report", "--workdir", str(folder), "--no-baselines", "--out", str(out)]) == 2
        assert capsys.readouterr().err.startswith(f"jaxenc: {out}: ")
