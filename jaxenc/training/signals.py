"""A request to stop, as preemption sends it."""

import contextlib
import signal
import sys
import threading
from types import FrameType, TracebackType

from jaxenc.interrupts import AGAIN, watching

STOPPING = "stopping after this step, and saving a checkpoint"


class Stop:
    """Context manager: after SIGTERM or SIGINT `requested` is true, and the loop ends after its step with a checkpoint.

    The first signal is acknowledged on stderr at once, whatever is running. A second SIGINT is Python's own interrupt again, for a person
    who will not wait. Handlers are put back on leaving. Outside the main thread, which gets the signals, it does nothing.
    """

    def __init__(self) -> None:
        self._asked = self._acknowledged = False
        self._interrupts = 0
        self._open = contextlib.ExitStack()

    @property
    def requested(self) -> bool:
        """Whether to stop after this step. Raises KeyboardInterrupt after a second SIGINT: one raised in a callback from C can be
        lost, and Python counts two signals during one call into C as one."""
        if self._interrupts > 1:
            raise KeyboardInterrupt
        return self._asked

    def __enter__(self) -> "Stop":
        if threading.current_thread() is threading.main_thread():
            self._open.enter_context(watching(self._acknowledge))
            for number in (signal.SIGTERM, signal.SIGINT):
                self._open.callback(signal.signal, number, signal.signal(number, self._request))
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._open.close()

    def _request(self, number: int, frame: FrameType | None) -> None:
        self._asked = True
        if number == signal.SIGINT:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def _acknowledge(self, number: int) -> None:
        self._interrupts += number == signal.SIGINT
        if number in (signal.SIGINT, signal.SIGTERM) and not self._acknowledged:
            self._acknowledged = True
            print(f"{STOPPING}; {AGAIN}" if number == signal.SIGINT else STOPPING, file=sys.stderr, flush=True)
