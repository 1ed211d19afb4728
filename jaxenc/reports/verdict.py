"""What became of a run, in a few sentences."""

import time
from collections.abc import Mapping

from jaxenc.reports import parts
from jaxenc.reports.goodput import Goodput
from jaxenc.reports.history import STOPPED, History
from jaxenc.reports.panels import TOKENS, groups


def state(run: History) -> str:
    """What became of the run (`History.state`) and at which step, as a sentence."""
    step = max(run.events[-1]["step"] if run.events else 0, run.step)
    onward = "; the same command goes on from there" if run.state == STOPPED else ""
    return f"{run.state[0].upper()}{run.state[1:]} at step {step:,} of {run.steps:,}{onward}."


def lines(run: History, counts: Mapping[str, float], spent: Goodput) -> list[str]:
    """The sentences at the top of a page: the state, the held-out loss beside the counts, skipped steps, goodput."""
    found = [state(run)]
    held_out = run.held_out
    for name in groups([held_out])[TOKENS] if held_out else ():
        beside = ""
        if counts:
            below = [one for one in counts if held_out[name] < counts[one]]
            sides = (("below the counts", below), ("not yet below", [one for one in counts if one not in below]))
            listed = lambda names: ", ".join(f"{one.replace('_', ' + ')} {counts[one]:.2f}" for one in names)
            beside = "".join(f", {side} {listed(names)}" for side, names in sides if names)
        found.append(f"Held-out {name} {held_out[name]:.4f} at step {held_out['step']:,}{beside}.")
    skipped = next((row["skipped"] for row in reversed(run.rows) if "skipped" in row), 0)
    if skipped:
        found.append(f"{skipped:,.0f} steps were not finite and were skipped.")
    if spent.wall:
        lost = f", {spent.twice} steps taken twice" if spent.lost_steps else ""
        starts = "one start" if spent.starts == 1 else f"{spent.starts} starts"
        found.append(f"Goodput {spent.share:.1%} of {parts.duration(spent.wall)}, {starts}{lost}.")
    return found


def began(run: History) -> str:
    """The day and hour of the first start and of the last event, in UTC; '' for a run without events."""
    if not run.events:
        return ""
    stamp = lambda seconds: time.strftime("%Y-%m-%d %H:%M", time.gmtime(seconds))
    return f"{stamp(run.events[0]['time'])} to {stamp(run.events[-1]['time'])} UTC"


def hardware(run: History) -> str:
    """Devices and processes of the last start; '' for a run without events."""
    if not run.start:
        return ""
    count = run.start["processes"]
    return f"{run.start['devices']} x {run.start['device']}, {count} {'process' if count == 1 else 'processes'}"


def versions(run: History) -> str:
    """Versions of the last start; '' for a run without events."""
    return ", ".join(f"{name} {version}" for name, version in run.start.get("versions", {}).items() if version)
