"""From rows to batches: the order of a run, the batches of an evaluation, and reading ahead."""

import contextlib
import dataclasses
import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from jaxenc.data.batch import Batch, pad_rows
from jaxenc.data.random import feistel
from jaxenc.data.sources.source import Source


@dataclasses.dataclass(frozen=True)
class Order:
    """Which row stands in which slot of which batch. batch: rows of the global batch; shuffle: another order in every epoch.

    The whole state of the data is the number of the next step: batches are asked for, not iterated over.
    """

    source: Source
    batch: int
    seed: int
    shuffle: bool = True

    def batch_at(self, step: int, slots: slice = slice(None)) -> Batch:
        """The rows of global batch `step`, or those in `slots` of it, in slot order.

        Slot s of step t is row g = t * batch + s of the run: row g mod N of epoch g div N, shuffled within the epoch. Epochs follow
        each other without a gap, so a batch may hold the end of one and the start of the next. Pure.
        """
        rows = np.arange(self.batch, dtype=np.int64)[slots] + step * self.batch
        epochs, places = np.divmod(rows, len(self.source))
        if not len(rows):
            raise ValueError(f"no slot of {self.batch} in {slots}")
        parts = [self.source.rows(int(epoch), self._indices(int(epoch), places[epochs == epoch])) for epoch in np.unique(epochs)]
        return parts[0] if len(parts) == 1 else {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    def _indices(self, epoch: int, places: np.ndarray) -> np.ndarray:
        return feistel(len(self.source), self.seed, epoch)(places) if self.shuffle else places


def evaluation_batches(source: Source, batch: int, rows: int = 0) -> Iterator[Batch]:
    """The first `rows` rows of epoch 0 (0 = all) once each, in order, `batch` at a time; padding rows fill the last batch."""
    end = min(rows, len(source)) if rows else len(source)
    for start in range(0, end, batch):
        yield pad_rows(source.rows(0, np.arange(start, min(start + batch, end))), batch)


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
