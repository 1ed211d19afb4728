"""Which process the others wait for."""

import sys
import threading
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Self

import jax

from jaxenc.processes import barriers, connection, private

FOLDER = "jaxenc/watch/"


class Watch:
    """Owner of a thread that says on stderr, every 15 s in which this process stays where it is, which others are silent or behind.

    The training loop calls `at` before each thing that all processes must take part in. A collective names nobody, so this thread ends the
    process, with the names of those that are behind, after `barriers.LIMIT` seconds. A process that is dead, or stands still as a whole,
    ends all others earlier, because its heartbeat is missing (`cluster.Cluster`).
    """

    def __init__(self) -> None:
        self._place = (0, "start", time.monotonic())
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="jaxenc-watch", daemon=True)

    def at(self, place: str) -> None:
        """Says where this process is. Every process comes to the same places in the same order, so that their number can be compared."""
        self._place = (self._place[0] + 1, place, time.monotonic())

    def __enter__(self) -> Self:
        if jax.process_count() > 1:
            with barriers.service("start"):
                private.store().key_value_set(f"{FOLDER}{jax.process_index()}", "0 0", allow_overwrite=True)
            self._thread.start()
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._closed.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        # A process gives a sign of life three times as often as it tells.
        index, tell = jax.process_index(), barriers.TELL
        last_seen, said, beat = LastSeen(index), 0.0, 0
        while not self._closed.wait(tell / 3):
            (count, place, since), beat = self._place, beat + 1
            signs, now = _exchange(index, f"{count} {beat}"), time.monotonic()
            awaited = last_seen.look(now, count, signs)
            if awaited and now - since >= tell and now - said >= tell:
                said = now
                who = f"{place}: process {index} waits for process {', '.join(awaited)}"
                over = now - since >= barriers.LIMIT
                line = f"{who}: nothing for {now - since:.0f} s: start all processes again" if over else who
                print(line, file=sys.stderr, flush=True)
                if over:
                    connection.leave(1)


def _exchange(index: int, sign: str) -> dict[str, str]:
    """Writes the sign of this process and reads those of all, {process: sign}; {} where process 0, which keeps them, does not answer."""
    client, key = private.store(), f"{FOLDER}{index}"
    try:
        # A key that is there: of all calls this one alone has a time limit, so a process 0 that stands still does not hold this thread.
        client.blocking_key_value_get(key, round(barriers.TELL * 200))
        client.key_value_set(key, sign, allow_overwrite=True)
        return {key.rpartition("/")[2]: value for key, value in client.key_value_dir_get(FOLDER)}
    except jax.errors.JaxRuntimeError:
        return {}


class LastSeen:
    """What process `index` has seen of the others: for each the last new sign, the text `place beat`, and when it came."""

    def __init__(self, index: int) -> None:
        self._index = str(index)
        self._seen: dict[str, tuple[str, float]] = {}

    def look(self, now: float, place: int, signs: Mapping[str, str]) -> list[str]:
        """The processes that one at `place` waits for at the time `now`, in seconds: those whose last new sign is TELL seconds old, and
        those at an earlier place; where no signs can be read, process 0, once its last is that old."""
        self._seen |= {rank: (sign, now) for rank, sign in signs.items() if self._seen.get(rank, ("", 0.0))[0] != sign}
        silent = lambda rank: now - self._seen.get(rank, ("", 0.0))[1] >= barriers.TELL
        if not signs:
            return ["0"] if silent("0") else []
        others = sorted((rank for rank in signs if rank != self._index), key=int)
        return [rank for rank in others if silent(rank) or int(signs[rank].split()[0]) < place]
