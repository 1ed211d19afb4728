"""How the processes of a run join at the start and leave at the end. A process that is alone does neither."""

import contextlib
import os
import re
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import NoReturn

import jax

from jaxenc.errors import Absent, UserError
from jaxenc.processes import addresses, barriers, gloo, private
from jaxenc.processes.cluster import COORDINATOR, MEET, PROCESS, PROCESSES, Cluster
from jaxenc.processes.finish import finish

REPORT, EXIT = 5, 0.5  # seconds that process 0 gives the others to report an error, and then to end


def connect(cluster: Cluster) -> None:
    """Joins the other processes; call it before anything else of jax.

    Raises UserError when process 0 cannot listen at its address, when that address is every host's own, when not all join within
    `cluster.meet` seconds, and when jax then counts or numbers them otherwise than `cluster`.
    """
    if cluster.count == 1:
        return
    if cluster.address:
        addresses.check_reachable(cluster.address, cluster.hosts, COORDINATOR)
        if cluster.index == 0:
            addresses.check_free(cluster.address, COORDINATOR)
    # jax's service would take SIGTERM away from training/signals.py. agreement.py does its work.
    jax.config.update("jax_enable_preemption_service", False)
    limits = {
        "initialization_timeout": cluster.meet,
        "heartbeat_timeout_seconds": cluster.heartbeat,
        "shutdown_timeout_seconds": cluster.leave,
    }
    try:
        with _reporting_the_wait(cluster):
            if cluster.jax_joins:
                jax.distributed.initialize(**limits)
            else:
                jax.distributed.initialize(
                    cluster.address,
                    cluster.count,
                    cluster.index,
                    cluster.gpus or None,
                    cluster_detection_method="deactivate",
                    coordinator_bind_address=cluster.address,
                    **limits,
                )
    except (RuntimeError, ValueError, OSError) as error:
        raise _not_joined(cluster, str(error).partition("\n")[0]) from error
    _check_counts(cluster)
    gloo.listen_beside(cluster.address or private.coordinator())
    _check_numbers(cluster)
    _check_hosts(cluster)


@contextlib.contextmanager
def _reporting_the_wait(cluster: Cluster) -> Iterator[None]:
    """While the block runs, a line on stderr says every 15 s that this process waits, and one that its time is over: jax then ends the
    process, with a message that says neither where it called nor whom it missed."""
    joined, began = threading.Event(), time.monotonic()

    def tell() -> None:
        while (left := began + cluster.meet - time.monotonic()) > 0:
            if joined.wait(min(left, barriers.TELL)):
                return
            if (waited := round(time.monotonic() - began)) < cluster.meet:
                where = cluster.address or "process 0"
                what = f"process {cluster.index} of {cluster.count} waits at {where} for all to join: {waited} of {cluster.meet} s"
                print(what, file=sys.stderr, flush=True)
        print(_not_joined(cluster, "not all processes have come"), file=sys.stderr, flush=True)

    threading.Thread(target=tell, name="joining", daemon=True).start()
    try:
        yield
    finally:
        joined.set()


def _not_joined(cluster: Cluster, why: str) -> UserError:
    """The error of a process that has not joined the others."""
    where = cluster.address or "the address that jax finds for process 0"
    fix = f"start every process, each with this address, within {cluster.meet} s ({MEET})"
    if cluster.address and addresses.is_loopback(cluster.address):
        fix += f"; {cluster.address} reaches processes of this host only"
    return UserError(f"process {cluster.index} of {cluster.count} at {where}: {why}", fix=fix)


def _check_counts(cluster: Cluster) -> None:
    """Raises UserError where process 0 was started as one of more or fewer processes. Before devices are asked: they wait for all."""
    first = _of_first(cluster, "count", str(cluster.count))
    if first != str(cluster.count):
        what = f"process {cluster.index} was started as one of {cluster.count} and process 0 as one of {first}"
        raise UserError(f"{what} ({cluster.counted_by})", fix=f"start all with one {PROCESSES}")


