"""Whether one process sees the files that another writes."""

import time
from collections.abc import Callable

import jax

from jaxenc.errors import UserError

LOOK_EVERY = 0.1  # seconds


def unseen(workdir: object) -> UserError:
    """The error for a process that does not see the files that process 0 writes in `workdir`."""
    what = f"process {jax.process_index()} does not see the files that process 0 writes there"
    return UserError(what, workdir, "give all processes one --workdir that they share")


def sees(read: Callable[[], bytes], content: bytes, within: float) -> bool:
    """Whether `read`, of a file, returns `content` within so many seconds. Its OSError or UserError counts as not yet."""
    end = time.monotonic() + within
    while True:
        try:
            if read() == content:
                return True
        except (OSError, UserError):  # it is not there yet, or cannot be read
            pass
        if time.monotonic() >= end:
            return False
        time.sleep(min(LOOK_EVERY, within))
