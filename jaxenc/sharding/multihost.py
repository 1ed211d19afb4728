"""Several processes as one: how they meet, what process 0 decides for all, and which rows of the global batch each reads.

Everything here is a no-op, or an immediate answer, in a process that is alone.
"""

import contextlib
import dataclasses
import json
import os
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NoReturn

import jax
from jax._src import distributed  # The one way to the coordination service's key-value store: jax has no public one.

from jaxenc.errors import Absent, UserError
from jaxenc.sharding import gloo, launchers

COORDINATOR, PROCESSES, PROCESS, HEARTBEAT = "JAXENC_COORDINATOR", "JAXENC_PROCESSES", "JAXENC_PROCESS", "JAXENC_HEARTBEAT"
# Seconds: to meet at the start; between two lines that name who is awaited; for others to reach a barrier, the largest save included;
# for all to leave at the end, after which jax aborts those that still wait; for the others to report an error of process 0.
MEET, TELL, LIMIT, LEAVE, REPORT = 300, 15, 1200, 30, 5


class ErrorOfAll(UserError):
    """An error that process 0 found on behalf of all: every process raises and reports it."""


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
            numbered = f"processes are numbered from 0, each below {PROCESSES}"
            raise UserError(f"{PROCESS} is {self.index} and {PROCESSES} is {self.count}: {numbered}")
        if self.heartbeat < 1:
            raise UserError(f"{HEARTBEAT} is {self.heartbeat}: it is at least 1 second")
        host, _, port = self.address.rpartition(":")
        if self.count > 1 and not (host and port.isascii() and port.isdigit() and 0 < int(port) < 1 << 16):
            raise UserError(f"{COORDINATOR} is {self.address!r}: write HOST:PORT of process 0")


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
        raise UserError(f"{' and '.join(given)} set without the rest: set {COORDINATOR}, {PROCESSES} and {PROCESS}, or none of them")
    numbers = {}
    for name, default in ((PROCESSES, 1), (PROCESS, 0), (HEARTBEAT, Cluster.heartbeat)):
        text = environment.get(name) or str(default)
        if not (text.isascii() and text.isdigit()):
            raise UserError(f"{name} is {text!r}: it is a whole number")
        numbers[name] = int(text)
    return Cluster(environment[COORDINATOR], numbers[PROCESSES], numbers[PROCESS], numbers[HEARTBEAT])


def _refuse_lone(found: launchers.Place | None) -> None:
    if found is not None:
        what = f"{found.size} is {found.count} and {found.rank} is {found.index}: one of {found.count} processes that would each run alone"
        join = f"{COORDINATOR}=HOST:PORT of process 0, {PROCESSES}=${found.size} and {PROCESS}=${found.rank}"
        raise UserError(f"{what}: set {join} to join them, or {PROCESSES}=1 for a process that is meant to be alone")


def must_be_alone(environment: Mapping[str, str], command: str) -> None:
    """Raises UserError where this process is one of several, for a `command` that runs in one. Also raises as `from_environment`."""
    if (count := from_environment(environment).count) > 1:
        raise UserError(f"{PROCESSES} is {count}: {command} runs in one process: start it once, with {PROCESSES}=1")


def connect(cluster: Cluster) -> None:
    """Joins the other processes; call it before anything else of jax.

    Raises UserError when process 0 cannot listen where it is told, when they do not all come within MEET seconds, and when this one then
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
        raise UserError(f"process {cluster.index} of {cluster.count} at {cluster.address}: {why}: is every process started?") from error
    gloo.listen_beside(cluster.address)
    if jax.process_count() != cluster.count:
        seen = f"process {cluster.index} sees {jax.process_count()} processes instead of {cluster.count}"
        raise UserError(f"{seen}: {jax.default_backend()} devices do not reach one another: check the drivers and JAX_PLATFORMS")


def _check_free(address: str) -> None:
    """Raises UserError where nothing can listen at HOST:PORT: jax's service would end the process with a segmentation fault."""
    host, _, port = address.rpartition(":")
    with contextlib.suppress(OSError, UnicodeError):
        for kind, _, _, _, where in socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM):
            with contextlib.suppress(OSError), socket.socket(kind, socket.SOCK_STREAM) as there:
                there.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                there.bind(where)
                return
    raise UserError(f"{COORDINATOR} is {address!r}, where process 0 cannot listen: give an address of its machine and a free port")


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


