"""A signal reaches a thread of every block that is open, and of none that has ended."""

import queue
import signal
import threading

from jaxenc.interrupts import watching


def test_every_open_block_hears_a_signal_besides_its_handler() -> None:
    inner, outer, handled = queue.Queue(), queue.Queue(), []
    before, fd = signal.signal(signal.SIGUSR1, lambda number, frame: handled.append(number)), signal.set_wakeup_fd(-1)
    signal.set_wakeup_fd(fd)
    try:
        with watching(outer.put):
            with watching(inner.put):
                signal.raise_signal(signal.SIGUSR1)
                assert inner.get(timeout=60) == outer.get(timeout=60) == signal.SIGUSR1
            signal.raise_signal(signal.SIGUSR1)
            assert outer.get(timeout=60) == signal.SIGUSR1 and inner.empty()
        assert handled == [signal.SIGUSR1] * 2 and signal.set_wakeup_fd(fd) == fd
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_another_thread_hears_nothing() -> None:
    def work() -> None:
        with watching(lambda number: None):
            names.extend(thread.name for thread in threading.enumerate())

    names: list[str] = []
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert names and "signals" not in names
