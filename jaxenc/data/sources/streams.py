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


@dataclasses.dataclass(frozen=True)
class Streams:
    """Slot s is stream s; slots behind the last stream, and rows of an epoch from number `end` on, are padding.

    layout: what a row holds. Row number g of an epoch is that of stream g mod `streams` at step g div `streams` of it.
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

    def __len__(self) -> int:
        return -(-self.end // self.streams)

    def batch_at(self, step: int, slots: slice = slice(None)) -> Batch:
        """Slot s of step t is the row t of stream s; see Batches."""
        held = np.arange(self.batch, dtype=np.int64)[slots]
        if not len(held):
            raise ValueError(f"no slot of {self.batch} in {slots}")
        indices = self.walk.at(step)[1] * self.streams + held
        real = (held < self.streams) & (indices < self.end)
        return pad_rows(self.layout.rows(self.walk, step, held[real], indices[real]), len(held))


def open_segments(shards: Shards, config: DataConfig, batch: int, seed: int, evaluation: bool, limit: int, most: int = 0) -> Streams:
    """XLNet's streams over a split; `batch` slots. limit: rows of an evaluation, the first of all streams in turn, 0 for all.

    An evaluation takes `most` of its slots, 0 for all, and no more than the text has streams for; training takes all. Where the streams
    begin depends on their number, so the rows of an evaluation do too: slots that only fill up a mesh must not be counted.
    Raises UserError for lengths that leave no room, a batch that is odd, and a text that is too short.
    """
    length, reuse = config.length, config.reuse
    if reuse < 1:
        raise UserError("data.reuse is 0: rows of 'streams' go on from a part of the row before; set 1 or more, 256 for rows of 512")
    if reuse + SPECIALS + 2 > length:
        room = f"{reuse + SPECIALS + 2} or more, for {SPECIALS} specials and two segments stand behind the reused part"
        raise UserError(f"data.reuse is {reuse} and data.length is {length}: make data.length {room}")
    line = Line(shards)
    fits = len(line) // (length - SPECIALS)
    asked = min(most or batch, batch) if evaluation else batch
    if asked < 2 or (asked % 2 and not evaluation):
        owner = "eval" if evaluation else "train"
        raise UserError(f"{owner}.batch is {asked}: 'streams' come in pairs, one forward and one backward; make it even")
    parts = min(asked // 2, fits) if evaluation else asked // 2
    if not 0 < parts <= fits:
        held = f"the split {shards.split} has {len(line):,} tokens, enough for {2 * fits} streams with rows of {length}"
        raise UserError(f"{config.path}: {held}, and the batch is {asked}: lower the batch, shorten the rows or add text")
    walk = Walk(len(line), parts, reuse)
    rows = len(walk) * 2 * parts
    return Streams(Segments(line, length, reuse, seed), walk, 2 * parts, batch, min(limit or rows, rows))
