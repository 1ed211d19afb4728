"""events.jsonl: when a run started, compiled, saved, evaluated and stopped, and how long it trained between.

Rows are `{"time": Unix seconds, "event": NAME, "step": int, "seconds": float, ...}`. Process 0 appends them; a resume cuts nothing, so the
rows of steps that were lost and taken again stay. `time` is when the row was written: at the end of what took `seconds`.

    start        a process starts to train after `step`; seconds: from the call until then, with the state restored. Also: kind (fresh,
                 resume, continue, init), reached (the last step in metrics.jsonl and examples.log before the resume cut them), command
                 (argv), versions, device, devices, processes, steps (of the whole run), phases ([{start, end, batch, length, flops of such
                 a row}])
    compile      the step was traced and compiled, and `step`, its first, dispatched
    steps        the steps from `after` + 1 to `step`; seconds: in them, without compiling, evaluating or standing still for a save;
                 waiting for data counts. At most one every EVERY seconds, and one before each of the other events
    save         training stood still to copy checkpoint `step` to the host, after the save before it had ended
    checkpoint   checkpoint `step` is complete; seconds: since its save began; bytes: of its files
    evaluation   the evaluation after `step`, also one that was stopped
    stop         the run ended at `step`; reason: finished, preempted, or the name of an exception. A killed process writes none
"""

import contextlib
import json
import math
import pathlib
import sys
import time
from collections.abc import Iterator, Mapping
from typing import Any

from jaxenc.errors import UserError
from jaxenc.files import user_errors
from jaxenc.training import row_file
from jaxenc.training.row_file import FULL

EVENTS = "events.jsonl"
READABLE = "make it a file that can be read, or remove it"
# Seconds between two rows of steps: a kill leaves no more than these without a row, and a week of training writes 2 MB.
EVERY = 30.0
# {event: {fact: its type}} of the facts that readers use.
FACTS: Mapping[str, Mapping[str, type]] = {
    "start": {"kind": str, "reached": int, "command": list, "versions": dict, "device": str, "devices": int, "processes": int,
              "steps": int, "phases": list},
    "steps": {"after": int},
    "checkpoint": {"bytes": int},
    "stop": {"reason": str},
}  # fmt: skip
FINISHED, PREEMPTED = "finished", "preempted"  # the reasons of a stop without an exception
PHASE = {"start": int, "end": int, "batch": int, "length": int, "flops": float}


def read(path: pathlib.Path) -> list[dict[str, Any]]:
    """The rows of an events.jsonl, [] where there is none; an unfinished last line is left out. Raises UserError naming a line that is no
    row."""
    if not path.exists():
        return []
    return row_file.read(path, _row, "an event", READABLE)


def _row(line: bytes) -> dict[str, Any]:
    """A row whose facts have the types of FACTS; raises what `row_file.read` catches for any other."""
    row = json.loads(line)
    _check(row, {"time": float, "event": str, "step": int, "seconds": float})
    _check(row, FACTS.get(row["event"], {}))
    for phase in row["phases"] if row["event"] == "start" else ():
        _check(phase, PHASE)
    if row["event"] == "start" and not all(isinstance(word, str) for word in row["command"]):
        raise ValueError("a word of the command is not text")
    return row


def _check(row: Mapping[str, Any], kinds: Mapping[str, type]) -> None:
    """Raises an error where a value is missing, of another type, not finite, negative or beyond any clock."""
    for name, kind in kinds.items():
        value = row[name]
        number = kind in (int, float) and type(value) in (int, kind) and math.isfinite(value)
        limit = 1e12 if name in ("time", "seconds") else math.inf if name == "flops" else sys.maxsize
        if not (number and 0 <= value <= limit if kind in (int, float) else isinstance(value, kind)):
            raise ValueError(f"{name} is {value!r}")


class Events:
    """Owner of a run's open events.jsonl, in process 0, and of the clock that says how long it trained."""

    def __init__(self, workdir: pathlib.Path) -> None:
        """Opens the file, without the unfinished last line that a killed process may have left. Raises UserError."""
        path = workdir / EVENTS
        with user_errors(path, FULL):
            if path.exists():
                row_file.drop_unfinished(path)
            # Without a buffer a row is one call of the system, so that rows of the thread that saves are not mixed with others.
            self._file = path.open("ab", buffering=0)
        self._step, self._after, self._since = 0, 0, time.monotonic()

    def write(self, event: str, step: int, seconds: float, facts: Mapping[str, Any]) -> None:
        """One row. facts: what else it says. Raises UserError."""
        row = {"time": round(time.time(), 3), "event": event, "step": step, "seconds": round(seconds, 3), **facts}
        with user_errors(self._file.name, FULL):
            self._file.write(json.dumps(row).encode() + b"\n")

    def start(self, step: int, seconds: float, facts: Mapping[str, Any]) -> None:
        """The row `start`; the clock of training begins."""
        self.write("start", step, seconds, facts)
        self._step, self._after, self._since = step, step, time.monotonic()

    def stepped(self, step: int) -> None:
        """A step whose report was read."""
        self._step = step
        if time.monotonic() - self._since >= EVERY:
            self.pause()

    def pause(self) -> None:
        """Writes the row `steps` of the steps since the one before. What follows counts as training again, unless `resume` gives its time
        to another event."""
        now = time.monotonic()
        if self._step > self._after:
            self.write("steps", self._step, now - self._since, {"after": self._after})
        self._after, self._since = self._step, now

    def resume(self, event: str, step: int) -> None:
        """Writes the row of the event that took the time since `pause`."""
        now = time.monotonic()
        self.write(event, step, now - self._since, {})
        self._since = now

    @contextlib.contextmanager
    def during(self, event: str, step: int) -> Iterator[None]:
        """Training stands still in the block, whose row is written when it succeeds."""
        self.pause()
        yield
        self.resume(event, step)

    def saved(self, step: int, seconds: float, size: int) -> None:
        """The row `checkpoint`; any thread may call it."""
        self.write("checkpoint", step, seconds, {"bytes": size})

    @contextlib.contextmanager
    def failing(self) -> Iterator[None]:
        """What the block raises is the reason of the row `stop`."""
        try:
            yield
        except BaseException as error:
            with contextlib.suppress(UserError):  # of the disk, which must not hide the error
                self.stop(type(error).__name__)
            raise

    def stop(self, reason: str) -> None:
        """The rows of the last steps, and `stop`."""
        self.pause()
        self.write("stop", self._step, 0.0, {"reason": reason})

    def close(self) -> None:
        """Closes the file."""
        self._file.close()


class NoEvents(Events):
    """The Events of every process but process 0: writes nothing."""

    def __init__(self) -> None:
        self._step, self._after, self._since = 0, 0, time.monotonic()

    def write(self, event: str, step: int, seconds: float, facts: Mapping[str, Any]) -> None:
        """Writes nothing."""

    def close(self) -> None:
        """Closes nothing."""
