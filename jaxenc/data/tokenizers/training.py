"""Trains a vocabulary in a process of its own, which can be ended at once: the libraries' trainers do not react to signals."""

import ctypes
import itertools
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path

from jaxenc.data.tokenizers.tokenizer import Tokenizer
from jaxenc.data.workers import GUARD, check_workers
from jaxenc.errors import UserError
from jaxenc.progress import Bars

Train = Callable[[Iterable[str]], Tokenizer]

SMALL = 1 << 19  # characters; less text is trained on in this process, since another one takes longer to start
BATCH = 1 << 16  # characters sent to the process at once
EVERY = 10.0  # seconds between two lines of progress
KILLED = (-signal.SIGKILL, 128 + signal.SIGKILL)  # exit codes of a process that the kernel, or a container, ended for its memory
END_WITH_PARENT = 1  # PR_SET_PDEATHSIG of prctl(2): the signal to get when the parent dies


def train_and_save(train: Train, texts: Iterable[str], folder: Path, workers: int = 1) -> None:
    """Trains on `texts` and saves the tokenizer in `folder`. The result is the same for any number of workers.

    train: a picklable function, such as a `functools.partial`. texts: read once. workers: threads that count words. More than SMALL
    characters are trained on in a spawned process, so a script must call this under its __main__ guard. That process ends at once with
    Ctrl-C, SIGTERM (as `jaxenc` handles it) and the death of this process.

    Raises UserError for an impossible number of workers and when the process dies, and whatever `texts` and `train` raise.
    """
    check_workers(workers)
    texts, first, size = iter(texts), [], 0
    for text in texts:
        first.append(text)
        size += len(text)
        if size > SMALL:
            break
    else:
        return train(first).save(folder)
    _in_process(train, itertools.chain(first, texts), folder, workers)


def _in_process(train: Train, texts: Iterator[str], folder: Path, workers: int) -> None:
    context = multiprocessing.get_context("spawn")
    (source, sink), (answers, reply) = context.Pipe(duplex=False), context.Pipe(duplex=False)
    process = context.Process(target=_train, args=(train, source, reply, folder, workers, os.getpid()), daemon=True)
    process.start()
    source.close(), reply.close()
    try:
        try:
            for batch in _batches(texts):
                sink.send(batch)
            sink.send([])
        except BrokenPipeError:
            pass  # the process failed before the last text; its answer says why
        error = _answer(answers)
    except EOFError:
        process.join()
        raise _died(process.exitcode) from None
    finally:
        process.kill()
        process.join()
    if error is not None:
        raise error


def _died(code: int) -> UserError:
    """The error for the exit code of the process that trains."""
    if code in KILLED:
        return UserError("the process that trains was killed, most likely out of memory", "tokenizer", "train on less text")
    return UserError(f"the process that trains died (exit code {code})", "tokenizer", f"if an error is above, {GUARD}")


def _batches(texts: Iterator[str]) -> Iterator[list[str]]:
    batch, size = [], 0
    for text in texts:
        batch.append(text)
        size += len(text)
        if size > BATCH:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _answer(answers: Connection) -> Exception | None:
    """The error of the process, None if it succeeded. Raises EOFError when it dies without an answer."""
    started = time.monotonic()
    with Bars().shown("tokenizer: choosing pieces") as bar:
        while not answers.poll(EVERY):
            if not bar.drawn:
                print(f"tokenizer: all is read; choosing pieces for {time.monotonic() - started:,.0f} s", file=sys.stderr)
        return answers.recv()


def _train(train: Train, source: Connection, reply: Connection, folder: Path, workers: int, parent: int) -> None:
    """Runs in the process. The tokenizers library reads both variables when it first starts threads."""
    os.environ.update(TOKENIZERS_PARALLELISM=str(workers > 1).lower(), RAYON_NUM_THREADS=str(workers))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    _end_with_parent(parent)
    try:
        train(text for batch in iter(source.recv, []) for text in batch).save(folder)
    except Exception as error:
        reply.send(error)
    else:
        reply.send(None)


def _end_with_parent(parent: int) -> None:
    """The kernel kills this process with its parent, even in native code that holds the GIL.

    Only on Linux: elsewhere the process finishes its work when its parent is killed by SIGKILL.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(END_WITH_PARENT, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
