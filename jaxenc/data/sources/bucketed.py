"""Rows of one text each, in the shortest of a few lengths that holds it."""

import dataclasses
import functools

import numpy as np

from jaxenc.config import fingerprint
from jaxenc.data.batch import Batch
from jaxenc.data.sources import grid, texts
from jaxenc.data.sources.source import DataConfig, fields, framed_texts
from jaxenc.data.store import Shards
from jaxenc.errors import UserError


@dataclasses.dataclass(frozen=True)
class Bucket:
    """The rows of one length: CLS, the tokens of a text, SEP, padding. Of a vocabulary without CLS or SEP the tokens and padding alone.

    A document longer than the longest rows hold is cut into texts that fill them and one of the rest; any other is one text. The rows of
    `length` are the texts that fit it and do not fit the next shorter one, in the order of the data.

    shorter: the next shorter length, 0 for none; longest: the longest of all. first: number of the first row of this length among those of
    all lengths, so that `index` identifies a text.
    """

    shards: Shards
    length: int
    shorter: int
    longest: int
    first: int

    @property
    def fields(self) -> tuple[str, ...]:
        """Those of every source."""
        return fields(self.shards)

    @property
    def fingerprint(self) -> str:
        lengths = [self.shorter, self.length, self.longest]
        return fingerprint([self.shards.manifest.fingerprint, self.shards.split, "bucketed", lengths])

    @property
    def _ends(self) -> int:
        """Places of a row that hold no text: those of CLS and SEP."""
        return 2 * self.shards.manifest.tokenizer.frames

    @functools.cached_property
    def _texts(self) -> np.ndarray:
        """One int64 a text, its offset * (length + 1) + its tokens, and an empty text at the end: int64 [texts + 1]."""
        name = f"bucketed-{self.shards.split}-{self.shorter}-{self.length}-{self.longest}"
        return grid.kept(self.shards, name, len(self.shards.tokens) * (self.length + 1), self._fitting)

    def _fitting(self) -> np.ndarray:
        """`_texts`, a window of documents at a time, so that memory is that of a window and of the result."""
        found = []
        for starts, sizes in texts.windows(self.shards, self.longest - self._ends):
            fit = (sizes > self.shorter - self._ends) & (sizes <= self.length - self._ends)
            found.append(starts[fit] * (self.length + 1) + sizes[fit])
        return np.concatenate([*found, [len(self.shards.tokens) * (self.length + 1)]])

    def __len__(self) -> int:
        return len(self._texts) - 1

    def rows(self, epoch: int, indices: np.ndarray) -> Batch:
        """tokens [n, length] and the other fields; see Source."""
        indices = np.asarray(indices, np.int64)
        starts, sizes = np.divmod(self._texts[indices], self.length + 1)
        return framed_texts(self.shards, self.length, epoch, self.first + indices, starts, sizes)


def check_lengths(config: DataConfig) -> None:
    """Raises UserError for lengths of rows that do not end in the `length` of the run or of its phase, and for rows of several folders."""
    if config.mixture:
        what, fix = "data.rows=bucketed reads one folder", "set data.path to it, or use data.rows=packed, which may be mixed"
        raise UserError(what, "data.mixture", fix)
    if config.lengths[-1:] != (config.length,):
        held = f"lacks {config.length}, the length of the longest rows" if config.lengths else "is not set"
        fix = "set it to the lengths of bucketed rows, rising, with those of data.length and phases.length"
        raise UserError(held, "data.lengths", fix)


def open_buckets(shards: Shards, config: DataConfig) -> tuple[Bucket, ...]:
    """The rows of each length of `data.lengths`, rising. Raises UserError as `check_lengths`."""
    check_lengths(config)
    buckets, first = [], 0
    for shorter, length in zip((0, *config.lengths), config.lengths, strict=False):
        buckets.append(Bucket(shards, length, shorter, config.length, first))
        first += len(buckets[-1])
    return tuple(buckets)
