"""What is logged of a step, and when a run of bad steps ends the run."""

import itertools
import types
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from jaxenc.errors import Diverged
from jaxenc.progress import Bar
from jaxenc.training import log as logs
from jaxenc.training.events import NoEvents
from jaxenc.training.log import Log
from jaxenc.training.record import Silent
from jaxenc.training.settings import LogConfig
from tests import tiny


class Rows(Silent):
    """A Recorder that keeps what it is given."""

    def __init__(self) -> None:
        super().__init__(NoEvents())
        self.rows: list[tuple[int, str, dict[str, float]]] = []

    def row(self, step: int, split: str, numbers: Mapping[str, float]) -> None:
        self.rows.append((step, split, dict(numbers)))


BATCH = {"segments": np.ones((8, tiny.LENGTH), np.int32), "index": np.arange(8, dtype=np.uint32), "epoch": np.zeros(8, np.uint32)}


def report(step: int, bad: int = 0) -> dict[str, Any]:
    """Numbers that tell the step and that are all different."""
    return {
        "loss": np.float32(step + 0.25),
        "metrics": {"mlm_loss": (np.float32(6 * step), np.float32(4))},
        "gradient_norm": np.float32(step + 0.5),
        "lr": np.float32(step + 0.75),
        "bad": np.int32(bad),
        "skipped": np.int32(100 + step),
    }


def log_of(recorder: Rows, every: int, steps: int, stop_after_bad: int = 3) -> Log:
    log = Log(recorder, LogConfig(every=every), steps, stop_after_bad, Bar("training", 0, "", 0, ""))
    log.begin(tiny.phase(8), tiny.objective(), tiny.mesh("dp", 1))
    return log


def test_reports_of_fast_steps_are_read_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps of 8 ms: one read in 24 ms, and always that of a step that has a row; steps of 30 ms: each is read when the next one comes. So
    it is in one of several processes, whatever its clock says, since reading may need all of them."""
    for duration, processes, wanted in ((0.008, 1, [1, 4, 7, 10]), (0.03, 1, list(range(1, 12))), (0.008, 2, list(range(1, 12)))):
        seconds, read = [100.0], []
        monkeypatch.setattr(logs, "time", types.SimpleNamespace(monotonic=lambda seconds=seconds: seconds[0]))
        get = lambda reports, read=read: read.append(len(reports)) or reports
        count = lambda processes=processes: processes
        monkeypatch.setattr(logs, "jax", types.SimpleNamespace(device_get=get, process_count=count))
        log = log_of(Rows(), 10, 100)
        read.clear()
        for step in range(1, 13):
            log.push(step, report(step), BATCH, 1e6)
            seconds[0] += duration
        assert list(itertools.accumulate(read)) == wanted


def test_a_row_holds_the_numbers_of_its_own_step() -> None:
    """Of the first step, the last and every fourth; a report is read when the next one comes or at a flush."""
    recorder = Rows()
    log = log_of(recorder, 4, 10)
    for step in range(1, 11):
        log.push(step, report(step), BATCH, 1e6)
        assert all(written < step for written, *_ in recorder.rows)
    log.flush()
    log.flush()
    assert [step for step, *_ in recorder.rows] == [1, 4, 8, 10]
    for step, split, numbers in recorder.rows:
        clocks = {name: numbers.pop(name) for name in ("tokens_per_second", "mfu") if name in numbers}
        assert split == "train" and (step == 1 or clocks["tokens_per_second"] > 0)
        wanted = {"loss": step + 0.25, "mlm_loss": 1.5 * step, "gradient_norm": step + 0.5, "lr": step + 0.75, "skipped": 100 + step}
        assert numbers == wanted


def test_the_rate_counts_the_tokens_of_each_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of 10 and of 40 places, a second a step; a step that is compiled, and the one after it, are not timed."""
    recorder, seconds = Rows(), [0]
    monkeypatch.setattr(logs, "time", types.SimpleNamespace(monotonic=lambda: seconds[0]))
    log = log_of(recorder, 4, 100)
    for step in range(1, 9):
        if step == 6:
            log.compiles(40)
        seconds[0] += 1
        log.push(step, report(step), {**BATCH, "segments": np.ones((8, 40 if step in (2, 6, 7) else 10), np.int32)}, 1e6)
    seconds[0] += 1
    log.flush()
    # Steps 2 to 4 and 7 to 8 are timed.
    assert [numbers.get("tokens_per_second") for _, _, numbers in recorder.rows] == [None, 8 * 60 / 3, 8 * 50 / 2]


@pytest.mark.parametrize("bad, ends", [("1101101111", 9), ("111", 3), ("1101101100", 0), ("0110111", 7)])
def test_a_run_ends_after_so_many_bad_steps_in_a_row(bad: str, ends: int) -> None:
    """Three: a good step between them starts the count again."""
    log, stopped = log_of(Rows(), 100, 100), 0
    for step, one in enumerate(bad, 1):
        log.push(step, report(step, int(one)), BATCH, 1e6)
        try:
            log.flush()
        except Diverged as error:
            stopped = step
            assert str(error).startswith(f"3 non-finite steps in a row up to step {step}")
            break
    assert stopped == ends
