"""All documents of a split as one line of text, read from left to right or from right to left."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np

from jaxenc.data.ranges import numbers
from jaxenc.data.sources import grid
from jaxenc.data.store import Shards


@dataclasses.dataclass(frozen=True)
class Line:
    """The documents one after another, each closed by <eod> where the vocabulary has one. len: its tokens, these included.

    After its end it starts again, so a place is any integer. Place p is where token p begins. A border is a place where a
    sentence begins; <eod> is a sentence of its own. Borders are numbered in the order of their places from 0, which is at place 0.
    """

    shards: Shards

    def __len__(self) -> int:
        return len(self.shards.tokens) + self._closed * self._documents

    @property
    def _documents(self) -> int:
        return len(self.shards.documents) - 1

    @property
    def _closed(self) -> bool:
        return self.shards.manifest.tokenizer.eod >= 0

    @property
    def _borders(self) -> int:
        return len(self.shards.sentences) - 1 + self._closed * self._documents

    @functools.cached_property
    def _ends(self) -> tuple[np.ndarray, np.ndarray]:
        """(place, number of its border) of the <eod> of each document, int64 [documents] both; kept beside the shards."""
        documents, sentences = self.shards.documents, self.shards.sentences
        before = np.arange(self._documents)
        borders = lambda: documents.take(before + 1) + before
        places = lambda: sentences.take(documents.take(before + 1)) + before
        kept = lambda name, last, make: grid.kept(self.shards, f"{name}-{self.shards.split}", last, make)
        return kept("eods", len(self) - 1, places), kept("eod_borders", self._borders - 1, borders)

    def _before(self, places: np.ndarray) -> np.ndarray:
        """The number of <eod> before each place of the first round."""
        return np.searchsorted(self._ends[0], places, "left") if self._closed else np.zeros_like(places)

    def runs(self, at: np.ndarray, starts: np.ndarray, sizes: np.ndarray) -> tuple[tuple[np.ndarray, np.ndarray, np.ndarray], np.ndarray]:
        """((at, starts, sizes) for `source.laid`, of the tokens of the data; the places of the <eod> among them).

        at, starts, sizes: int64 [n], the sizes[i] tokens of the line from place starts[i] on go to at[i] and after it. Each run is cut at
        every <eod>, or if the line has none at its end, into runs of neighbouring tokens of the data.
        """
        closed, ends = int(self._closed), starts + sizes
        first, last = (self._cuts_before(places) for places in (starts, ends - 1 + closed))
        counts = last - first + 1
        run, nth = np.repeat(np.arange(len(counts)), counts), numbers(counts)
        cut = first[run] + nth
        begins = np.where(nth == 0, starts[run], self._cut(cut - 1) + closed)
        pieces = np.where(nth == counts[run] - 1, ends[run], self._cut(cut)) - begins
        at = at[run] + begins - starts[run]
        eods = (at + pieces)[nth < counts[run] - 1] if closed else at[:0]
        some = pieces > 0
        return (at[some], ((begins - closed * cut) % len(self.shards.tokens))[some], pieces[some]), eods

    def _cuts_before(self, places: np.ndarray) -> np.ndarray:
        """The number of <eod> before each place, of any round; in a line without <eod>, of ends of the line at or before it."""
        rounds, places = np.divmod(places, len(self))
        return rounds * self._documents + np.searchsorted(self._ends[0], places, "left") if self._closed else rounds

    def _cut(self, numbers: np.ndarray) -> np.ndarray:
        """The place of each <eod>, or end of the line, by its number."""
        if not self._closed:
            return (numbers + 1) * len(self)
        rounds, numbers = np.divmod(numbers, self._documents)
        return self._ends[0][numbers] + rounds * len(self)

    def border(self, places: np.ndarray) -> np.ndarray:
        """Number of the first border at or after each place, int64 [n]."""
        rounds, places = np.divmod(places, len(self))
        before = self._before(places)
        return self.shards.sentences.search(places - before, "left") + before + rounds * self._borders

    def border_before(self, places: np.ndarray) -> np.ndarray:
        """Number of the last border at or before each place, int64 [n]."""
        rounds, places = np.divmod(places, len(self))
        before = self._before(places)
        return self.shards.sentences.search(places - before, "right") - 1 + before + rounds * self._borders

    def place(self, borders: np.ndarray) -> np.ndarray:
        """The place of each border, int64 [n]."""
        rounds, borders = np.divmod(borders, self._borders)
        before = np.searchsorted(self._ends[1], borders, "left") if self._closed else np.zeros_like(borders)
        return self.shards.sentences.take(borders - before) + before + rounds * len(self)


@dataclasses.dataclass(frozen=True)
class Reversed:
    """A line read from right to left: its token 0 is the line's last one, its border at place p is the line's at place -p."""

    line: Line

    def __len__(self) -> int:
        return len(self.line)

    def border(self, places: np.ndarray) -> np.ndarray:
        """As of a Line."""
        return -self.line.border_before(-places)

    def border_before(self, places: np.ndarray) -> np.ndarray:
        """As of a Line."""
        return -self.line.border(-places)

    def place(self, borders: np.ndarray) -> np.ndarray:
        """As of a Line."""
        return -self.line.place(-borders)
