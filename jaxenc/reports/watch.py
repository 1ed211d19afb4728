"""What a run does now, as lines of text: the implementation of `jaxenc watch`."""

import dataclasses
import itertools
import pathlib
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from rich.cells import cell_len, chop_cells, set_cell_size

from jaxenc import cache, storage
from jaxenc.checkpoint import verify
from jaxenc.checkpoint.remote import RemoteSteps
from jaxenc.errors import one_line
from jaxenc.progress import clock
from jaxenc.reports import history
from jaxenc.reports.history import GOING, History
from jaxenc.reports.sparkline import sparkline
from jaxenc.training.events import EVENTS
from jaxenc.training.record import METRICS

QUIET = 60.0  # seconds without a new line: before these no run is called killed
SLOW = 5  # times the usual gap between two lines: nor before these
NARROW = 60  # columns below which there is no room for a curve
NAME = 14  # columns of a name, or more where one is longer
CURVES = 8  # names with a curve of their own
NAMED = {"lr": "lr {:.1e}", "tokens_per_second": "tokens/s {:,.0f}", "mfu": "MFU {:.1%}", "gradient_norm": "gradient norm {:.3g}",
         "skipped": "skipped {:,.0f}"}  # fmt: skip
NO_CURVE = ("padding", "mask_rate", *history.ADDRESS, *NAMED)


@dataclasses.dataclass(frozen=True)
class Seen:
    """name: of the run. history: None before its first numbers. written: when it last wrote, in Unix seconds, 0 where that is not known.
    checkpoint: the step of the newest one, -1 without one; saved: when it was written, as `written`."""

    name: str
    history: History | None = None
    written: float = 0.0
    checkpoint: int = -1
    saved: float = 0.0

    @property
    def title(self) -> str:
        """The name as a terminal may print it."""
        return one_line(self.name)


def look(workdir: str) -> Seen:
    """What a run directory says now; of one at a URL, its files are copied first. Raises UserError for files that are damaged."""
    if not storage.is_url(workdir):
        storage.must_be_local(workdir, "--workdir", storage.AS_TEXT)
        return _look(workdir, pathlib.Path(workdir), verify.steps(pathlib.Path(workdir, verify.CHECKPOINTS)))
    steps = RemoteSteps(storage.folder(workdir).below(verify.CHECKPOINTS)).steps()
    with cache.at_hand(workdir, history.FILES) as folder:
        return _look(workdir, folder, steps)


def _look(name: str, folder: pathlib.Path, steps: Sequence[int]) -> Seen:
    """folder: with the files of the run. steps: of its checkpoints."""
    newest = max(steps, default=-1)
    if not (folder / METRICS).is_file() or not (folder / METRICS).stat().st_size:
        return Seen(name, checkpoint=newest)
    found = history.read(folder, name)
    happened = {event["step"]: event["time"] for event in found.events if event["event"] == "checkpoint"}
    local = folder / verify.CHECKPOINTS / str(newest) / verify.CHECKSUMS
    saved = local.stat().st_mtime if local.is_file() else happened.get(newest, 0.0)
    if storage.is_url(name):
        return Seen(name, found, max((event["time"] for event in found.events), default=0.0), newest, saved)
    return Seen(name, found, max((folder / one).stat().st_mtime for one in (METRICS, EVENTS) if (folder / one).exists()), newest, saved)


def rate(rows: Sequence[Mapping[str, Any]]) -> float:
    """Steps a second between the last two training rows of one start, 0 where there are none."""
    train = [row for row in rows if row["split"] == "train"][-2:]
    if len(train) < 2 or train[1]["seconds"] <= train[0]["seconds"]:
        return 0.0
    return (train[1]["step"] - train[0]["step"]) / (train[1]["seconds"] - train[0]["seconds"])


def state(seen: Seen, now: float) -> str:
    """`History.state`; of a run that has not ended, how long ago it wrote, if that is known. now: Unix seconds."""
    if seen.history is None:
        return "no numbers yet"
    if seen.history.state != GOING or not seen.written:
        return seen.history.state
    times = [row["seconds"] for row in seen.history.rows[-20:]]
    usual = statistics.median([max(b - a, 0.0) for a, b in itertools.pairwise(times)] or [0.0])
    age = max(now - seen.written, 0.0)
    return f"perhaps killed, no line for {clock(age)}" if age > max(QUIET, SLOW * usual) else f"running, wrote {clock(age)} ago"


