"""Several processes as one: how they meet at the start and leave at the end; nothing to do in a process that is alone."""

import contextlib
import dataclasses
import os
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from typing import NoReturn

import jax
from jax._src import distributed  # The one way to the coordination service's key-value store: jax has no public one.

from jaxenc.errors import UserError
from jaxenc.processes import gloo, launchers
from jaxenc.processes.barriers import ErrorOfAll

COORDINATOR, PROCESSES, PROCESS, HEARTBEAT = "JAXENC_COORDINATOR", "JAXENC_PROCESSES", "JAXENC_PROCESS", "JAXENC_HEARTBEAT"
# Seconds: for all processes to meet at the start; for all to leave at the end, after which jax aborts those that still wait; for others to
# report an error of process 0.
MEET, LEAVE, REPORT = 300, 30, 5


@dataclasses.dataclass(frozen=True)
class Cluster:
    """The processes of a run. Raises UserError for numbers and an address that cannot be.

    address: HOST:PORT where process 0 listens, without authentication, and where the others call. count: processes; index: this one.
    heartbeat: seconds after which, at the latest, a silent process counts as dead and jax aborts all others; at the earliest it is half
    of them, for a sign of life is sent that often.
    """

    address: str = ""
    count: int = 1
    index: int = 0
    heartbeat: int = 90

    def __post_init__(self) -> None:
        if not 0 <= self.index < self.count:
            raise UserError(
                f"{PROCESS} is {self.index} and {PROCESSES} is {self.count}", fix=f"number processes from 0, each below {PROCESSES}"
            )
        if self.heartbeat < 1:
            raise UserError(f"{HEARTBEAT} is {self.heartbeat}", fix="it is at least 1 second")
        host, _, port = self.address.rpartition(":")
        if self.count > 1 and not (host and port.isascii() and port.isdigit() and 0 < int(port) < 1 << 16):
            raise UserError(f"{COORDINATOR} is {self.address!r}", fix="write HOST:PORT of process 0")


def from_environment(environment: Mapping[str, str]) -> Cluster:
    """The cluster of JAXENC_COORDINATOR=HOST:PORT, JAXENC_PROCESSES and JAXENC_PROCESS; one process where none is set, or only
    JAXENC_PROCESSES=1.

    JAXENC_HEARTBEAT=SECONDS goes with them and may be left out. A launcher's own variables are not enough to join by: they do not say where
    process 0 can listen. Raises UserError, with the variables to set, where a launcher started this process as one of several
    (`launchers.place`), which would each train alone; where only some of the three are set; for what is no number; and as `Cluster`.
    """
    given = [name for name in (COORDINATOR, PROCESSES, PROCESS) if environment.get(name)]
    if given == [PROCESSES] and environment[PROCESSES] == "1":
        return Cluster()
    if not given:
        _refuse_lone(launchers.place(environment))
        return Cluster()
    if len(given) < 3:
        raise UserError(f"{' and '.join(given)} set without the rest", fix=f"set {COORDINATOR}, {PROCESSES} and {PROCESS}, or none of them")
    numbers = {}
    for name, default in ((PROCESSES, 1), (PROCESS, 0), (HEARTBEAT, Cluster.heartbeat)):
        text = environment.get(name) or str(default)
        if not (text.isascii() and text.isdigit()):
            raise UserError(f"{name} is {text!r}", fix="it is a whole number")
        numbers[name] = int(text)
    return Cluster(environment[COORDINATOR], numbers[PROCESSES], numbers[PROCESS], numbers[HEARTBEAT])


def _refuse_lone(found: launchers.Place | None) -> None:
    if found is not None:
        what = f"{found.size} is {found.count} and {found.rank} is {found.index}: one of {found.count} processes that would each run alone"
        join = f"{COORDINATOR}=HOST:PORT of process 0, {PROCESSES}=${found.size} and {PROCESS}=${found.rank}"
        raise UserError(what, fix=f"set {join} to join them, or {PROCESSES}=1 for a process that is meant to be alone")


