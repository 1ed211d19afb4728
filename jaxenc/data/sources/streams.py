"""Batches whose slots are streams: slot s of a step goes on from slot s of the step before."""

import dataclasses

import numpy as np

from jaxenc.data.batch import Batch, pad_rows
from jaxenc.data.sources.line import Line
from jaxenc.data.sources.segments import Segments
from jaxenc.data.sources.source import DataConfig
from jaxenc.data.sources.walk import Walk
from jaxenc.data.store import Shards
from jaxenc.errors import UserError

SPECIALS = 3  # SEP, SEP, CLS
# Streams of an evaluation, as far as the text has so many: a number of its own, so that no batch and no mesh changes a held-out number.
HELD_OUT = 64


@dataclasses.dataclass(frozen=True)
class Streams:
    """The batches of a run: slot s is stream s, and its rows follow each other from step to step. layout: what a row holds."""

    layout: Segments
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
    step g div `streams`. Rows from number `end` on, and slots behind the last stream, are padding.
    """

    layout: Segments
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


def check_segments(config: DataConfig, batch: int) -> None:
    """Raises UserError for lengths that leave no room and for a batch that is odd, both whatever the text."""
    length, reuse = config.length, config.reuse
    if reuse < 1:
        raise UserError("data.reuse is 0: rows of 'streams' go on from a part of the row before; set 1 or more, 256 for rows of 512")
    if reuse + SPECIALS + 2 > length:
        room = f"{reuse + SPECIALS + 2} or more, for {SPECIALS} specials and two segments stand behind the reused part"
        raise UserError(f"data.reuse is {reuse} and data.length is {length}: make data.length {room}")
    if batch % 2:
        raise UserError(f"train.batch is {batch}: 'streams' come in pairs, one forward and one backward; make it even")


def open_segments(shards: Shards, config: DataConfig, batch: int, seed: int, evaluation: bool, limit: int) -> Streams | StreamsPass:
    """XLNet's streams over a split; `batch` slots. limit: rows of an evaluation, the first of all streams in turn, 0 for all.

    Raises UserError as `check_segments`, and for a text that is too short.
    """
    check_segments(config, 0 if evaluation else batch)
    line, length, reuse = Line(shards), config.length, config.reuse
    layout, fits = Segments(line, length, reuse, seed), len(line) // (length - SPECIALS)
    parts = min(HELD_OUT // 2, fits) if evaluation else batch // 2
    if not 0 < parts <= fits:
        held = f"the split {shards.split} has {len(line):,} tokens, enough for {2 * fits} streams with rows of {length}"
        mend = ": shorten the rows" if evaluation else f", and the batch is {batch}: lower the batch, shorten the rows"
        raise UserError(f"{config.path}: {held}{mend} or add text")
    walk = Walk(len(line), parts, reuse)
    if not evaluation:
        return Streams(layout, walk, batch)
    rows = len(walk) * 2 * parts
    return StreamsPass(layout, walk, 2 * parts, batch, min(limit or rows, rows))
