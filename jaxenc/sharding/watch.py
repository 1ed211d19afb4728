"""Which process the others wait for."""

import sys
import threading
from types import TracebackType
from typing import Self

import jax
from jax._src import distributed  # See sharding/multihost.py.

# Seconds between two lines. A process gives a sign of life three times as often.
TELL = 15.0


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
        before: tuple[int, dict[str, str]] = (-1, {})
        beat = 0
        while not self._closed.wait(TELL / 3):
            beat += 1
            client.key_value_set(f"jaxenc/watch/{index}", f"{self.step} {beat}", allow_overwrite=True)
            if beat % 3 == 0:
                now = (self.step, {key.rpartition("/")[2]: value for key, value in client.key_value_dir_get("jaxenc/watch/")})
                awaited = behind(index, before, now)
                if awaited:
                    print(f"step {self.step:,}: process {index} waits for process {', '.join(awaited)}", file=sys.stderr, flush=True)
                before = now


def behind(index: int, before: tuple[int, dict[str, str]], now: tuple[int, dict[str, str]]) -> list[str]:
    """The processes that process `index` waits for: none while its own step moves; else those that gave no sign of life between the two
    looks, and those at an earlier step. A look is (own step, {process: `step beat`})."""
    if before[0] != now[0]:
        return []
    others = sorted((rank for rank in now[1] if rank != str(index)), key=int)
    return [rank for rank in others if now[1][rank] == before[1].get(rank) or int(now[1][rank].split()[0]) < now[0]]
