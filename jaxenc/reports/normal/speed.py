"""Whether the run got slower."""

from collections.abc import Iterator

import numpy as np

from jaxenc.findings import WARNING, Finding
from jaxenc.reports.normal.evidence import Evidence

SLOWER = 0.6  # of the median speed before: a hot card loses a third or less of its clock, a failing link or disk more
ROWS = 10  # before and after


def throughput(run: Evidence) -> Iterator[Finding]:
    """Tokens a second that fell and stayed low, on an accelerator: a CPU is shared with others, and its rows have no utilisation."""
    speeds = run.train_of("tokens_per_second").between(run.phase.start, run.step)
    if len(speeds) < 3 * ROWS or not any(row.get("mfu", 0) > 0 for row in run.rows):
        return
    now, before = float(np.median(speeds.values[-ROWS:])), float(np.median(speeds.values[:-ROWS]))
    if now < SLOWER * before:
        what = f"{now:,.0f} tokens a second in the last {ROWS} rows, {before:,.0f} before"
        yield Finding(WARNING, "speed", what, "look at clock and temperature (nvidia-smi -q -d CLOCK,TEMPERATURE), the disk and other jobs")
