"""Batches of several lengths: all rows of a batch have one length, which follows from the number of the batch alone."""

import bisect
import dataclasses
import functools
import itertools
from collections.abc import Sequence

import numpy as np

from jaxenc.data.batch import Batch
from jaxenc.data.order import Order, Pass
from jaxenc.data.random import permuted
from jaxenc.data.sources import Source
from jaxenc.data.sources.mixture import quotas

# Batches that are put in order together: enough to mix the lengths, few enough that `permuted` has the rows of most of them in its cache.
PART = 256


@dataclasses.dataclass(frozen=True)
class Buckets:
    """The batches of a run over several sources, one for each length. batch: rows of the global batch, the same for every length.

    A source is read in epochs of its own, as by `Order`, so that every batch is full and all rows are read equally often. The run is cut
    into parts of an epoch, of PART batches or more. When k of K parts to an epoch are read, a source of r rows has filled
    k * r div (K * batch) batches; what is left, less than a batch, waits for the next part. So each part has a known number of batches of
    every length, and a permutation of their numbers decides which of them each step takes.
    """

    sources: tuple[Source, ...]
    batch: int
    seed: int

    @property
    def fields(self) -> tuple[str, ...]:
        """Those of any source."""
        return self.sources[0].fields

    def __len__(self) -> int:
        return -(-sum(map(len, self.sources)) // self.batch)

    def batch_at(self, step: int, slots: slice = slice(None)) -> Batch:
        """See Batches; the length is that of the source of `place`."""
        source, number = self.place(step)
        return self._orders[source].batch_at(number, slots)

    def place(self, step: int) -> tuple[int, int]:
        """(number of the source, number of the batch among all batches of that source in the run) of a step of the run. Pure."""
        rows, of_parts = sum(map(len, self.sources)), self.batch * self._parts
        # Each source is less than a batch behind its k * r / (K * batch) batches, so the part lies in a small range.
        first, last = step * of_parts // rows, (step + len(self.sources)) * of_parts // rows + 1
        part = first - 1 + bisect.bisect_right(range(first, last + 1), step, key=lambda part: sum(self._before(part)))
        before, after = self._before(part), self._before(part + 1)
        counts = [end - begin for begin, end in zip(before, after, strict=True)]
        drawn = int(permuted(sum(counts), self.seed, part, np.array([step - sum(before)]))[0])
        source, nth = _owner(counts, drawn)
        return source, before[source] + nth

    @property
    def _parts(self) -> int:
        """Parts of an epoch."""
        return max(1, sum(map(len, self.sources)) // (self.batch * PART))

    def _before(self, part: int) -> list[int]:
        """Batches of each source before a part of the run. Python's integers, which do not overflow."""
        return [part * len(source) // (self._parts * self.batch) for source in self.sources]

    @functools.cached_property
    def _orders(self) -> list[Order]:
        return [Order(source, self.batch, self.seed, part) for part, source in enumerate(self.sources, 1)]


@dataclasses.dataclass(frozen=True)
class BucketsPass:
    """The batches of an evaluation: the rows of one source after another, once each; padding rows fill the last batch of each source.

    rows: how many in all, 0 for every one; each source gives its first ones, in proportion to its size.
    """

    sources: tuple[Source, ...]
    batch: int
    rows: int = 0

    @property
    def fields(self) -> tuple[str, ...]:
        """Those of any source."""
        return self.sources[0].fields

    def __len__(self) -> int:
        return sum(map(len, self._passes))

    def batch_at(self, step: int, slots: slice = slice(None)) -> Batch:
        """See Batches."""
        source, nth = _owner(list(map(len, self._passes)), step)
        return self._passes[source].batch_at(nth, slots)

    @functools.cached_property
    def _passes(self) -> list[Pass]:
        sizes = np.array(list(map(len, self.sources)), np.int64)
        taken = quotas(sizes / sizes.sum(), min(self.rows or sizes.sum(), sizes.sum()))
        return [Pass(source, self.batch, rows) for source, rows in zip(self.sources, taken, strict=True) if rows]


def _owner(counts: Sequence[int], number: int) -> tuple[int, int]:
    """(which of the groups of these sizes holds item `number`, its number within the group)."""
    ends = list(itertools.accumulate(counts))
    group = bisect.bisect_right(ends, number)
    return group, number - ends[group] + counts[group]