def lines(seen: Seen, now: float, width: int, unicode: bool = True) -> list[str]:
    """One run in lines of at most `width` columns. now: Unix seconds."""
    if seen.history is None:
        return [_cut(seen.title, width), _cut("no numbers yet: waiting for the first", width)]
    run = seen.history
    out = [*_wrapped([seen.title, state(seen, now)], width), *_wrapped(_steps(run), width)]
    train, held_out = ([row for row in run.rows if row["split"] == split] for split in ("train", "held_out"))
    names = _names(train, held_out)
    column = min(max([NAME, *map(len, names)]), max(width // 3, NAME))
    out += [_curve(name, column, train, held_out, width, unicode) for name in names]
    last = train[-1] if train else {}
    out += _wrapped([text.format(last[name]) for name, text in NAMED.items() if last.get(name)], width)
    age = f", {clock(max(now - seen.saved, 0))} ago" if seen.saved else ""
    return [*out, _cut(f"checkpoint {seen.checkpoint:,}{age}" if seen.checkpoint >= 0 else "no checkpoint yet", width)]


def table(runs: Sequence[Seen], now: float, width: int) -> list[str]:
    """Several runs, one a line of at most `width` columns; what does not fit is left out, the last columns first."""
    heads = ("run", "step", "loss", "held out", "left", "state", "tokens/s")
    cells = [heads, *(_cells(seen, now) for seen in runs)]
    shared = len(_common([seen.title for seen in runs]))
    cells = [heads, *((row[0][shared:], *row[1:]) for row in cells[1:])]
    widths = [max(cell_len(row[i]) for row in cells) for i in range(len(heads))]
    widths[0] = min(widths[0], max(width // 3, 8))
    shown = next((n for n in range(len(heads), 1, -1) if sum(widths[:n]) + 2 * (n - 1) <= width), 2)
    padded = lambda row: [set_cell_size(_shortened(row[0], widths[0]), widths[0]), *map(str.rjust, row[1:shown], widths[1:shown])]
    return [_cut("  ".join(padded(row)), width) for row in cells]


def _cells(seen: Seen, now: float) -> tuple[str, ...]:
    if seen.history is None:
        return (seen.title, "-", "-", "-", "-", state(seen, now), "-")
    train = [row for row in seen.history.rows if row["split"] == "train"]
    last, held_out, total = train[-1] if train else {}, seen.history.held_out, seen.history.steps
    step, speed = seen.history.step, rate(seen.history.rows)
    loss = next((value for name, value in held_out.items() if name.endswith("loss")), None)
    number = lambda value: "-" if value is None else f"{value:.4f}"
    left = clock((total - step) / speed) if speed and total > step else "-"
    tokens = f"{last['tokens_per_second']:,.0f}" if "tokens_per_second" in last else "-"
    return (seen.title, f"{step:,}/{total:,}", number(last.get("loss")), number(loss), left, state(seen, now).partition(",")[0], tokens)


def _steps(run: History) -> list[str]:
    speed, total = rate(run.rows), run.steps
    left = [f"about {clock((total - run.step) / speed)} left"] if speed and run.step < total else []
    return [f"step {run.step:,} of {total:,} ({run.step / max(total, 1):.0%})", *left]


def _names(train: Sequence[Mapping[str, Any]], held_out: Sequence[Mapping[str, Any]]) -> list[str]:
    """The numbers with a curve: the loss, its terms where there are several, accuracies and scores."""
    names = dict.fromkeys(["loss", *(name for rows in (train, held_out) for name in (rows[-1] if rows else {}))])
    there = [name for name in names if name not in NO_CURVE and not name.endswith("_predictions")]
    return [name for name in there if any(name in row for row in (*train[-1:], *held_out[-1:]))][:CURVES]


def _curve(
    name: str, column: int, train: Sequence[Mapping[str, Any]], held_out: Sequence[Mapping[str, Any]], width: int, unicode: bool
) -> str:
    """column: the width of the names."""
    of = lambda rows: [float(row[name]) for row in rows if name in row]
    here, there = of(train), of(held_out)
    if width < NARROW:
        values = [f"{here[-1]:#.4g}"] * bool(here) + [f"held out {there[-1]:#.4g}" for _ in there[:1]]
        return _cut(f"{name} {', '.join(values)}", width)
    numbers = (
        f"{_shortened(name, column):<{column}} "
        + (f"{here[-1]:>#8.4g}" if here else " " * 8)
        + (f"  held out {there[-1]:>#8.4g}" if there else " " * 19)
    )
    room = width - len(numbers) - 2
    picture = sparkline(here or there, room, *([] if unicode else ["_.-=*#"])) if room >= 8 else ""
    return _cut(f"{numbers}  {picture}".rstrip(), width)


def _common(names: Sequence[str]) -> str:
    """The folder that all names begin with, '' without one."""
    parts = [name.split("/")[:-1] for name in names]
    count = next((i for i, level in enumerate(zip(*parts, strict=False)) if len(set(level)) > 1), min(map(len, parts)))
    return "".join(f"{part}/" for part in parts[0][:count])


def _wrapped(words: Sequence[str], width: int) -> list[str]:
    """`words` with gaps between, on as many lines as they need."""
    out: list[str] = []
    for word in words:
        if out and len(out[-1]) + 3 + len(word) <= width:
            out[-1] += f"   {word}"
        else:
            out.append(_cut(word, width))
    return out


def _cut(text: str, width: int) -> str:
    """`text`, whose end is cut off where it takes more than `width` columns: a letter of some scripts takes two."""
    return text if cell_len(text) <= width else f"{set_cell_size(text, width - 1).rstrip()}~"


def _shortened(name: str, width: int) -> str:
    """`name` without its middle where it takes more than `width` columns: names of runs often differ at their ends."""
    if cell_len(name) <= width:
        return name
    end = chop_cells(name[::-1], (width - 1) // 2)[0][::-1]
    return f"{chop_cells(name, width - 1 - cell_len(end))[0]}~{end}"
