"""Rows of Yang et al. (2019): a part that the next row starts from, then two segments; one of each pair of streams is read backward."""

import dataclasses

import numpy as np

from jaxenc.data import random
from jaxenc.data.batch import Batch, empty
from jaxenc.data.sources.line import Line, Reversed
from jaxenc.data.sources.source import DataConfig, fields
from jaxenc.data.sources.streams import HELD_OUT, Streams, StreamsPass, opened
from jaxenc.data.sources.walk import Walk
from jaxenc.data.store import Shards
from jaxenc.errors import UserError

SPECIALS = 3  # SEP, SEP, CLS


@dataclasses.dataclass(frozen=True)
class Spans:
    """Where the text of n rows stands in a line, int64 [n] each: the reused part and A from `begin`, `a` tokens of A; B; its label."""

    begin: np.ndarray
    a: np.ndarray
    b_begin: np.ndarray
    b: np.ndarray
    is_random: np.ndarray


@dataclasses.dataclass(frozen=True)
class Segments:
    """A row is `reuse` tokens, A, SEP, B, SEP, CLS; the types are 0 up to the first SEP, 1 up to the second, 2 at CLS. It is always full.

    Streams 2k and 2k + 1 walk part k of the text, the first from left to right (`direction` 1), the second from right to left (-1): its
    rows have the tokens in reversed order and the specials in the same places.

    As in zihangdai/xlnet:data_utils.py (_split_a_and_b): A begins behind the reused part and ends at a border of sentences, any of those
    before the room for A and B is full; B is the text from there to the first border behind that room, or with probability one half
    (always when A has no such border) the sentences around a random place (`is_random` 1), as many as fill the room; then the longer of
    the two loses tokens at its right, B when they are equal, until both fit. <eod> is a sentence.

    Unlike there, the text behind the end of a part is that of the next one, and behind the last the first, where the original stops
    before; the random place is anywhere in the split and not in the own part; and the choices are draws of (seed, epoch, row).
    `word_starts` marks the first piece of a word as it is written, also in a reversed row, and the first token in writing order of the
    reused part, of A and of B, which may stand inside a word.
    """

    line: Line
    length: int
    reuse: int
    seed: int

    @property
    def fields(self) -> tuple[str, ...]:
        """Those of every source, what a row says of its stream, and the label."""
        return fields(self.line.shards, "direction", "fresh", "is_random")

    def rows(self, walk: Walk, step: int, streams: np.ndarray, indices: np.ndarray) -> Batch:
        """The rows of `streams` at a step of the run; see Layout."""
        epoch, step = walk.at(step)
        out = empty(self.fields, len(streams), self.length)
        out["epoch"][:], out["index"][:], out["fresh"][:] = epoch, indices, step == 0
        out["segments"][:], out["positions"][:], out["direction"][:] = 1, np.arange(self.length), 1 - streams % 2 * 2
        for line, backward, begins in ((self.line, 0, walk.begins), (Reversed(self.line), 1, walk.begins_reversed)):
            here = np.flatnonzero(streams % 2 == backward)
            words = random.draws(self.seed, epoch, indices[here], 3, "streams")
            spans = self._spans(line, begins(streams[here] // 2, step), words)
            for name, values in self._laid(line, spans, bool(backward)).items():
                if name in out:
                    out[name][here] = values
        return out

    def _spans(self, line: Line | Reversed, begin: np.ndarray, words: np.ndarray) -> Spans:
        room, a_begin = self.length - self.reuse - 3, begin + self.reuse
        first, last = line.border(a_begin + 1), line.border(a_begin + room)
        is_random = (first == last) | (random.unit(words[:, 0]) < 0.5)
        middle = line.place(first + random.below(words[:, 1], np.maximum(last - first, 1)))
        a = middle - a_begin
        place = random.below(words[:, 2], len(line))
        around = line.place(line.border_before(place)), line.place(line.border(place + np.maximum(room - a, 1)))
        b_begin, b_end = (np.where(is_random, *pair) for pair in zip(around, (middle, line.place(last)), strict=True))
        b = b_end - b_begin
        excess = a + b - room
        from_longer = np.minimum(excess, np.abs(a - b))
        rest = excess - from_longer
        a_cut = np.where(a > b, from_longer, 0) + rest // 2
        return Spans(begin, a - a_cut, b_begin, b - (excess - a_cut), is_random)

    def _laid(self, line: Line | Reversed, spans: Spans, backward: bool) -> Batch:
        """tokens, types, word_starts [n, length] and is_random [n]."""
        vocabulary, places, end = self.line.shards.manifest.tokenizer, np.arange(self.length), self.length - 2
        middle = (self.reuse + spans.a)[:, None]
        tokens, words = line.read(places + np.where(places < middle, spans.begin[:, None], spans.b_begin[:, None] - middle - 1))
        special = (places == middle) | (places >= end)
        tokens = np.where(special, np.where(places > end, vocabulary.cls, vocabulary.sep), tokens)
        first = (places == 0) | (places == self.reuse) | (places == middle + 1)
        if backward:
            first = (places == self.reuse - 1) | (places == middle - 1) | (places == end - 1)
        types = (places > middle).astype(np.int32) + (places > end)
        return {"tokens": tokens, "types": types, "word_starts": words | special | first, "is_random": spans.is_random}


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
    """The streams of a split in `batch` slots. limit: rows of an evaluation, the first of all streams in turn, 0 for all.

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
    return opened(layout, Walk(len(line), parts, reuse), 2 * parts, batch, evaluation, limit)
