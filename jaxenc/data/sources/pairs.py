"""Pairs of segments, for next-sentence prediction (Devlin et al. 2018) and for the order of sentences (Lan et al. 2019), as a function of
(seed, epoch, index)."""

import dataclasses
import functools
from typing import ClassVar

import numpy as np

from jaxenc.config import fingerprint
from jaxenc.data import random
from jaxenc.data.batch import Batch
from jaxenc.data.sources.chunks import chunk_starts
from jaxenc.data.sources.source import fields, framed, laid
from jaxenc.data.store import Shards


@dataclasses.dataclass(frozen=True)
class Pairs:
    """Row i is CLS A SEP B SEP, made of chunk i: whole sentences of one document, up to length - 3 tokens.

    As in google-research/bert:create_pretraining_data.py: with probability `short_probability` only the first sentences of the chunk
    that reach a target drawn from 2 to length - 3 are used; A is its first a sentences, a from 1 to n - 1; B is the rest, or with
    probability one half (always when n is 1) sentences from a random place of another document, as many as the target asks for
    (`is_random` 1); the longer of A and B loses tokens at its front or back, at random, until both fit.

    Unlike there, the chunks are the same in every epoch, so that their number is fixed and a row needs no other row: a chunk ends
    before the sentence that would exceed length - 3 and not after it, the other document is never the chunk's own when there are two,
    and the unused tail of a random pair is not put back. Measured on 35 M tokens of English books and manuals, one pass shows 22 % of
    the tokens nowhere at length 128, and 24 % at length 512; other tokens come a second time as random text.
    With one document the random text comes from that document, as in the original. In evaluation the draws do not depend on the epoch.
    """

    kind: ClassVar[str] = "pairs"

    shards: Shards
    length: int
    short_probability: float
    seed: int
    evaluation: bool

    @property
    def fields(self) -> tuple[str, ...]:
        """Those of every source, and the label."""
        return fields(self.shards, "is_random")

    @property
    def fingerprint(self) -> str:
        settings = [self.length, self.short_probability, self.seed, self.evaluation]
        return fingerprint([self.shards.manifest.fingerprint, self.shards.split, self.kind, *settings])

    @functools.cached_property
    def _chunks(self) -> np.ndarray:
        return chunk_starts(self.shards, self.length - 3)

    def __len__(self) -> int:
        return len(self._chunks) - 1

    def rows(self, epoch: int, indices: np.ndarray) -> Batch:
        """tokens [n, length], is_random [n] and the other fields; see Source."""
        indices = np.asarray(indices, np.int64)
        drawn = 0 if self.evaluation else epoch
        words = random.draws(self.seed, drawn, indices, 6, "pairs")
        target = self._targets(words)
        middle, end, document = self._split(indices, target, words[:, 2])
        first = self._chunks[indices]
        is_random, swapped = self._negatives(end - first == 1, random.unit(words[:, 3]) < 0.5)
        a = self._span(first, middle)
        b_first, b_end = self._random_text(document, target - a[1], words)
        b = self._span(np.where(is_random, b_first, middle), np.where(is_random, b_end, end))
        a, b = (tuple(np.where(swapped, other, one) for one, other in zip(*sides, strict=True)) for sides in ((a, b), (b, a)))
        spans = self._trimmed(drawn, indices, a, b)
        return self._assembled(epoch, indices, *spans) | {"is_random": (is_random | swapped).astype(np.int32)}

    def _negatives(self, alone: np.ndarray, drawn: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(rows whose B is random text, rows whose parts change places), bool [n]. alone: where the chunk is one sentence, so that nothing
        follows A; drawn: fair coins."""
        return alone | drawn, np.zeros_like(alone)

    def _span(self, first: np.ndarray, end: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(offset, tokens) of the sentences from `first` to before `end`."""
        start = self.shards.sentences.take(first)
        return start, self.shards.sentences.take(end) - start

    def _targets(self, words: np.ndarray) -> np.ndarray:
        full = self.length - 3
        short = random.unit(words[:, 0]) < self.short_probability
        return np.where(short, 2 + random.below(words[:, 1], full - 1), full)

    def _split(self, indices: np.ndarray, target: np.ndarray, words: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(sentence where B starts, sentence after B, document) of a chunk used up to the sentence that reaches the target."""
        first, last = self._chunks[indices], self._chunks[indices + 1]
        reached = self.shards.sentences.search(self.shards.sentences.take(first) + target, "left")
        end = np.clip(reached, first + 1, last)
        middle = np.where(end - first == 1, end, first + 1 + random.below(words, np.maximum(end - first - 1, 1)))
        return middle, end, self.shards.documents.search(first, "right") - 1

    def _random_text(self, own: np.ndarray, wanted: np.ndarray, words: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(first sentence, the one after the last) of `wanted` tokens or a little more, from a document other than `own`. Exactly one
        sentence where `wanted` is 0 or negative, that is where A alone reached the target."""
        others = len(self.shards.documents) - 2
        document = random.below(words[:, 4], max(others, 1))
        document += (document >= own) & (others > 0)
        start, end = self.shards.documents.take(document), self.shards.documents.take(document + 1)
        first = start + random.below(words[:, 5], end - start)
        reached = self.shards.sentences.search(self.shards.sentences.take(first) + wanted, "left")
        return first, np.clip(reached, first + 1, end)

    def _trimmed(self, epoch: int, indices: np.ndarray, a: tuple, b: tuple) -> tuple[np.ndarray, ...]:
        """(a offset, a tokens, b offset, b tokens) after removing tokens one by one from the longer side, from B when they are equal."""
        (a_start, a_size), (b_start, b_size) = a, b
        excess = np.maximum(a_size + b_size - (self.length - 3), 0)
        from_longer = np.minimum(excess, np.abs(a_size - b_size))
        rest = excess - from_longer
        a_cut = np.where(a_size > b_size, from_longer, 0) + rest // 2
        b_cut = np.where(b_size > a_size, from_longer, 0) + (rest + 1) // 2
        a_front, b_front = self._heads(epoch, indices, np.stack([a_cut, b_cut]))
        return a_start + a_front, a_size - a_cut, b_start + b_front, b_size - b_cut

    def _heads(self, epoch: int, indices: np.ndarray, flips: np.ndarray) -> np.ndarray:
        """How many of `flips` [2, n] fair coins show heads. Coin t of side s is bit t mod 64 of the row's draw 2 (t div 64) + s."""
        heads = np.zeros_like(flips)
        rows = np.flatnonzero(flips.any(0))
        if rows.size:
            blocks = -(-int(flips.max()) // 64)
            words = random.draws(self.seed, epoch, indices[rows], 2 * blocks, "trim").reshape(-1, blocks, 2)
            left = np.clip(flips[:, rows].T[:, None] - 64 * np.arange(blocks)[:, None], 0, 64).astype(np.uint64)
            masks = np.where(left == 64, ~np.uint64(0), (np.uint64(1) << (left & np.uint64(63))) - np.uint64(1))
            heads[:, rows] = np.bitwise_count(words & masks).sum(1, dtype=np.int64).T
        return heads

    def _assembled(self, epoch: int, indices: np.ndarray, a_start, a_size, b_start, b_size) -> Batch:
        vocabulary, shape = self.shards.manifest.tokenizer, (len(indices), self.length)
        begins = np.arange(len(indices)) * self.length
        middle, end = begins + a_size + 1, begins + a_size + b_size + 2
        runs = [np.stack(sides, 1).reshape(-1) for sides in ((begins + 1, middle + 1), (a_start, b_start), (a_size, b_size))]
        tokens = laid(self.shards.tokens, shape, vocabulary.pad, *runs)
        tokens.reshape(-1)[begins], tokens.reshape(-1)[middle], tokens.reshape(-1)[end] = vocabulary.cls, vocabulary.sep, vocabulary.sep
        frame = framed(self.length, epoch, indices, a_size + b_size + 3)
        types = frame["segments"] * (np.arange(self.length, dtype=np.int32) > (a_size + 1).astype(np.int32)[:, None])
        out = {"tokens": tokens, "types": types, **frame}
        if self.shards.manifest.has_words:
            out["word_starts"] = laid(self.shards.words, shape, 0, *runs)
            for places in (begins, begins + 1, middle, middle + 1, end):
                out["word_starts"].reshape(-1)[places] = 1
        return out


class SwappedPairs(Pairs):
    """As `Pairs`, but B always follows A in the document, and with probability one half the two have changed places (`is_random` 1), as in
    google-research/albert:create_pretraining_data.py without random_next_sentence. A chunk of one sentence has a random B, label 1."""

    kind: ClassVar[str] = "swapped_pairs"

    def _negatives(self, alone: np.ndarray, drawn: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return alone, drawn & ~alone
