"""How much of the input has been read: a bar on a terminal, else lines on stderr."""

import sys
import time
from collections.abc import Callable, Iterable, Iterator

from jaxenc.data.readers.document import Document
from jaxenc.progress import BYTES, Bars

EVERY = 5.0  # seconds between two lines


class Progress:
    """Counts the bytes read of several sources. total: bytes of all of them, 0 if unknown."""

    def __init__(self, total: int) -> None:
        self.total, self._done, self._here = total, 0, lambda: 0

    def begins(self, position: Callable[[], int]) -> None:
        """The next source is open; `position` returns how many of its bytes have been read."""
        self._here = position

    def ends(self, size: int) -> None:
        """The open source, of `size` bytes, has been read to its end."""
        self._done, self._here = self._done + size, lambda: 0

    @property
    def done(self) -> int:
        """Bytes read so far."""
        return min(self._done + self._here(), self.total)


def reported(found: Iterable[Document], what: str, progress: Progress) -> Iterator[Document]:
    """`found` unchanged. A bar, or a line on stderr every EVERY seconds, says how much has been read, how fast and, if sizes are known, how
    long the rest takes at that speed."""
    characters, started = 0, time.monotonic()
    last = started
    with Bars().shown(what, progress.total, BYTES) as bar:
        for document in found:
            yield document
            characters += sum(map(len, document.lines))
            now = time.monotonic()
            bar.at(progress.done)
            bar.hint = _speed(characters, now - started)
            if now - last > EVERY and not bar.drawn:
                last = now
                print(f"{what}: {_line(characters, now - started, progress.done, progress.total)}", file=sys.stderr)


def _speed(characters: int, seconds: float) -> str:
    return f"{characters / 1e6:,.1f} M characters read, {characters / 1e6 / max(seconds, 1e-9):,.1f} M a second"


def _line(characters: int, seconds: float, done: int, total: int) -> str:
    speed = _speed(characters, seconds)
    if not 0 < done < total:
        return speed
    left = seconds * (total - done) / done
    return f"{done / 1e6:,.0f} of {total / 1e6:,.0f} MB ({done / total:.0%}), {speed}, about {_duration(left)} left"


def _duration(seconds: float) -> str:
    minutes = round(seconds / 60)
    if minutes < 2:
        return f"{max(round(seconds), 1)} s"
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"
