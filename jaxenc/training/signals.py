"""A request to stop, as preemption sends it."""

import signal
from types import FrameType, TracebackType


class Stop:
    """Context manager: SIGTERM and SIGINT set `requested`, and the loop ends after its step with a checkpoint.

    A second SIGINT is Python's own interrupt again, for a person who will not wait. Handlers are put back on leaving.
    """

    def __init__(self) -> None:
        self.requested = False
        self._before: dict[int, object] = {}

    def __enter__(self) -> "Stop":
        for number in (signal.SIGTERM, signal.SIGINT):
            self._before[number] = signal.signal(number, self._request)
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _request(self, number: int, frame: FrameType | None) -> None:
        self.requested = True
        if number == signal.SIGINT:
            signal.signal(signal.SIGINT, signal.default_int_handler)
