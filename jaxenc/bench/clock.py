"""Times calls, of which several are queued on a device at once."""

import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax

from jaxenc.progress import Bars

GROUPS = 5


class Seconds(NamedTuple):
    """wall: by the clock. cpu: user and system time of all threads of this process."""

    wall: float
    cpu: float


def seconds_a_call(call: Callable[[], Any], calls: int, wait: Callable[[Any], Any] = jax.block_until_ready) -> Seconds:
    """Median seconds of one `call` over groups of calls: `calls` of them in up to GROUPS groups of equal size. The calls of a group are
    queued, as training queues its steps, and `wait` waits for the list of their results."""
    each, walls, cpus = max(calls // GROUPS, 1), [], []
    with Bars().shown("timing", min(GROUPS, calls), "groups") as bar:
        for _ in bar.counting(range(min(GROUPS, calls))):
            began, used = time.monotonic(), time.process_time()
            wait([call() for _ in range(each)])
            walls.append((time.monotonic() - began) / each)
            cpus.append((time.process_time() - used) / each)
    return Seconds(statistics.median(walls), statistics.median(cpus))
