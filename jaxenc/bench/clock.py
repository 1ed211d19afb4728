"""The time of work that is queued on a device."""

import statistics
import time
from collections.abc import Callable
from typing import Any

import jax

GROUPS = 5


def seconds_a_call(call: Callable[[], Any], calls: int) -> float:
    """Median seconds of one `call` over groups of calls: `calls` of them in up to five groups of equal size. The calls of a group are
    queued, as training queues its steps, and their results, arrays on the device, are waited for together."""
    each, times = max(calls // GROUPS, 1), []
    for _ in range(min(GROUPS, calls)):
        began = time.monotonic()
        jax.block_until_ready([call() for _ in range(each)])
        times.append((time.monotonic() - began) / each)
    return statistics.median(times)
