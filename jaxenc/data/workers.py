"""Worker processes that end with the command that started them, however it ends."""

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool

from jaxenc.errors import UserError


@contextlib.contextmanager
def pool(count: int) -> Iterator[ProcessPoolExecutor]:
    """`count` spawned processes, ended on leaving. Raises UserError when one of them dies or cannot start."""
    with ProcessPoolExecutor(count, multiprocessing.get_context("spawn"), _begin) as workers:
        try:
            yield workers
        except (BrokenProcessPool, BrokenPipeError) as error:
            raise UserError("a worker process died, most likely for want of memory; use fewer --workers") from error
        finally:
            workers.shutdown(cancel_futures=True)


def _begin() -> None:
    """In the worker: one thread a process, and Ctrl-C is the parent's to answer. A parent that is killed cannot end its workers, which
    hold both ends of their queue and would wait for ever: so each watches it."""
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    multiprocessing.parent_process().join()
    os._exit(1)
