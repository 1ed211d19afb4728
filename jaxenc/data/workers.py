"""Worker processes, which end with the command that started them even if it is killed."""

import collections
import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any, TypeVar

from jaxenc.errors import UserError

T = TypeVar("T")
# Advice where a process that was spawned ends at once: it imports the script that started it, and would start processes again.
GUARD = "fix it, and in a script of yours make this call under `if __name__ == '__main__':`"
AHEAD = 3  # calls in progress for each worker
MOST = 64  # workers that any machine may be asked for, and MOST_PER_CORE of each core of a larger one
MOST_PER_CORE = 4


def check_workers(count: int) -> None:
    """Raises UserError for a number of workers that is below 1, or so high that starting them would fill the machine."""
    most = max(MOST, MOST_PER_CORE * (os.cpu_count() or 1))
    if not 1 <= count <= most:
        raise UserError("not a possible number of processes", f"--workers {count}", f"use 1 to {most} on this machine")


@contextlib.contextmanager
def pool(count: int) -> Iterator[ProcessPoolExecutor]:
    """`count` spawned processes, ended on leaving. Raises UserError when one of them dies or cannot start."""
    with ProcessPoolExecutor(count, multiprocessing.get_context("spawn"), _begin) as workers:
        try:
            yield workers
        except (BrokenProcessPool, BrokenPipeError) as error:
            fix = f"if it was killed, the machine ran out of memory: use fewer --workers; if an error is above, {GUARD}"
            raise UserError("a worker process died", fix=fix) from error
        finally:
            workers.shutdown(cancel_futures=True)


class Here(Executor):
    """Runs calls at once in this process, for work that takes less time than starting another one."""

    def submit(self, call: Callable, /, *args: Any, **kwargs: Any) -> Future:
        """The finished call."""
        return done(call(*args, **kwargs))


def in_order(calls: Iterable[tuple[T, Future]], ahead: int) -> Iterator[tuple[T, Any]]:
    """(tag, result) of each (tag, call), in order. At most `ahead` calls are drawn before their results are used, so memory stays flat."""
    waiting: collections.deque[tuple[T, Future]] = collections.deque()
    for call in calls:
        waiting.append(call)
        if len(waiting) >= ahead:
            tag, future = waiting.popleft()
            yield tag, future.result()
    for tag, future in waiting:
        yield tag, future.result()


def done(value: Any) -> Future:
    """A call that has this result already."""
    future: Future = Future()
    future.set_result(value)
    return future


def _begin() -> None:
    """Runs in a worker: one thread a process, and the parent handles Ctrl-C. A killed parent cannot end its workers, which hold both ends
    of their queue and would wait forever, so each watches its parent."""
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    multiprocessing.parent_process().join()
    os._exit(1)
