"""Whether the clocks of all processes agree."""

from collections.abc import Callable, Sequence

from jaxenc.findings import OK, PROBLEM, WARNING, Finding, processes
from jaxenc.processes import barriers

CHECK = "clock"
# Seconds. A clock that NTP keeps is milliseconds off. Tickets of Kerberos are refused from 5 minutes on, signatures of object stores from
# 15; before that, the times of files and logs are wrong.
NOTICED, TOO_MUCH = 1.0, 30.0


def gather(clock: Callable[[], float], seconds: float) -> list[float]:
    """The time by `clock` before and after a barrier: at some moment between the two, every process was in the barrier. seconds: as of
    `barriers.barrier`."""
    barriers.barrier("doctor together", seconds)  # so that nobody waits long at the next one
    before = clock()
    barriers.barrier("doctor clock", seconds)
    return [before, clock()]


def judge(times: Sequence[Sequence[float]]) -> list[Finding]:
    """times: `gather` of each process. Reports a lower bound of each difference, however slow the barrier was."""
    if len(times) == 1:
        return []
    base = times[0]
    # The least by which a clock is ahead of process 0's (+) or behind it (-).
    ahead = {rank: max(0.0, before - base[1]) - max(0.0, base[0] - after) for rank, (before, after) in enumerate(times)}
    off = {rank: gap for rank, gap in ahead.items() if abs(gap) > NOTICED}
    if not off:
        width = max(after - before for before, after in times)
        return [Finding(OK, CHECK, f"those of {len(times)} processes agree, as far as can be seen in {max(width, 0.001):.3f} s")]
    worst = max(off, key=lambda rank: abs(off[rank]))
    what = f"process {worst} is at least {abs(off[worst]):.1f} s {'ahead of' if off[worst] > 0 else 'behind'} process 0"
    others = f", and {processes(set(off) - {worst})} differ{'s' * (len(off) == 2)} too" if len(off) > 1 else ""
    level = PROBLEM if abs(off[worst]) > TOO_MUCH else WARNING
    return [Finding(level, CHECK, what + others, "turn on NTP on every host (timedatectl set-ntp true; check with chronyc tracking)")]
