"""Rows of Yang et al. (2019): a part that the next row starts from, then two segments; one of each pair of streams is read backward."""

import dataclasses

import numpy as np

from jaxenc.data import random
from jaxenc.data.batch import Batch
from jaxenc.data.sources.line import Line, Reversed
from jaxenc.data.sources.source import DataConfig, fields, laid
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

    As in zihangdai/xlnet:data_utils.py (_split_a_and_b): A begins after the reused part and ends at a border of sentences, any of those
    before the room for A and B is full; B is the text from there to the first border after that room, or with probability one half
    (always when A has no such border) the sentences around a random place (`is_random` 1), as many as fill the room; then the longer of
    the two loses tokens at its right, B when they are equal, until both fit. <eod> is a sentence.

    Unlike there, the text after the end of a part is that of the next one, and after the last the first, where the original stops
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
        backward, words = streams % 2 > 0, random.draws(self.seed, epoch, indices, 3, "streams")
        spans = Spans(*np.zeros((4, len(streams)), np.int64), np.zeros(len(streams), bool))
        for line, here, begins in ((self.line, ~backward, walk.begins), (Reversed(self.line), backward, walk.begins_reversed)):
            found = self._spans(line, begins(streams[here] // 2, step), words[here])
            for field in dataclasses.fields(Spans):
                getattr(spans, field.name)[here] = getattr(found, field.name)
        out = {
            **self._laid(backward, spans),
            "segments": np.ones((len(streams), self.length), np.int32),
            "positions": np.tile(np.arange(self.length, dtype=np.int32), (len(streams), 1)),
            "index": np.asarray(indices, np.uint32),
            "epoch": np.full(len(streams), epoch, np.uint32),
            "direction": (1 - streams % 2 * 2).astype(np.int32),
            "fresh": np.full(len(streams), step == 0, np.int32),
            "is_random": spans.is_random.astype(np.int32),
        }
        return {name: out[name] for name in self.fields}

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

    def _laid(self, backward: np.ndarray, spans: Spans) -> Batch:
        """tokens, types and word_starts, i32 [n, length]. backward: bool [n], rows that are laid from right to left and turned round."""
        shards, rows, a = self.line.shards, np.arange(len(spans.begin)), self.reuse + spans.a
        shape, vocabulary, begins = (len(rows), self.length), shards.manifest.tokenizer, rows * self.length
        # Two runs a row, from left to right: the reused part and A, then B; in a row to be turned round B comes first.
        turned = (begins + 2, -spans.b_begin - spans.b, spans.b), (begins + self.length - a, -spans.begin - a, a)
        straight = (begins, spans.begin, a), (begins + a + 1, spans.b_begin, spans.b)
        both = np.where(backward, turned, straight)
        runs, eods = self.line.runs(*(both[:, part].T.reshape(-1) for part in range(3)))
        tokens = laid(shards.tokens, shape, vocabulary.sep, *runs)
        tokens.reshape(-1)[eods] = vocabulary.eod
        words = laid(shards.words, shape, 1, *runs) if shards.manifest.has_words else np.ones(shape, np.int32)
        for array in (tokens, words):
            array[backward] = array[backward, ::-1]
        tokens[:, -1] = vocabulary.cls
        # The first token, in writing order, of the reused part, of A and of B: a reversed part ends with it.
        firsts = (np.where(backward, *pair) for pair in ((self.reuse - 1, 0), (a - 1, self.reuse), (self.length - 3, a + 1)))
        for place in firsts:
            words[rows, place] = 1
        types = (np.arange(self.length, dtype=np.int32) > a.astype(np.int32)[:, None]).astype(np.int32)
        types[:, -1] = 2
        return {"tokens": tokens, "types": types, "word_starts": words}


def check_segments(config: DataConfig, batch: int) -> None:
    """Raises UserError for lengths that leave no room and for a batch that is odd, both whatever the text."""
    length, reuse = config.length, config.reuse
    if reuse < 1:
        raise UserError("data.reuse is 0: rows of 'streams' go on from a part of the row before", fix="set 1 or more, 256 for rows of 512")
    if reuse + SPECIALS + 2 > length:
        room = f"{reuse + SPECIALS + 2} or more, for {SPECIALS} specials and two segments stand after the reused part"
        raise UserError(f"data.reuse is {reuse} and data.length is {length}", fix=f"make data.length {room}")
    if batch % 2:
        raise UserError(f"train.batch is {batch}: 'streams' come in pairs, one forward and one backward", fix="make it even")


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
        wanted, lower = ("", "") if evaluation else (f", and the batch is {batch}", "lower the batch, ")
        raise UserError(held + wanted, config.path, f"{lower}shorten the rows or add text")
    return opened(layout, Walk(len(line), parts, reuse), 2 * parts, batch, evaluation, limit)
