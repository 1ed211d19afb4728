"""Which process the others wait for."""

import sys
import threading
from types import TracebackType
from typing import Self

import jax
from jax._src import distributed  # See sharding/multihost.py.

# Seconds between two lines. A process gives a sign of life three times as often.
TELL = 15.0
FOLDER = "jaxenc/watch/"
# (own step, {process: `step beat`})
Look = tuple[int, dict[str, str]]


class Watch:
    """Owner of a thread that says on stderr, every 15 s in which `step` stays where it is, which other processes are silent or behind.

    The loop sets `step`. A collective has no time limit of its own here: a process that is only slow costs time and nothing else, and
    one that is dead is found by its heartbeat (`multihost.Cluster`).
    """

    def __init__(self) -> None:
        self.step = 0
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="jaxenc-watch", daemon=True)

    def __enter__(self) -> Self:
        if jax.process_count() > 1:
            self._thread.start()
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._closed.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        client, index = distributed.global_state.client, jax.process_index()
        before: Look = (-1, {})
        beat = 0
        while not self._closed.wait(TELL / 3):
            if beat and not _answers(f"{FOLDER}{index}"):
                self._tell(["0"])
                continue
            beat += 1
            client.key_value_set(f"{FOLDER}{index}", f"{self.step} {beat}", allow_overwrite=True)
            if beat % 3 == 0:
                now = (self.step, {key.rpartition("/")[2]: value for key, value in client.key_value_dir_get(FOLDER)})
                self._tell(behind(index, before, now))
                before = now

    def _tell(self, awaited: list[str]) -> None:
        if awaited:
            line = f"step {self.step:,}: process {jax.process_index()} waits for process {', '.join(awaited)}"
            print(line, file=sys.stderr, flush=True)


def _answers(key: str) -> bool:
    """Whether process 0, which keeps the store, answers a question after a key that is there: no other call to it has a time limit."""
    try:
        distributed.global_state.client.blocking_key_value_get(key, round(TELL * 2000 / 3))
    except jax.errors.JaxRuntimeError:
        return False
    return True


def behind(index: int, before: Look, now: Look) -> list[str]:
    """The processes that process `index` waits for: none while its own step moves; else those that gave no sign of life between the two
    looks, and those at an earlier step."""
    if before[0] != now[0]:
        return []
    others = sorted((rank for rank in now[1] if rank != str(index)), key=int)
    return [rank for rank in others if now[1][rank] == before[1].get(rank) or int(now[1][rank].split()[0]) < now[0]]
