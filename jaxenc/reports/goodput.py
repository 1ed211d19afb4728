"""Where the time of a run went, from its events.jsonl.

Goodput is productive, preserved training time as a share of the time from the first start to the last event, as in
docs.cloud.google.com/tpu/docs/goodput. Productive are the seconds in steps that are part of the run as it is now; those of steps that a
restart had to take again are lost. Compiling, evaluating, standing still for a save, starting, and the time without a process are not
productive. Waiting for data is part of a step.
"""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

# {part of the wall time: what it is}, in the order of a table.
PARTS = {
    "training": "in steps that count",
    "lost": "in steps that a restart took again",
    "compile": "compiling",
    "evaluation": "evaluating",
    "save": "standing still for checkpoints",
    "start": "starting: data, state, devices",
    "away": "no process, or killed before it wrote an event",
    "other": "everything else",
}


@dataclasses.dataclass(frozen=True)
class Goodput:
    """Where the time of a run went, from its events.

    seconds: {a name of PARTS: seconds}, which sum to `wall`. wall: seconds from the first start to the last event. starts: how often a
    process started. killed: how many of them, the last aside, ended without a row `stop`. lost_steps: steps that are known to have been
    taken more than once; exact if `killed` is 0, else a lower bound. checkpoints: how many are complete. saved_bytes: of the newest.
    """

    wall: float
    seconds: Mapping[str, float]
    starts: int
    killed: int
    lost_steps: int
    checkpoints: int
    saved_bytes: int

    @property
    def share(self) -> float:
        """The goodput, 0 to 1; 0 for a run that has taken no time."""
        return self.seconds["training"] / self.wall if self.wall > 0 else 0.0

    @property
    def twice(self) -> str:
        """How many steps were taken more than once, in words: after a kill a lower bound, since a process takes more steps than it logs."""
        if not self.killed:
            return f"{self.lost_steps:,}"
        return f"at least {self.lost_steps:,}" if self.lost_steps else "not known"


def goodput(events: Sequence[Mapping[str, Any]]) -> Goodput:
    """The goodput of the rows of an events.jsonl; of no rows, one without time.

    A row of steps that a later start cuts in two counts in proportion. A killed process got at least as far as the next start finds in its
    logs (`reached`). The time of its steps after its last event counts as `away`.
    """
    runs = sessions(events)
    seconds = dict.fromkeys(PARTS, 0.0)
    if not runs:
        return Goodput(0.0, seconds, 0, 0, 0, 0, 0)
    taken = 0
    for number, rows in enumerate(runs):
        later = [other[0]["step"] for other in runs[number + 1 :]]
        following = runs[number + 1][0] if later else None
        seconds["start"] += rows[0]["seconds"]
        for row in rows[1:]:
            if row["event"] == "steps":
                kept = _kept(row, min(later, default=math.inf))
                seconds["training"] += kept * row["seconds"]
                seconds["lost"] += (1 - kept) * row["seconds"]
            elif row["event"] in ("compile", "evaluation", "save"):
                seconds[row["event"]] += row["seconds"]
        if following:
            seconds["away"] += max(0.0, _began(following) - _last(rows))
        reached = max(row["step"] for row in rows)
        taken += max(reached, following["reached"] if following else 0) - rows[0]["step"]
    wall = max(map(_last, runs)) - _began(runs[0][0])
    seconds["other"] = max(0.0, wall - sum(seconds.values()))
    net = max(row["step"] for row in runs[-1]) - runs[0][0]["step"]
    killed = sum(all(row["event"] != "stop" for row in rows) for rows in runs[:-1])
    saved = [row for row in events if row["event"] == "checkpoint"]
    return Goodput(wall, seconds, len(runs), killed, max(0, taken - net), len(saved), saved[-1]["bytes"] if saved else 0)


def sessions(events: Sequence[Mapping[str, Any]]) -> list[list[Mapping[str, Any]]]:
    """The rows of each start, in order; each begins with its row `start`."""
    found: list[list[Mapping[str, Any]]] = []
    for row in events:
        if row["event"] == "start":
            found.append([])
        if found:
            found[-1].append(row)
    return found


def _kept(row: Mapping[str, Any], until: float) -> float:
    """The share of the steps of a row that are not after step `until`."""
    return min(1.0, max(0.0, (min(row["step"], until) - row["after"]) / max(row["step"] - row["after"], 1)))


def _began(start: Mapping[str, Any]) -> float:
    return start["time"] - start["seconds"]


def _last(rows: Sequence[Mapping[str, Any]]) -> float:
    return max(row["time"] for row in rows)
