"""All documents of a split as one line of text, read from left to right or from right to left."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np

from jaxenc.data.sources import grid
from jaxenc.data.store import Shards


@dataclasses.dataclass(frozen=True)
class Line:
    """The documents one after another, each closed by <eod> where the vocabulary has one. len: its tokens, these included.

    Behind the end comes the start again, so a place is any integer. Place p is where token p begins. A border is a place where a
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

    def read(self, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(ids, whether each is the first piece of its word) of the tokens at `places` (int64, any shape): int32 and int32.

        An <eod> is a word. Where the data does not know where words start the second is all 1.
        """
        places = places % len(self)
        before = self._before(places)
        eod = self._ends[0][np.minimum(before, self._documents - 1)] == places if self._closed else np.zeros(places.shape, bool)
        index = np.where(eod, 0, places - before)
        tokens = np.where(eod, self.shards.manifest.tokenizer.eod, self.shards.tokens.take(index)).astype(np.int32)
        words = eod | self.shards.words.take(index) if self.shards.manifest.has_words else np.ones(places.shape)
        return tokens, words.astype(np.int32)

    def border(self, places: np.ndarray) -> np.ndarray:
        """Number of the first border at or behind each place, int64 [n]."""
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

    def read(self, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """As of a Line. The first piece of a word is that of the text as it is written, so here it stands behind the others."""
        return self.line.read(-1 - places)

    def border(self, places: np.ndarray) -> np.ndarray:
        """As of a Line."""
        return -self.line.border_before(-places)

    def border_before(self, places: np.ndarray) -> np.ndarray:
        """As of a Line."""
        return -self.line.border(-places)

    def place(self, borders: np.ndarray) -> np.ndarray:
        """As of a Line."""
        return -self.line.place(-borders)
