"""T1 and T17: killed at any moment and started again until it is done, a run is the run that nobody killed, bit for bit."""

import dataclasses
import json
import random
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.faults import alone
from tests.faults.alone import EVERY, Nano, logged, newest, notes_of, saving
from tests.faults.conftest import Table
from tests.faults.same import assert_same_run

STEPS = 200
# When the kills of an objective come, one after another. At a moment of the run, which no load of the machine moves: "step" one of the
# steps before a checkpoint, "save" a stage of a save, "evaluation" the first evaluation. At a time: "start" from 0.2 to 0.9 times what the
# start-up took, "any" from 0.5 to 3 times (start-up + one interval).
AIMS = ("start", "step", "save", "any", "evaluation", "any", "save", "any", "any", "any")
SAVING = ("copied", "state", "files", "checksums")
# A life shorter than start-up and an interval brings no progress: one in five of "any". Ten such lives in a row are no accident.
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


def stages(workdir: Path) -> list[str]:
    """What the last process of a run noted since its last step, or since its start; an unfinished line counts for nothing."""
    text = notes_of(workdir).read_text() if notes_of(workdir).exists() else ""
    names = [line.split()[-1] for line in text.splitlines(keepends=True) if line.endswith("\n")]
    last = max((number for number, name in enumerate(names) if name in ("start", "step")), default=0)
    return names[last + 1 :]


def where(workdir: Path) -> Iterator[str]:
    """What a process that is dead was doing, from what it left."""
    if not newest(workdir):
        yield "before the first checkpoint"
    if saving(workdir) or any(workdir.glob("checkpoints/.*.tmp-delete")):
        yield "in a save"
    rows = logged(workdir)
    if "evaluation" in stages(workdir) and rows[-1]["split"] == "train":
        yield "in an evaluation"


def aimed(aims: tuple[str, ...], draw: random.Random, first: float, span: float) -> tuple[tuple[str, str, int], float | None]:
    """(accident, its stage and which time that comes; seconds until a kill from outside): one of them, or neither where no aim is left.
    first, span: seconds from a start to the first step and to the first checkpoint."""
    nothing = ("nothing", "-", 1)
    match aims[:1]:
        case ("step",):
            return ("kill", "step", draw.randrange(1, EVERY)), None
        case ("save",):
            return ("kill", draw.choice(SAVING), draw.randrange(1, 3)), None
        case ("evaluation",):
            return ("kill", "evaluation", 1), None
        case ("start",):
            return nothing, draw.uniform(0.2, 0.9) * first
        case ("any",):
            return nothing, draw.uniform(0.5, 3) * span
    return nothing, None


def live(nano: Nano, workdir: Path, accident: tuple[str, str, int], seconds: float | None) -> Kill | None:
    """One process until its kill, or None where it came to its end before."""
    begun, started = newest(workdir), time.monotonic()
    with nano.start(workdir, *accident) as process:
        try:
            said = process.communicate(timeout=seconds)[1]
        except subprocess.TimeoutExpired:
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


@dataclasses.dataclass(frozen=True)
class Told:
    """What the kills of one objective came to. runs: how many came to their end; first: seconds from start to first step, everything
    compiled before."""

    kills: list[Kill]
    runs: int
    first: float

    @property
    def falls(self) -> Counter[str]:
        return Counter(place for kill in self.kills for place in kill.where)

    @property
    def lost(self) -> int:
        """Steps that were taken twice."""
        return sum(max(0, kill.seen - kill.kept) for kill in self.kills)


@pytest.fixture(scope="module")
def told(table: Table) -> Iterator[list[Told]]:
    """Filled by the tests below; what all of them came to is a line of the table."""
    all_told: list[Told] = []
    yield all_told
    if len(all_told) < len(alone.RECIPES):
        return
    falls = sum((one.falls for one in all_told), Counter())
    assert min(falls["before the first checkpoint"], falls["in a save"]) >= 5 and falls["in an evaluation"], falls
    useful, lost = STEPS * sum(one.runs for one in all_told), sum(one.lost for one in all_told)
    share = f"{useful} useful of {useful + lost} steps ({useful / (useful + lost):.1%})"
    first = max(one.first for one in all_told)
    table("T17 goodput of T1", sum(len(one.kills) for one in all_told), f"{share}; first step at most {first:.1f} s after a start")


@pytest.mark.full
@pytest.mark.parametrize("kind", alone.RECIPES)
def test_killed_again_and_again(
    kind: str, nanos: Callable[..., Nano], undisturbed_alone: Callable[..., Path], told: list[Told], tmp_path: Path, row: Table
) -> None:
    """Every start after a kill goes on, every run comes to its end, and each is the undisturbed one. The short suite has test_alone."""
    nano, whole, draw = nanos(kind, STEPS), undisturbed_alone(kind, STEPS), random.Random(kind)
    first, span = start_up(nano, tmp_path / "measured")
    kills: list[Kill] = []
    runs, idle = 0, 0
    while len(kills) < len(AIMS) or runs == 0:
        workdir = tmp_path / f"run-{runs}"
        while (kill := live(nano, workdir, *aimed(AIMS[len(kills) :], draw, first, span))) is not None:
            kills.append(kill)
            idle = 0 if kill.kept > kill.begun else idle + 1
            assert idle < IDLE, kills[-IDLE:]
        assert_same_run(whole, workdir, 0, STEPS)
        runs += 1
    (tmp_path / "kills.jsonl").write_text("".join(json.dumps(dataclasses.asdict(kill)) + "\n" for kill in kills))
    told.append(Told(kills, runs, first))
    places = ", ".join(f"{count} {place}" for place, count in sorted(told[-1].falls.items()))
    row(f"T1 kill -9, {kind}", len(kills), f"{runs} of {runs} runs bit for bit ({places})")
