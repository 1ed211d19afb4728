"""Rows of several whole texts, packed with almost no padding; the texts of a row do not attend to each other."""

import dataclasses
import functools

import numpy as np

from jaxenc.config import fingerprint
from jaxenc.data.batch import Batch
from jaxenc.data.ranges import numbers, ranges
from jaxenc.data.sources import grid, texts
from jaxenc.data.sources.source import fields, laid
from jaxenc.data.store import Bits, Concatenation, Shards


@dataclasses.dataclass(frozen=True)
class Packed:
    """A row is several texts, each CLS, tokens, SEP, then padding; `segments` counts the texts from 1 and `positions` start again at 0.

    A document longer than length - 2 tokens is cut into texts of that many tokens and one of the rest; any other is one text. Texts are
    packed best-fit decreasing (as in Ding et al. 2024, "Fewer Truncations Improve Language Modeling"): from the longest to the
    shortest, each goes into the row with the least room that still fits it. `texts.WINDOW` documents are packed at a time. Which texts
    share a row depends on the data and the length alone and is the same in every epoch. Within a window rows are in the order of their
    first texts, and the texts of a row in the order of the data. An epoch shows every token exactly once.
    """

    shards: Shards
    length: int

    @property
    def fields(self) -> tuple[str, ...]:
        """Those of every source."""
        return fields(self.shards)

    @property
    def fingerprint(self) -> str:
        return fingerprint([self.shards.manifest.fingerprint, self.shards.split, "packed", self.length])

    @functools.cached_property
    def _texts(self) -> np.ndarray:
        """The texts row by row, int64 [texts + 1], in the code of `_coded`, with an empty one at the end."""
        name = f"packed-{self.shards.split}-{self.length}"
        return grid.kept(self.shards, name, 2 * self.length * len(self.shards.tokens) + 1, self._pack)

    @functools.cached_property
    def _rows(self) -> np.ndarray:
        """The number of the first text of each row, int64 [rows + 1]; the last item is the number of texts."""
        name = f"packed_rows-{self.shards.split}-{self.length}"
        return grid.kept(self.shards, name, len(self._texts) - 1, lambda: np.flatnonzero(self._texts & 1))

    def __len__(self) -> int:
        return len(self._rows) - 1

    def rows(self, epoch: int, indices: np.ndarray) -> Batch:
        """tokens [n, length] and the other fields; see Source."""
        vocabulary, shape = self.shards.manifest.tokenizer, (len(indices), self.length)
        first, after = self._rows[indices], self._rows[np.asarray(indices) + 1]
        row = np.repeat(np.arange(len(first)), after - first)
        number = numbers(after - first)
        starts, sizes = _decoded(self._texts[first[row] + number], self.length)
        # Places are those of the flat batch: `begins` and `ends` of the CLS and the SEP of each text.
        before = np.cumsum(sizes + 2) - (sizes + 2)
        begins = before - before[number == 0][row] + row * self.length
        ends, places = begins + sizes + 1, ranges(begins, sizes + 2)

        def lay(table: Concatenation | Bits, pad: int, begin: int, end: int) -> np.ndarray:
            out = laid(table, shape, pad, begins + 1, starts, sizes)
            out.reshape(-1)[begins], out.reshape(-1)[ends] = begin, end
            return out

        segments, positions = np.zeros(shape, np.int32), np.zeros(shape, np.int32)
        segments.reshape(-1)[places] = np.repeat(number + 1, sizes + 2)
        positions.reshape(-1)[places] = numbers(sizes + 2)
        out = {
            "tokens": lay(self.shards.tokens, vocabulary.pad, vocabulary.cls, vocabulary.sep),
            "types": np.zeros(shape, np.int32),
            "segments": segments,
            "positions": positions,
            "index": np.asarray(indices, np.uint32),
            "epoch": np.full(len(indices), epoch, np.uint32),
        }
        if self.shards.manifest.has_words:
            out["word_starts"] = lay(self.shards.words, 0, 1, 1)
            out["word_starts"].reshape(-1)[begins + 1] = 1
        return out

    def _pack(self) -> np.ndarray:
        """`_texts`, a window of documents at a time, so that memory is that of a window and of the result."""
        shards, packed = self.shards, []
        for starts, sizes in texts.windows(shards, self.length - 2):
            row = _best_fit(sizes + 2, self.length)
            # Rows in the order of their first texts: of equal rows `argsort` keeps the order of the texts.
            _, opens = np.unique(row, return_index=True)
            order = np.argsort(opens[row], kind="stable")
            packed.append(_coded(starts[order], sizes[order], opens[row][order] == order, self.length))
        end = _coded(np.array([len(shards.tokens)]), np.zeros(1, np.int64), np.ones(1, bool), self.length)
        return np.concatenate([*packed, end])


def _coded(starts: np.ndarray, sizes: np.ndarray, opens: np.ndarray, length: int) -> np.ndarray:
    """One int64 a text: its offset, its tokens and, in the lowest bit, whether a row begins with it."""
    return (starts * length + sizes) * 2 + opens


def _decoded(texts: np.ndarray, length: int) -> tuple[np.ndarray, np.ndarray]:
    """(offset, tokens) of each text, int64 both."""
    starts, sizes = np.divmod(texts >> 1, length)
    return starts, sizes


def _best_fit(places: np.ndarray, length: int) -> np.ndarray:
    """The row of each text, int64 [texts], by best-fit decreasing; places: int64 [texts], 1 to `length`.

    Of rows with the same room the one filled last is taken, and of texts of the same size the first goes first.
    """
    full = places == length
    out = np.zeros(len(places), np.int64)
    out[full] = np.arange(np.count_nonzero(full))
    rows = int(np.count_nonzero(full))
    with_room: list[list[int]] = [[] for _ in range(length + 1)]
    rooms = 0  # bit r is set where a row has room for r places
    part = np.flatnonzero(~full)
    part = part[np.argsort(-places[part], kind="stable")]
    for text, size in zip(part.tolist(), places[part].tolist(), strict=True):
        fitting = rooms >> size
        if fitting:
            room = size + (fitting & -fitting).bit_length() - 1
            row = with_room[room].pop()
            rooms ^= 0 if with_room[room] else 1 << room
        else:
            room, row, rows = length, rows, rows + 1
        out[text] = row
        with_room[room - size].append(row)
        rooms |= 1 << (room - size)
    return out
