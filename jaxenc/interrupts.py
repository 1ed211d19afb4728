"""Signals that are answered at once, even while the main thread is in a long call into C."""

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator

AGAIN = "press Ctrl-C again to end now"  # what a line to the user adds after the first Ctrl-C
END = 0  # no signal has this number


@contextlib.contextmanager
def watching(on_signal: Callable[[int], None]) -> Iterator[None]:
    """Calls `on_signal` with the number of each signal that has a handler, in a thread of its own, as soon as the signal arrives.

    Python runs a handler in the main thread, between two of its instructions: not before a compilation or another call into C returns.
    `on_signal` is called as well as the handler, for a line to the user. Blocks may be nested: the outer ones see the signal too.
    Outside the main thread, which gets the signals, it does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    read, write = os.pipe()
    os.set_blocking(write, False)
    outer = signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    thread = threading.Thread(target=_watch, args=(read, outer, on_signal), daemon=True, name="signals")
    thread.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(outer, warn_on_full_buffer=False)
        # Not the end of the pipe: a process that was forked meanwhile holds it open too.
        os.write(write, bytes([END]))
        thread.join()
        os.close(write)
        os.close(read)


def _watch(read: int, outer: int, on_signal: Callable[[int], None]) -> None:
    """outer: where the signals went before, -1 for nowhere."""
    while (number := os.read(read, 1)[0]) != END:
        if outer >= 0:
            with contextlib.suppress(OSError):
                os.write(outer, bytes([number]))
        on_signal(number)