def must_be_alone(environment: Mapping[str, str], command: str) -> None:
    """Raises UserError where this process is one of several, for a `command` that runs in one. Also raises as `from_environment`."""
    if (count := from_environment(environment).count) > 1:
        raise UserError(f"{PROCESSES} is {count}: {command} runs in one process", fix=f"start it once, with {PROCESSES}=1")


def connect(cluster: Cluster) -> None:
    """Joins the other processes; call it before anything else of jax.

    Raises UserError when process 0 cannot listen at its address, when they do not all come within MEET seconds, and when this one then
    sees fewer or more than `cluster.count`.
    """
    if cluster.count == 1:
        return
    if cluster.index == 0:
        _check_free(cluster.address)
    # jax's service would take SIGTERM away from `train/signals.py`; `agreement.py` does its work.
    jax.config.update("jax_enable_preemption_service", False)
    try:
        jax.distributed.initialize(
            cluster.address,
            cluster.count,
            cluster.index,
            cluster_detection_method="deactivate",
            coordinator_bind_address=cluster.address,
            initialization_timeout=MEET,
            heartbeat_timeout_seconds=cluster.heartbeat,
            shutdown_timeout_seconds=LEAVE,
        )
    except RuntimeError as error:
        why = str(error).splitlines()[0]
        raise UserError(
            f"process {cluster.index} of {cluster.count} at {cluster.address}: {why}", fix="start every process, each with this address"
        ) from error
    gloo.listen_beside(cluster.address)
    if jax.process_count() != cluster.count:
        seen = f"process {cluster.index} sees {jax.process_count()} processes instead of {cluster.count}"
        raise UserError(f"{jax.default_backend()} devices do not reach one another", seen, "check the drivers and JAX_PLATFORMS")


def _check_free(address: str) -> None:
    """Raises UserError where nothing can listen at HOST:PORT: jax's service would end the process with a segmentation fault."""
    host, _, port = address.rpartition(":")
    with contextlib.suppress(OSError, UnicodeError):
        for kind, _, _, _, where in socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM):
            with contextlib.suppress(OSError), socket.socket(kind, socket.SOCK_STREAM) as there:
                there.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                there.bind(where)
                return
    raise UserError(f"{COORDINATOR} is {address!r}, where process 0 cannot listen", fix="give an address of its machine and a free port")


def close() -> None:
    """Leaves the other processes once all of them come here."""
    if jax.distributed.is_initialized():
        jax.distributed.shutdown()


@contextlib.contextmanager
def joined(cluster: Cluster, report: Callable[[BaseException], int]) -> Iterator[None]:
    """`connect`, the block, `close`. When the block of one of several processes fails, that process ends here.

    report: prints the error and returns the exit code. A failed process ends at once: on its way out jax would wait, for half a minute or
    for ever, for processes that wait for this one.
    """
    try:
        connect(cluster)
        # Not on GPUs, where NCCL_DEBUG=INFO, which a user sets, prints to the same place.
        if cluster.count > 1 and jax.default_backend() == "cpu":
            gloo.be_quiet()
        yield
    except BaseException as error:
        if cluster.count == 1:
            raise
        code = report(error)
        if isinstance(error, ErrorOfAll):
            _await_reports(cluster)
        leave(code)
    close()


def _await_reports(cluster: Cluster) -> None:
    """Process 0 waits up to REPORT seconds until the others say here that they have reported: its end would abort them before."""
    client, end = distributed.global_state.client, time.monotonic() + REPORT
    with contextlib.suppress(jax.errors.JaxRuntimeError):
        if cluster.index:
            client.key_value_set(f"jaxenc/reported/{cluster.index}", "reported", allow_overwrite=True)
            return
        for rank in range(1, cluster.count):
            client.blocking_key_value_get(f"jaxenc/reported/{rank}", round(1000 * max(end - time.monotonic(), 0.001)))


def leave(code: int) -> NoReturn:
    """Ends this process at once, from any thread."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
