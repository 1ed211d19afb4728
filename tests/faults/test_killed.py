"""T1 and T17: killed at any moment and started again until it is done, a run is the run that nobody killed, bit for bit."""

import dataclasses
import json
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.faults import alone
from tests.faults.alone import EVERY, FULL, STEPS, Nano, newest, notes_of
from tests.faults.conftest import Row
from tests.faults.same import assert_same_run

KILLS = {"mlm": 40, "rtd": 10, "plm": 10, "bilm": 10} if FULL else {"mlm": 3, "rtd": 1, "plm": 1, "bilm": 1}
# Where kills are aimed, in turn; "any" is a time drawn from 0.5 to 3 times (start-up + one interval).
AIMS = ("save", "any", "evaluation", "any")
# A life shorter than start-up and an interval brings nothing, one in five of "any"; ten in a row are no chance.
IDLE = 10


@dataclasses.dataclass(frozen=True)
class Kill:
    """life: seconds from start to kill. where: all that was going on. begun, kept, seen: newest checkpoint at the start and at the
    kill, and the last step in metrics.jsonl."""

    life: float
    where: tuple[str, ...]
    begun: int
    kept: int
    seen: int


def last_note(workdir: Path) -> str:
    text = notes_of(workdir).read_text() if notes_of(workdir).exists() else ""
    return text.splitlines()[-1].split()[-1] if text.endswith("\n") else ""


def saving(workdir: Path) -> list[int]:
    """The steps that have a temporary name."""
    return [int(path.name.split(".")[1]) for path in workdir.glob("checkpoints/.*.tmp-save")]


def logged(workdir: Path) -> list[dict]:
    """The rows of metrics.jsonl that are whole, if any."""
    path = workdir / "metrics.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")] if path.exists() else []


def where(workdir: Path) -> Iterator[str]:
    """What a process that is dead was doing, from what it left."""
    if not newest(workdir):
        yield "before the first checkpoint"
    if saving(workdir) or any(workdir.glob("checkpoints/.*.tmp-delete")):
        yield "in a save"
    rows = logged(workdir)
    last = rows[-1] if rows else {"step": 1, "split": ""}
    copied = newest(workdir) == last["step"] or (last["step"] in saving(workdir) and last_note(workdir) != "aside")
    if last["split"] == "train" and last["step"] % (2 * EVERY) == 0 and copied:
        yield "in an evaluation"


def aimed(aim: str, workdir: Path, draw: random.Random, span: float) -> Callable[[float], bool]:
    """Whether now, so many seconds into a life, is the moment of the kill."""
    moment = draw.uniform(0.5, 3) * span
    first, delay = newest(workdir) + EVERY * draw.randrange(1, 4), draw.uniform(0, 0.02)

    def now(age: float) -> bool:
        if aim == "any":
            return age >= moment
        steps = [step for step in saving(workdir) if step >= first]
        if aim == "evaluation":
            return any(step % (2 * EVERY) == 0 for step in steps) and last_note(workdir) == "copied"
        if steps:
            time.sleep(delay)
        return bool(steps)

    return now


def live(nano: Nano, workdir: Path, now: Callable[[float], bool]) -> Kill | None:
    """One process until its kill, or None where it came to its end before."""
    begun, started = newest(workdir), time.monotonic()
    with nano.start(workdir) as process:
        while process.poll() is None and not now(time.monotonic() - started):
            time.sleep(0.002)
        process.kill()
        said = process.communicate()[1]
    if process.returncode == 0:
        return None
    assert process.returncode == -9, said
    seen = max((row["step"] for row in logged(workdir)), default=0)
    return Kill(round(time.monotonic() - started, 2), tuple(where(workdir)), begun, newest(workdir), seen)


def start_up(nano: Nano, workdir: Path) -> tuple[float, float]:
    """Seconds from start to the first step's row and to the first checkpoint, everything compiled before."""
    started, first = time.monotonic(), 0.0
    with nano.start(workdir) as process:
        while not newest(workdir):
            first = first or (time.monotonic() - started if logged(workdir) else 0.0)
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.005)
        span = time.monotonic() - started
        process.kill()
        process.communicate()
    return first, span


@pytest.mark.slow
@pytest.mark.parametrize("kind", alone.OBJECTIVES)
def test_killed_again_and_again(
    kind: str, nanos: Callable[[str], Nano], undisturbed_alone: Callable[[str], Path], tmp_path: Path, row: Row
) -> None:
    """Every start after a kill goes on, every run comes to its end, and each is the undisturbed one."""
    nano, whole, draw = nanos(kind), undisturbed_alone(kind), random.Random(kind)
    first, span = start_up(nano, tmp_path / "measured")
    kills: list[Kill] = []
    runs, idle = 0, 0
    while len(kills) < KILLS[kind] or runs == 0:
        workdir = tmp_path / f"run-{runs}"
        while True:
            spent = len(kills) >= KILLS[kind]
            now = (lambda age: False) if spent else aimed(AIMS[len(kills) % len(AIMS)], workdir, draw, span)
            kill = live(nano, workdir, now)
            if kill is None:
                break
            kills.append(kill)
            idle = 0 if kill.kept > kill.begun else idle + 1
            assert idle < IDLE, kills[-IDLE:]
        assert_same_run(whole, workdir, 0, STEPS)
        runs += 1
    (tmp_path / "kills.jsonl").write_text("".join(json.dumps(dataclasses.asdict(kill)) + "\n" for kill in kills))
    falls = Counter(place for kill in kills for place in kill.where)
    if FULL and kind == "mlm":
        assert falls["before the first checkpoint"] >= 5 and falls["in a save"] >= 5 and falls["in an evaluation"] >= 1, kills
    lost = sum(max(0, kill.seen - kill.kept) for kill in kills)
    told = ", ".join(f"{count} {place}" for place, count in sorted(falls.items()))
    row(f"T1 kill -9, {kind}", len(kills), f"{runs} of {runs} runs bit for bit ({told})")
    ideal = runs * STEPS
    row(f"T17 goodput, {kind}", len(kills), f"{lost} of {ideal + lost} steps taken twice; first step {first:.1f} s after a start")
