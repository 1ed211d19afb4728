"""What is running and how far it is, on the last lines of a terminal. Files and pipes get nothing of it."""

import contextlib
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from typing import TextIO, TypeVar

from rich.console import Console
from rich.file_proxy import FileProxy
from rich.live import Live
from rich.text import Text

T = TypeVar("T")
BYTES = "bytes"  # the unit of bars that count bytes, shown as MB
PER_SECOND = 2  # how often the lines are drawn again
YOUNG = 1.0  # seconds for which a bar is not drawn yet: most end before
WIDEST = 30  # columns of a bar
SPINNER = "|/-\\"


class Bar:
    """How far one thing is. Its owner sets numbers; the thread that draws reads them.

    what: what is running. total: how much there is to do, 0 where it is unknown. unit: of `total`, in the plural. hint: a remark after the
    numbers. drawn: whether it is on a terminal; where it is, lines of progress are not needed.
    """

    def __init__(self, what: str, total: float, unit: str, done: float, hint: str) -> None:
        self.what, self.total, self.unit, self.hint, self.drawn = what, total, unit, hint, False
        self._done, self._began = done, time.monotonic()
        # The rate counts from the first change on: what comes before is preparation, such as compiling.
        self._first: tuple[float, float] | None = None

    def at(self, done: float) -> None:
        """`done` of `total` is done."""
        if self._first is None and done != self._done:
            self._first = (time.monotonic(), done)
        self._done = done

    def add(self, more: float = 1) -> None:
        """`more` is done beyond what was."""
        self.at(self._done + more)

    def counting(self, items: Iterable[T]) -> Iterator[T]:
        """`items`; each counts once the next one is asked for."""
        for item in items:
            yield item
            self.add()

    def age(self, now: float) -> float:
        """Seconds since it began. now: as `time.monotonic` gives it."""
        return now - self._began

    def left(self, now: float) -> float:
        """Seconds until all is done at the rate so far, 0 where that is unknown."""
        if self._first is None or not self.total:
            return 0.0
        since, first = self._first
        return (now - since) * max(self.total - self._done, 0) / (self._done - first) if self._done > first else 0.0

    def line(self, now: float, width: int, filled: str = "━", rest: str = "─") -> str:
        """The bar in at most `width` columns; where they are too few, the picture of the bar is left out, then the end of the text."""
        numbers = [self._count()] if self._done or self.total else []
        left = self.left(now)
        times = clock(self.age(now)) + (f", about {clock(left)} left" if left else "")
        parts = [self.what, *filter(None, [*numbers, times, self.hint])]
        text = "  ".join(parts)
        room = min(width - len(text) - 2, WIDEST)
        if self.total and room >= 5:
            full = min(int(room * self._done / self.total), room)
            text = "  ".join([self.what, filled * full + rest * (room - full), *parts[1:]])
        elif not self.total:
            text = f"{SPINNER[int(now * PER_SECOND) % len(SPINNER)]} {text}"
        return text if len(text) <= width else f"{text[: width - 1]}…"

    def _count(self) -> str:
        scale, unit, places = (1e6, "MB", 1) if self.unit == BYTES else (1, self.unit, 0)
        total = f" of {self.total / scale:,.{places}f}" if self.total else ""
        share = f" ({self._done / self.total:.0%})" if self.total else ""
        return f"{self._done / scale:,.{places}f}{total} {unit}".rstrip() + share


class Bars:
    """Owner of the last lines of a terminal: one for each bar that is open, the outer ones first.

    Bars are drawn where stderr is a terminal that can move its cursor, and nowhere else. While they are, what the program prints appears
    above them. The cursor stays visible, so a process that is killed leaves the terminal as it should be. primary: False in all processes
    of a run but one.
    """

    def __init__(self, primary: bool = True) -> None:
        self._primary = primary
        self._open: list[Bar] = []
        self._live: Live | None = None

    @contextlib.contextmanager
    def shown(self, what: str, total: float = 0, unit: str = "", done: float = 0, hint: str = "") -> Iterator[Bar]:
        """Shows a bar during the block, below those that are open. The arguments are those of `Bar`."""
        bar = Bar(what, total, unit, done, hint)
        self._open.append(bar)
        try:
            if len(self._open) == 1 and self._primary:
                self._live = _started(self._frame)
            bar.drawn = self._live is not None
            yield bar
        finally:
            if len(self._open) == 1 and self._live is not None:
                self._live.stop()
                self._live = None
            self._open.remove(bar)

    def _frame(self) -> Text:
        now = time.monotonic()
        lines = [bar.line(now, self._width(), *self._signs()) for bar in [*self._open] if bar.age(now) >= YOUNG]
        return Text("\n".join(lines), no_wrap=True)

    def _width(self) -> int:
        # The last column stays free: some terminals begin a line when it is written.
        return self._live.console.width - 1 if self._live else 79

    def _signs(self) -> tuple[str, str]:
        unicode = self._live is not None and self._live.console.encoding.startswith("utf")
        return ("━", "─") if unicode else ("#", "-")


class Terminal(Console):
    """A Console that shows lines as they are, neither wrapped nor coloured, with no [word] taken for a style, and never hides the cursor: a
    process that is killed could not bring it back."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(file=stream, soft_wrap=True, markup=False, emoji=False, highlight=False)

    def show_cursor(self, show: bool = True) -> bool:
        """Does nothing."""
        return False


def _started(frame: object) -> Live | None:
    """A running display on stderr, None where that is not a terminal, or has a display already."""
    stream = sys.stderr
    if isinstance(stream, FileProxy) or stream is None or not stream.isatty() or threading.current_thread() is not threading.main_thread():
        return None
    console = Terminal(stream)
    if console.is_dumb_terminal or not console.is_terminal:
        return None
    # What goes to a file or a pipe must not be printed on the terminal in its place.
    both = sys.stdout is not None and sys.stdout.isatty()
    live = Live(console=console, get_renderable=frame, refresh_per_second=PER_SECOND, transient=True, redirect_stdout=both)
    live.start()
    return live


def clock(seconds: float) -> str:
    """A time as hours, minutes and seconds: `0:01:05`."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"
