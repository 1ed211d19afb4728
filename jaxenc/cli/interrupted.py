"""What Ctrl-C and SIGTERM do to a command."""

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import NoReturn

from jaxenc.interrupts import AGAIN, watching

INTERRUPTED = "interrupted: nothing half-written is left; run it again"
ENDING = "ending once the running step, such as a compilation, returns"
AT_ONCE = 0.5  # seconds after which a signal that has not ended the command is acknowledged
PATIENCE = 5.0  # seconds that a command has to end by itself after a second Ctrl-C: a save may be ending


class Terminated(KeyboardInterrupt):
    """SIGTERM, as preemption sends it."""


@contextlib.contextmanager
def interruptible(code: int) -> Iterator[None]:
    """Makes SIGTERM raise as Ctrl-C does, so that a command removes its temporary files; a training run installs its own handlers. Both are
    acknowledged while a call into C holds the command up, and there a second Ctrl-C ends the process, with exit code `code`."""
    nested = signal.getsignal(signal.SIGTERM) is _terminate
    if nested or threading.current_thread() is not threading.main_thread():
        yield
        return
    ended = threading.Event()
    with watching(_acknowledge(ended, code)):
        before = signal.signal(signal.SIGTERM, _terminate)
        try:
            yield
        finally:
            signal.signal(signal.SIGTERM, before)
            ended.set()


def _terminate(number: int, frame: FrameType | None) -> NoReturn:
    raise Terminated


def _acknowledge(ended: threading.Event, code: int) -> Callable[[int], None]:
    """What `interrupts.watching` calls with each signal. ended: set once the command has ended."""
    presses = 0

    def on_signal(number: int) -> None:
        nonlocal presses
        presses += number == signal.SIGINT
        # A training run has taken SIGTERM over, and says itself what a first signal does.
        own = signal.getsignal(signal.SIGTERM) is _terminate
        if number == signal.SIGINT and presses > 1:
            if not ended.wait(PATIENCE):
                print(f"jaxenc: {INTERRUPTED}", file=sys.stderr, flush=True)
                os._exit(code)
        elif number in (signal.SIGINT, signal.SIGTERM) and own and not ended.wait(AT_ONCE):
            print(f"{ENDING}; {AGAIN}", file=sys.stderr, flush=True)

    return on_signal
