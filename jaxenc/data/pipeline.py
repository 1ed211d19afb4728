"""From rows to batches: those of a run or of an evaluation, and reading ahead."""

import contextlib
import dataclasses
import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

from jaxenc.data.batch import Batch
from jaxenc.data.buckets import Buckets, BucketsPass
from jaxenc.data.order import Order, Pass
from jaxenc.data.sources import BUCKETED, STREAMS, DataConfig, Opener, open_bucketed, open_source, open_streams
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


def open_batches(config: DataConfig, split: str, batch: int, seed: int, limit: int, opener: Opener = open_split) -> Batches:
    """The batches of a split: those of a run for `train`; one pass for another split, of the first `limit` rows (0 = all).

    batch: rows of the global batch. seed: of the run. opener: as in `open_source`. Raises UserError as `open_source` and `open_streams` do.
    """
    evaluation = split != "train"
    if config.rows in STREAMS:
        return open_streams(config, split, batch, seed, evaluation, limit, opener)
    if config.rows in BUCKETED:
        sources = open_bucketed(config, split, opener)
        return BucketsPass(sources, batch, limit) if evaluation else Buckets(sources, batch, seed)
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
