"""Several processes as one: waiting for all of them, and what process 0 decides for all. A process that is alone never waits."""

import contextlib
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import jax

from jaxenc.config import differences
from jaxenc.errors import Absent, UserError
from jaxenc.processes import private

# Seconds: between two lines that name the processes that are missing; for all to reach a barrier, the largest save included.
TELL, LIMIT = 15, 1200


class ErrorOfAll(UserError):
    """An error that process 0 found on behalf of all: every process raises and reports it."""


def is_primary() -> bool:
    """Whether this process writes what is written once: logs, configuration, reports."""
    return jax.process_index() == 0


def barrier(name: str, seconds: float = LIMIT) -> None:
    """Waits until every process has reached `name`; any thread may call it. All processes call it equally often for one name: the n-th call
    of one process meets the n-th of the others.

    Every 15 s a line on stderr names the processes that are awaited. Raises Absent, which names them, after `seconds`.
    """
    gathered(name, None, seconds)


def gathered(name: str, value: Any, seconds: float = LIMIT) -> list[Any]:
    """The JSON value that each process gives under `name`, in their order, in every process. Waits, reports and raises as `barrier`."""
    count, index, client = jax.process_count(), jax.process_index(), private.store()
    if count == 1:
        return [value]
    began = time.monotonic()
    with service(name):
        folder = f"jaxenc/gathered/{_counted(name)}/"

        def missing() -> list[int]:
            present = {key.rpartition("/")[2] for key, _ in client.key_value_dir_get(folder)}
            return [rank for rank in range(count) if str(rank) not in present]

        client.key_value_set(f"{folder}{index}", json.dumps(value))
        # Process 0 collects the values and the others read its list: two requests a process instead of `count`.
        if index:
            return json.loads(_await(name, f"{folder}all", lambda: missing() or [0], seconds, began))
        values = [json.loads(_await(name, f"{folder}{rank}", missing, seconds, began)) for rank in range(count)]
        client.key_value_set(f"{folder}all", json.dumps(values))
        return values


def from_primary(name: str, make: Callable[[], Any], seconds: float = LIMIT) -> Any:
    """What `make` returns in process 0, a JSON value, in every process; only process 0 calls `make`.

    All processes ask for one `name` equally often: the n-th call gets the n-th answer. A UserError of `make` is raised as
    ErrorOfAll in every process. Waits, reports and raises as `barrier` does.
    """
    client = private.store()
    if jax.process_count() == 1:
        return make()
    with service(name):
        key = f"jaxenc/value/{_counted(f'value {name}')}"
    if not is_primary():
        with service(name):
            answer = json.loads(_await(name, key, lambda: [0], seconds, time.monotonic()))
        if "error" in answer:
            raise ErrorOfAll(answer["error"])
        return answer["value"]
    try:
        value = make()
    except UserError as error:
        client.key_value_set(key, json.dumps({"error": str(error)}))
        raise ErrorOfAll(str(error)) from error
    client.key_value_set(key, json.dumps({"value": value}))
    return value


def must_be_equal(name: str, facts: Mapping[str, Any], fix: str) -> None:
    """Raises ErrorOfAll, which names each dotted path with both values, where the `facts` of another process, a JSON value, differ from
    those of process 0; of several such processes it names the first. Waits, reports and raises otherwise as `barrier` does."""
    first, *others = gathered(name, facts)
    for rank, theirs in enumerate(others, 1):
        found = differences(first, theirs)
        if parts := [f"{path} is {one} in process 0 and {other} in process {rank}" for path, one, other in found]:
            raise ErrorOfAll("; ".join(parts), fix=fix)


def _counted(name: str) -> str:
    """`name` with the number of times that this process has asked for it. The service counts, so that a process which starts again, with a
    new service, counts from the start."""
    return f"{name}/{private.store().key_value_increment(f'jaxenc/asked/{jax.process_index()}/{name}', 1)}"


@contextlib.contextmanager
def service(name: str) -> Iterator[None]:
    """Raises Absent where the coordination service, which is process 0's, does not answer."""
    try:
        yield
    except jax.errors.JaxRuntimeError as error:
        raise Absent(f"{name}: process 0 is gone: see what it says, and start all processes again") from error


def _await(name: str, key: str, missing: Callable[[], list[int]], seconds: float, began: float) -> str:
    """The value of a key, once a process has set it. missing: the processes to name meanwhile. Raises Absent `seconds` after `began`."""
    client, end = private.store(), began + seconds
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
