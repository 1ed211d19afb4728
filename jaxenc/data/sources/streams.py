"""Batches whose slots are streams: slot s of a step goes on from slot s of the step before."""

import dataclasses
from typing import Protocol

import numpy as np

from jaxenc.data.batch import Batch, pad_rows
from jaxenc.data.sources.walk import Walk

# The most streams of an evaluation. It does not depend on the batch or the mesh, so neither changes a held-out number.
HELD_OUT = 64


class RowLayout(Protocol):
    """What a row of a stream holds."""

    @property
    def fields(self) -> tuple[str, ...]:
        """Names of what a batch holds."""
        ...

    def rows(self, walk: Walk, step: int, streams: np.ndarray, indices: np.ndarray) -> Batch:
        """The rows of `streams` at a step of the run; indices: their numbers within the epoch, both int64 [n]. Pure."""
        ...


@dataclasses.dataclass(frozen=True)
class Streams:
    """The batches of a run: slot s is stream s, and its rows follow each other from step to step. layout: what a row holds."""

    layout: RowLayout
    walk: Walk
    batch: int

    @property
    def fields(self) -> tuple[str, ...]:
        """Those of the layout."""
        return self.layout.fields

    def __len__(self) -> int:
        return len(self.walk)

    def batch_at(self, step: int, slots: slice = slice(None)) -> Batch:
        """Slot s of step t is the row t of stream s, number t · batch + s of its epoch; see Batches."""
        streams = _held(self.batch, slots)
        return self.layout.rows(self.walk, step, streams, self.walk.at(step)[1] * self.batch + streams)


@dataclasses.dataclass(frozen=True)
class StreamsPass:
    """The batches of an evaluation: the rows of `streams` streams once each, a group of `batch` streams after the other.

    A row has the same number in the epoch, and follows the same row, whatever the batch: number g is that of stream g mod `streams` at
    step g div `streams`. Rows from number `end` on, and slots after the last stream, are padding.
    """

    layout: RowLayout
    walk: Walk
    streams: int
    batch: int
    end: int

    @property
    def fields(self) -> tuple[str, ...]:
        """Those of the layout."""
        return self.layout.fields

    @property
    def _steps(self) -> int:
        return -(-self.end // self.streams)

    def __len__(self) -> int:
        return -(-self.streams // self.batch) * self._steps

    def batch_at(self, step: int, slots: slice = slice(None)) -> Batch:
        """Slot s of batch t is the row t mod steps of stream s of group t div steps; see Batches."""
        group, step = divmod(step, self._steps)
        streams = _held(self.batch, slots) + group * self.batch
        indices = step * self.streams + streams
        real = (streams < self.streams) & (indices < self.end)
        return pad_rows(self.layout.rows(self.walk, step, streams[real], indices[real]), len(streams))


def _held(batch: int, slots: slice) -> np.ndarray:
    held = np.arange(batch, dtype=np.int64)[slots]
    if not len(held):
        raise ValueError(f"no slot of {batch} in {slots}")
    return held


def opened(layout: RowLayout, walk: Walk, streams: int, batch: int, evaluation: bool, limit: int) -> Streams | StreamsPass:
    """The batches of `streams` streams: those of a run, where each has a slot; or an evaluation of their first `limit` rows, 0 for all."""
    if not evaluation:
        return Streams(layout, walk, batch)
    rows = len(walk) * streams
    return StreamsPass(layout, walk, streams, batch, min(limit or rows, rows))
