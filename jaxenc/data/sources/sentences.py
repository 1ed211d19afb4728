"""Rows of Peters et al. (2018): sentences between their markers, one after another, read from the start of the text and from its end."""

import dataclasses
import functools

import numpy as np

from jaxenc.data.batch import Batch, empty
from jaxenc.data.sources import grid
from jaxenc.data.sources.source import DataConfig
from jaxenc.data.sources.streams import HELD_OUT, Streams, StreamsPass, opened
from jaxenc.data.sources.walk import Walk
from jaxenc.data.store import Shards
from jaxenc.errors import UserError


@dataclasses.dataclass(frozen=True)
class Sentences:
    """A row is two runs of `length` places of one part of the text, the first read from its start, the second from its end.

    A sentence w1 .. wn has n + 1 places: between <S> and w1, between w1 and w2, up to wn and </S>. The forward run reads at each place
    what stands on its left (`tokens`) and predicts what stands on its right (`targets`), so <S> w1 .. wn and w1 .. wn </S>; the backward
    run reads the right (`reverse_tokens`) and predicts the left (`reverse_targets`), so </S> wn .. w1 and wn .. w1 <S>. No target
    is of another sentence than the token before it. As in allenai/bilm-tf:bilm/data.py (_get_batch, and `reverse` of its sentences);
    there the two directions walk different parts of the text.

    <S> and </S> are the vocabulary's cls and sep. Targets from its size on are unk. The runs of a stream go on from row to row, also inside
    a sentence; after the last place of its part a row is padding (`segments` 0), so an epoch holds every place once a direction.
    """

    shards: Shards
    length: int

    @property
    def fields(self) -> tuple[str, ...]:
        """What both directions read and predict, and what a row says of its stream; characters where the data has them."""
        has_characters = self.shards.characters is not None
        both = ("tokens", "targets", *["characters"] * has_characters)
        return ("segments", "index", "epoch", "fresh", *both, *(f"reverse_{name}" for name in both))

    def __len__(self) -> int:
        """Places of the text."""
        return len(self.shards.tokens) + self._sentences

    @property
    def _sentences(self) -> int:
        return len(self.shards.sentences) - 1

    def rows(self, walk: Walk, step: int, streams: np.ndarray, indices: np.ndarray) -> Batch:
        """The rows of `streams` at a step of the run; see Layout. Stream s walks part s of the text."""
        epoch, step = walk.at(step)
        out = empty(self.fields, len(streams), self.length)
        out["epoch"][:], out["index"][:], out["fresh"][:] = epoch, indices, step == 0
        first, end = walk.begins(streams, 0), walk.begins(streams + 1, 0)
        real = first[:, None] + step * self.length + np.arange(self.length) < end[:, None]
        begins = np.concatenate([first + step * self.length, end - (step + 1) * self.length])
        (left, last_left), (right, last_right) = (np.split(ids, 2) for ids in self._around(begins))
        self._fill(out, "", real, left, right)
        self._fill(out, "reverse_", real, last_right[:, ::-1], last_left[:, ::-1])
        out["segments"][:] = real
        return out

    def _fill(self, out: Batch, prefix: str, real: np.ndarray, read: np.ndarray, predicted: np.ndarray) -> None:
        vocabulary, characters = self.shards.manifest.tokenizer, self.shards.characters
        out[f"{prefix}tokens"][:] = read
        out[f"{prefix}targets"][:] = np.where(predicted < vocabulary.size, predicted, vocabulary.unk)
        if characters is not None:
            np.take(characters, read, axis=0, out=out[f"{prefix}characters"], mode="clip")
        if not real.all():
            padding = {f"{prefix}tokens": vocabulary.pad, f"{prefix}targets": 0, f"{prefix}characters": 0}
            for name in padding.keys() & out.keys():
                out[name][~real] = padding[name]

    def _around(self, begins: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The ids on the left and on the right of the places from `begins` (int64 [n]) on: int64 [n, length] both.

        After the end of the text comes its start, so a place is any integer.
        """
        vocabulary, tokens = self.shards.manifest.tokenizer, self.shards.tokens
        sentence = self._sentence(begins)
        starts = self._start(sentence[:, None] + np.arange(self.length // 2 + 2)) - begins[:, None]  # no sentence has only one place
        opens = np.zeros((len(begins), self.length + 2), np.int64)
        np.put_along_axis(opens, np.where(starts < 0, self.length + 1, np.minimum(starts, self.length + 1)), 1, axis=1)
        opens = opens[:, : self.length + 1]
        # A place has as many markers <S> before it as sentences have begun.
        number = begins[:, None] + np.arange(self.length) - (sentence[:, None] + np.cumsum(opens[:, :-1], axis=1) - opens[:, :1])
        # The token on the left of a place is the one on the right of the place before.
        found = tokens.take(np.concatenate([number[:, :1] - 1, number], axis=1) % len(tokens))
        return np.where(opens[:, :-1], vocabulary.cls, found[:, :-1]), np.where(opens[:, 1:], vocabulary.sep, found[:, 1:])

    @functools.cached_property
    def _starts(self) -> np.ndarray:
        """The first place of each sentence, int64 [sentences + 1]; the last item is the number of places. Kept beside the shards."""
        make = lambda: self.shards.sentences.take(np.arange(self._sentences + 1)) + np.arange(self._sentences + 1)
        return np.asarray(grid.kept(self.shards, f"sentence_places-{self.shards.split}", len(self), make))

    def _start(self, sentences: np.ndarray) -> np.ndarray:
        """The first place of each sentence (int64, any shape and any round)."""
        rounds, sentences = np.divmod(sentences, self._sentences)
        return self._starts[sentences] + rounds * len(self)

    def _sentence(self, places: np.ndarray) -> np.ndarray:
        """The sentence that each place (int64 [n], of any round) is of."""
        rounds, places = np.divmod(places, len(self))
        return np.searchsorted(self._starts, places, "right") - 1 + rounds * self._sentences


def check_sentences(config: DataConfig, batch: int) -> None:
    """Raises UserError for a length that no row can have. Any batch is possible, whatever the text."""
    if config.length < 1:
        raise UserError(f"data.length is {config.length}", fix="rows of 'sentences' need 1 or more, 20 are published")


def open_sentences(shards: Shards, config: DataConfig, batch: int, seed: int, evaluation: bool, limit: int) -> Streams | StreamsPass:
    """The streams of a split, one for each slot of `batch`. seed: no row depends on it. limit: rows of an evaluation, the first of all
    streams in turn, 0 for all.

    Raises UserError as `check_sentences`, and for a text that is too short to give each slot a whole row.
    """
    check_sentences(config, batch)
    layout = Sentences(shards, config.length)
    fits = len(layout) // config.length
    if not evaluation and fits < batch:
        held = f"the split {shards.split} has {len(layout):,} tokens with its markers, which are {fits} rows of {config.length}"
        raise UserError(f"{held}, and the batch is {batch}", config.path, "lower the batch, shorten the rows or add text")
    streams = min(HELD_OUT, max(fits, 1)) if evaluation else batch
    return opened(layout, Walk(len(layout), streams, config.length), streams, batch, evaluation, limit)