def process_slots(batch: int, count: int, index: int) -> slice:
    """The slots of a global batch of `batch` rows that process `index` of `count` reads.

    The processes' slices are contiguous, disjoint, of one size, and cover the batch in the order of their index. Raises UserError
    when `count` does not divide `batch`, ValueError for an index outside [0, count).
    """
    if not 0 <= index < count:
        raise ValueError(f"process {index} of {count}")
    if batch % count:
        raise UserError(f"train.batch is {batch}, which {count} processes cannot share: set it to a multiple of {count}")
    rows = batch // count
    return slice(index * rows, (index + 1) * rows)


def is_primary() -> bool:
    """Whether this process writes what is written once: logs, configuration, reports."""
    return jax.process_index() == 0


def barrier(name: str, seconds: float = LIMIT) -> None:
    """Waits for every process to come to `name`, which is used once in a run; any thread may call it.

    Every 15 s a line on stderr names the processes that are awaited. Raises Absent, which names them, after `seconds`.
    """
    count, index, client = jax.process_count(), jax.process_index(), distributed.global_state.client
    if count == 1:
        return
    folder = f"jaxenc/barrier/{name}/"

    def missing() -> list[int]:
        present = {key.rpartition("/")[2] for key, _ in client.key_value_dir_get(folder)}
        return [rank for rank in range(count) if str(rank) not in present]

    began = time.monotonic()
    with service(name):
        client.key_value_set(f"{folder}{index}", "here")
        # Process 0 waits for each and the others for its word, so that the service answers 2 questions a process and not `count`.
        if index == 0:
            for rank in range(count):
                _await(name, f"{folder}{rank}", missing, seconds, began)
            client.key_value_set(f"{folder}all", "here")
        else:
            _await(name, f"{folder}all", lambda: missing() or [0], seconds, began)


def from_primary(name: str, make: Callable[[], Any], seconds: float = LIMIT) -> Any:
    """What `make` returns in process 0, a JSON value, in every process; only process 0 calls `make`.

    `name` stands for one answer: a run that asks again has to get the same. A UserError of `make` is raised as ErrorOfAll in every
    process. Waits, reports and raises as `barrier` does.
    """
    client, key = distributed.global_state.client, f"jaxenc/value/{name}"
    if jax.process_count() == 1:
        return make()
    if not is_primary():
        with service(name):
            answer = json.loads(_await(name, key, lambda: [0], seconds, time.monotonic()))
        if "error" in answer:
            raise ErrorOfAll(answer["error"])
        return answer["value"]
    try:
        value = make()
    except UserError as error:
        client.key_value_set(key, json.dumps({"error": str(error)}), allow_overwrite=True)
        raise ErrorOfAll(str(error)) from error
    client.key_value_set(key, json.dumps({"value": value}), allow_overwrite=True)
    return value


@contextlib.contextmanager
def service(name: str) -> Iterator[None]:
    """Raises Absent where the coordination service, which is process 0's, does not answer."""
    try:
        yield
    except jax.errors.JaxRuntimeError as error:
        raise Absent(f"{name}: process 0 is gone: see what it says, and start all processes again") from error


def _await(name: str, key: str, missing: Callable[[], list[int]], seconds: float, began: float) -> str:
    """The value of a key, once a process has set it. missing: the processes to name meanwhile. Raises Absent `seconds` after `began`."""
    client, end = distributed.global_state.client, began + seconds
    while True:
        try:
            return client.blocking_key_value_get(key, round(1000 * min(TELL, max(end - time.monotonic(), 0))) or 1)
        except jax.errors.JaxRuntimeError as error:
            if "DEADLINE_EXCEEDED" not in str(error):
                raise
        awaited = f"process {', '.join(map(str, missing()))}"
        if time.monotonic() >= end:
            raise Absent(f"{name}: {awaited} did not come within {seconds:g} s: see what it says, and start all processes again")
        print(f"{name}: process {jax.process_index()} waits for {awaited}", file=sys.stderr, flush=True)
