"""From rows to batches: the order of a run, one pass of an evaluation, and reading ahead."""

import contextlib
import dataclasses
import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

import numpy as np

from jaxenc.data.batch import Batch, pad_rows
from jaxenc.data.random import permuted
from jaxenc.data.sources import STREAMS, DataConfig, Opener, Source, open_source, open_streams
from jaxenc.data.store import open_split


class Batches(Protocol):
    """Batches that are asked for by their number, not iterated over: the whole state of the data is the number of the next one.

    fields: names of what a batch holds. len: batches of one pass over the data; training asks for later ones too.
    """

    fields: tuple[str, ...]

    def __len__(self) -> int: ...

    def batch_at(self, step: int, slots: slice) -> Batch:
        """The rows of global batch `step` that stand in `slots`, in slot order. Pure: equal arguments give equal rows in any process."""
        ...


@dataclasses.dataclass(frozen=True)
class Order:
    """The batches of a run: the rows of a source, in another order in every epoch. batch: rows of the global batch."""

    source: Source
    batch: int
    seed: int

    @property
    def fields(self) -> tuple[str, ...]:
        """Those of the source."""
        return self.source.fields

    def __len__(self) -> int:
        return -(-len(self.source) // self.batch)

    def batch_at(self, step: int, slots: slice = slice(None)) -> Batch:
        """Slot s of step t is row g = t * batch + s of the run: row g mod N of epoch g div N, shuffled within the epoch.

        Epochs follow each other without a gap, so a batch may hold the end of one and the start of the next.
        """
        rows = np.arange(self.batch, dtype=np.int64)[slots] + step * self.batch
        epochs, places = np.divmod(rows, len(self.source))
        if not len(rows):
            raise ValueError(f"no slot of {self.batch} in {slots}")
        parts = [self.source.rows(int(epoch), self._indices(int(epoch), places[epochs == epoch])) for epoch in np.unique(epochs)]
        return parts[0] if len(parts) == 1 else {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    def _indices(self, epoch: int, places: np.ndarray) -> np.ndarray:
        return permuted(len(self.source), self.seed, epoch, places)


@dataclasses.dataclass(frozen=True)
class Pass:
    """The batches of an evaluation: the first `rows` rows of epoch 0 (0 = all) once each, in order; padding rows fill the last batch."""

    source: Source
    batch: int
    rows: int = 0

    @property
    def fields(self) -> tuple[str, ...]:
        """Those of the source."""
        return self.source.fields

    @property
    def _end(self) -> int:
        return min(self.rows or len(self.source), len(self.source))

    def __len__(self) -> int:
        return -(-self._end // self.batch)

    def batch_at(self, step: int, slots: slice = slice(None)) -> Batch:
        """Slot s of batch t is row t * batch + s; see Batches."""
        indices = np.arange(self.batch, dtype=np.int64)[slots] + step * self.batch
        real = np.count_nonzero(indices < self._end)
        read = self.source.rows(0, np.minimum(indices, self._end - 1))
        return pad_rows({name: array[:real] for name, array in read.items()}, len(indices))


def open_batches(config: DataConfig, split: str, batch: int, seed: int, limit: int, opener: Opener = open_split) -> Batches:
    """The batches of a split: those of a run for `train`; one pass for another split, of the first `limit` rows (0 = all).

    batch: rows of the global batch. seed: of the run. opener: as in `open_source`. Raises UserError as `open_source` and `open_streams` do.
    """
    evaluation = split != "train"
    if config.rows in STREAMS:
        return open_streams(config, split, batch, seed, evaluation, limit, opener)
    source = open_source(config, split, seed, evaluation, opener)
    return Pass(source, batch, limit) if evaluation else Order(source, batch, seed)


@dataclasses.dataclass(frozen=True)
class _Failure:
    error: BaseException


def prefetch(function: Callable[[int], Any], steps: Iterable[int]) -> Iterator[Any]:
    """function(step) of each step, in order, made by one thread that is at most two results ahead.

    An error of the function is raised here, in its place. Closing the generator ends the thread.
    """
    results: queue.Queue = queue.Queue(maxsize=2)
    closed, end = threading.Event(), object()

    def put(item: Any) -> None:
        while not closed.is_set():
            with contextlib.suppress(queue.Full):
                return results.put(item, timeout=0.1)

    def work() -> None:
        try:
            for step in steps:
                put(function(step))
                if closed.is_set():
                    return
            put(end)
        except BaseException as error:
            put(_Failure(error))

    thread = threading.Thread(target=work, name="jaxenc-prefetch", daemon=True)
    thread.start()
    try:
        while (item := results.get()) is not end:
            if isinstance(item, _Failure):
                raise item.error
            yield item
    finally:
        closed.set()
        thread.join()