def _check_numbers(cluster: Cluster) -> None:
    """Raises UserError where jax, which asks the devices, counts or numbers the processes otherwise than `cluster`."""
    count, index = jax.process_count(), jax.process_index()
    if count != cluster.count:
        seen = f"process {cluster.index} sees {count} processes instead of {cluster.count} ({cluster.counted_by})"
        raise UserError(f"{jax.default_backend()} devices do not reach one another", seen, "check the drivers and JAX_PLATFORMS")
    if index != cluster.index:
        what = f"process {cluster.index} of {count} by {cluster.numbered_by} is process {index} by its devices"
        raise UserError(what, fix=f"number processes as jax does, or set {COORDINATOR}, {PROCESSES} and {PROCESS}")


def _check_hosts(cluster: Cluster) -> None:
    """Raises UserError where processes of hosts with different names have met at a loopback address."""
    address, own = cluster.address or private.coordinator(), socket.gethostname()
    if not addresses.is_loopback(address):
        return
    if (first := _of_first(cluster, "host", own)) != own:
        what = f"process 0 is on {first} and process {cluster.index} on {own}, and they met at {address}, a loopback address"
        raise UserError(what, fix=f"set {COORDINATOR}=HOST:PORT with an address of {first} that {own} reaches")


def _of_first(cluster: Cluster, name: str, own: str) -> str:
    """The value of process 0 under `name`. own: the value of this process. Unlike `barriers.from_primary` it needs no devices."""
    client, key = private.store(), f"jaxenc/{name}"
    if cluster.index == 0:
        client.key_value_set(key, own, allow_overwrite=True)
        return own
    return client.blocking_key_value_get(key, 1000 * cluster.meet)


def close() -> None:
    """Leaves the other processes once all of them come here."""
    if jax.distributed.is_initialized():
        jax.distributed.shutdown()


@contextlib.contextmanager
def joined(cluster: Cluster, report: Callable[[BaseException], int]) -> Iterator[None]:
    """`connect`, the block, `finish`, `close`. When the block of one of several processes fails, that process ends here.

    report: prints the error and returns the exit code. A failed process ends at once: jax would wait at exit, for half a minute or for
    ever, for processes that wait for this one.
    """
    try:
        connect(cluster)
        # Not on GPUs, where NCCL_DEBUG=INFO, which a user sets, prints to the same place.
        if cluster.count > 1 and jax.default_backend() == "cpu":
            gloo.be_quiet()
        yield
        if cluster.count > 1:
            finish(cluster.leave)
    except BaseException as error:
        if cluster.count == 1:
            raise
        with _without_requests_to_stop():
            code = report(_lost(error) or error)
            if isinstance(error, UserError) and jax.distributed.is_initialized():
                _await_reports(cluster)
            leave(code)
    close()


def _lost(error: BaseException) -> Absent | None:
    """The error to report in place of jax's, which has a traceback and no advice, where another process ended during a collective on CPUs;
    None for any other error."""
    said = str(error).partition("\n")[0]
    if not (isinstance(error, jax.errors.JaxRuntimeError) and re.search("Gloo.*(by peer|Broken pipe)", said)):
        return None
    lost = Absent(f"another process is gone ({said.rpartition(': ')[2]}): see what it says, and start all processes again")
    lost.__cause__ = error
    return lost


@contextlib.contextmanager
def _without_requests_to_stop() -> Iterator[None]:
    """Ignores SIGTERM and SIGINT in the block, for a process that ends anyway: when one dies, a launcher sends SIGTERM to the others, which
    would cut off what they say."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _await_reports(cluster: Cluster) -> None:
    """Process 0 waits, for up to REPORT seconds, until the others have reported the error. Each process finds a missing file itself, and
    when process 0 ends, jax aborts the others with a page of its own before they say so."""
    client, end = private.store(), time.monotonic() + REPORT
    with contextlib.suppress(jax.errors.JaxRuntimeError):
        if cluster.index:
            client.key_value_set(f"jaxenc/reported/{cluster.index}", "reported", allow_overwrite=True)
            return
        for rank in range(1, cluster.count):
            client.blocking_key_value_get(f"jaxenc/reported/{rank}", round(1000 * max(end - time.monotonic(), 0.001)))
        time.sleep(EXIT)


def leave(code: int) -> NoReturn:
    """Ends this process at once, from any thread."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
