"""Reads each step's report while the next step runs, and writes the rows and lines that are due."""

import time
from collections.abc import Mapping
from typing import Any

import jax
from jax.sharding import Mesh

from jaxenc.data.batch import Batch, row_length
from jaxenc.errors import Diverged
from jaxenc.objectives.base import Objective
from jaxenc.progress import Bar
from jaxenc.sharding import partition
from jaxenc.training import perf
from jaxenc.training.phases import Phase
from jaxenc.training.record import Recorder, progress, row_ids
from jaxenc.training.settings import LogConfig

# Seconds between two reads of reports: reading waits for the device, which for steps of a few milliseconds would run dry meanwhile.
READ_EVERY = 0.02


class Log:
    """Owner of the reports that are still on the device: one, or those of the last READ_EVERY seconds. bar: counts the steps."""

    def __init__(self, recorder: Recorder, config: LogConfig, steps: int, stop_after_bad: int, bar: Bar) -> None:
        self._recorder, self._config, self._steps, self._stop_after_bad, self._bar = recorder, config, steps, stop_after_bad, bar
        self.events = recorder.events
        self._pending: list[tuple[int, Any, Batch, float]] = []
        self._read_at, self._bad_in_a_row, self._compiling = 0.0, 0, False

    def begin(self, phase: Phase, objective: Objective, mesh: Mesh) -> None:
        """Starts a phase and its clock. objective: says what a report's sums mean."""
        self.flush()
        self._phase, self._objective, self._mesh = phase, objective, mesh
        self._clock: tuple[float, int] | None = None

    def compiles(self, length: int) -> None:
        """Says that the step for rows of `length` tokens is compiled. The time that this takes is not counted as training."""
        self.flush()
        self.events.pause()
        self._clock, self._compiling = None, True
        most = self._phase.length
        rows = f"rows of {length:,} tokens" if length == most else f"rows of up to {most:,} tokens, here {length:,}"
        self._recorder.say(f"compiling the step: {self._phase.batch:,} {rows}")

    def push(self, step: int, report: Any, batch: Batch, flops: float) -> None:
        """Takes the report of step `step`, just dispatched, and reads those before it where one of them is due or READ_EVERY seconds have
        passed. flops: of one of its rows.

        One of several processes reads at every step: what a clock decides would differ between them, and a report may ask all of them for
        their rows.
        """
        self._bar.at(step)
        if self._compiling:
            self.events.resume("compile", step)
            self._compiling = False
        several = jax.process_count() > 1
        if self._pending and (several or self._is_due(self._pending[-1][0]) or time.monotonic() - self._read_at >= READ_EVERY):
            self.flush()
        self._pending.append((step, report, batch, flops))

    def flush(self) -> None:
        """Reads what is pending, waiting for the device."""
        pending, self._pending = self._pending, []
        reports = jax.device_get([report for _, report, *_ in pending])
        self._read_at = time.monotonic()
        for (step, _, batch, flops), report in zip(pending, reports, strict=True):
            self._read(step, report, batch, flops)

    def evaluated(self, step: int, numbers: Mapping[str, float]) -> None:
        """Writes an evaluation; the time it took is not counted as training."""
        self._recorder.row(step, "held_out", numbers)
        names = [name for name in numbers if not name.startswith(("padding", "mask_rate")) and not name.endswith("_predictions")]
        shown = "  ".join(f"{name} {numbers[name]:.4f}" for name in names)
        self._recorder.say(f"step {step:,} held out: {shown}")
        self._clock = None

    def say(self, line: str) -> None:
        """Prints a line on the terminal."""
        self._recorder.say(line)

    def _is_due(self, step: int) -> bool:
        """Whether a step has a row in metrics.jsonl."""
        return step in (1, self._steps) or step % self._config.every == 0

    def _read(self, step: int, report: Any, batch: Batch, flops: float) -> None:
        self.events.stepped(step)
        if self._config.examples or report["bad"]:
            rows = partition.all_rows({name: batch[name] for name in ("index", "epoch")}, self._mesh)
            if self._config.examples:
                self._recorder.rows_of_step(step, rows["index"], rows["epoch"])
            if report["bad"]:
                self._recorder.say(f"step {step} is not finite and skipped: rows {row_ids(rows['index'], rows['epoch'])}")
        self._bad_in_a_row = self._bad_in_a_row + 1 if report["bad"] else 0
        if self._bad_in_a_row >= self._stop_after_bad:
            raise Diverged(f"{self._bad_in_a_row} non-finite steps in a row up to step {step}")
        now = self._read_at
        if self._clock is None:
            self._clock, self._tokens, self._flops = (now, step), 0, 0.0
        else:
            self._tokens, self._flops = self._tokens + row_length(batch), self._flops + flops
        started, first = self._clock
        if not self._is_due(step):
            return
        rate = (step - first) * self._phase.batch / (now - started) if now > started else 0.0
        device = self._mesh.devices.flat[0].device_kind
        numbers = {
            "loss": float(report["loss"]),
            **self._objective.summary(report["metrics"]),
            "gradient_norm": float(report["gradient_norm"]),
            "lr": float(report["lr"]),
            "skipped": int(report["skipped"]),
        }
        if rate:
            # Those of a mean row: the steps since the last line may have rows of several lengths.
            tokens, flops = self._tokens / (step - first), self._flops / (step - first)
            numbers |= {"tokens_per_second": rate * tokens, "mfu": perf.utilisation(flops, rate, device, self._mesh.size)}
        self._recorder.row(step, "train", numbers)
        left = (self._steps - step) * self._phase.batch / rate if rate else 0.0
        self._recorder.say(progress(step, self._steps, numbers, left))
        self._clock, self._tokens, self._flops = (now, step), 0, 0.0
