"""Whether all processes are there, before jax joins them: jax aborts after its time limit and does not say which process is missing."""

import contextlib
import dataclasses
import json
import socket
import time
from collections.abc import Callable, Iterator, Sequence

from jaxenc.doctor import hosts
from jaxenc.findings import OK, PROBLEM, Finding, processes
from jaxenc.processes import addresses
from jaxenc.processes.cluster import COORDINATOR, PROCESSES, Cluster

CHECK = "processes"
# Seconds: between two tries to reach process 0; to wait for a second process with the same index once all are there; for one caller's line.
RETRY, LINGER, LINE = 0.2, 1.0, 5.0
LONGEST = 1 << 16  # bytes of a line


@dataclasses.dataclass(frozen=True)
class Call:
    """A process that called: its index, the number of processes as it was started with, and its host."""

    index: int
    count: int
    host: str


def call(cluster: Cluster, seconds: float, host: str) -> list[Finding]:
    """What process 0 finds of the processes that call it at the coordinator's address within `seconds`, the same in all that reach it; in
    the others, that they cannot reach it. host: the name of this host.

    Process 0 listens there without authentication, as jax's service does afterwards.
    """
    own = Call(cluster.index, cluster.count, host)
    return _take(cluster, seconds, own) if cluster.index == 0 else _report(cluster, seconds, own)


def judge(address: str, seconds: float, calls: Sequence[Call]) -> list[Finding]:
    """What is wrong with the processes that called. calls: process 0's first."""
    count, found = calls[0].count, []
    others = [one for one in calls if one.count != count]
    if others:
        counts = ", ".join(f"process {one.index} as one of {one.count}" for one in others)
        found.append(Finding(PROBLEM, CHECK, f"process 0 was started as one of {count}, {counts}", f"start all with one {PROCESSES}"))
    for index in sorted({one.index for one in calls}):
        same = [one.host for one in calls if one.index == index]
        if len(same) > 1:
            what = f"{len(same)} processes have the number {index}, on {', '.join(sorted(set(same)))}"
            found.append(Finding(PROBLEM, CHECK, what, f"give each its own JAXENC_PROCESS, from 0 to {count - 1}"))
    if missing := sorted(set(range(count)) - {one.index for one in calls}):
        what = f"{len(calls)} of {count} came within {seconds:g} s, not {processes(missing)}"
        fix = f"see what {'they say' if len(missing) > 1 else 'it says'}, and start every process with {COORDINATOR}={address}"
        found.append(Finding(PROBLEM, CHECK, what, fix + hosts.hint(address)))
    found += hosts.judge(address, [one.host for one in calls])
    return found or [Finding(OK, CHECK, f"{count} of {count} came, on {hosts.counted([one.host for one in calls])}")]


def _take(cluster: Cluster, seconds: float, own: Call) -> list[Finding]:
    host, port = addresses.split(cluster.address)
    calls, end = [own], time.monotonic() + seconds
    with contextlib.ExitStack() as connections:
        try:
            family, _, _, _, where = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
            listener = connections.enter_context(socket.create_server(where[:2], family=family, backlog=cluster.count))
        except (OSError, UnicodeError) as error:
            what = f"process 0 cannot listen at {cluster.address} ({error})"
            return [Finding(PROBLEM, CHECK, what, f"set {COORDINATOR} to an address of its machine and a free port")]
        callers = []
        for connection in _accepted(listener, end, lambda: {one.index for one in calls} >= set(range(cluster.count))):
            connections.enter_context(connection)
            if (one := _read_call(connection)) is not None:
                calls.append(one)
                callers.append(connection)
        found = judge(cluster.address, seconds, calls)
        for connection in callers:
            with contextlib.suppress(OSError):
                connection.sendall(json.dumps([dataclasses.asdict(one) for one in found]).encode() + b"\n")
    return found


def _accepted(listener: socket.socket, end: float, complete: Callable[[], bool]) -> Iterator[socket.socket]:
    """Connections until `end`, or for LINGER seconds once all have come."""
    while (left := end - time.monotonic()) > 0:
        if complete():
            left = min(left, LINGER)
        listener.settimeout(left)
        try:
            yield listener.accept()[0]
        except TimeoutError:
            return


def _read_call(connection: socket.socket) -> Call | None:
    """The call that a connection brings; None for anything else, such as a port scanner."""
    try:
        data = json.loads(_line(connection, LINE))
        return Call(int(data["index"]), int(data["count"]), str(data["host"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _report(cluster: Cluster, seconds: float, own: Call) -> list[Finding]:
    end, why = time.monotonic() + seconds, "no answer"
    while time.monotonic() < end:
        try:
            with socket.create_connection(addresses.split(cluster.address), max(end - time.monotonic(), RETRY)) as connection:
                connection.sendall(json.dumps(dataclasses.asdict(own)).encode() + b"\n")
                # Process 0 answers when all have come, or when its own time is over.
                return [Finding(**one) for one in json.loads(_line(connection, seconds + LINGER + LINE))]
        except (OSError, UnicodeError) as error:
            why = str(error)
            time.sleep(RETRY)
        except (ValueError, TypeError):
            why = "something else answers there"
            time.sleep(RETRY)
    what = f"process {cluster.index} of {cluster.count} on {own.host} did not reach process 0 at {cluster.address} in {seconds:g} s ({why})"
    fix = f"start process 0, with {COORDINATOR}={cluster.address}, an address of its machine that the others reach; let the port through"
    return [Finding(PROBLEM, CHECK, what, fix + hosts.hint(cluster.address))]


def _line(connection: socket.socket, seconds: float) -> bytes:
    connection.settimeout(seconds)
    with connection.makefile("rb") as lines:
        return lines.readline(LONGEST)
