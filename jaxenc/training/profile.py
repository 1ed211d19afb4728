"""The trace of some steps of a run, by jax.profiler, for TensorBoard and Perfetto."""

import contextlib
import pathlib
import shlex
from types import TracebackType
from typing import Any, NamedTuple, Self

import jax

from jaxenc import storage
from jaxenc.errors import UserError
from jaxenc.files import user_errors
from jaxenc.processes import barriers

FOLDER = "profile"  # in the work directory
TRACE = "perfetto_trace.json.gz"
STEP = "step"  # the name of a step in the trace, which has its number as `step_num`
MOST = 100  # steps: the trace of more is slow to open, and of a large model gigabytes
OPTION = "--profile-steps"


class Steps(NamedTuple):
    """Steps first to last, both traced; (0, 0) for none."""

    first: int = 0
    last: int = 0


def parse(text: str) -> Steps:
    """`A:B` as steps, '' as none. Raises UserError."""
    first, colon, last = text.partition(":")
    if not text:
        return Steps()
    if not (colon and all(part.isascii() and part.isdigit() and len(part) < 10 for part in (first, last))):
        raise UserError("not two steps", f"{OPTION} {text}", "write the first and the last step, as in 10:14")
    found = Steps(int(first), int(last))
    if not found.first <= found.last < found.first + MOST:
        raise UserError(f"not 1 to {MOST} steps", f"{OPTION} {text}", "write the first and the last step, as in 10:14")
    return found


def check(steps: Steps, start: int, end: int) -> None:
    """Raises UserError for steps that a run from step `start` to step `end` does not take, and for its first, which compiles."""
    if not steps.last:
        return
    where = f"{OPTION} {steps.first}:{steps.last}"
    if end < start + 2:
        raise UserError(f"the run has {end - start} steps left, and the first one compiles", where, "leave it out, or raise train.steps")
    if steps.first < start + 2 or steps.last > end:
        fix = f"name steps of {start + 2} to {end}"
        raise UserError(f"the run takes steps {start + 1} to {end}, and compiles before the first", where, fix)


def how_to_open(workdir: str | pathlib.Path) -> str:
    """Lines that say how to open the newest trace in a work directory, a path or a URL; '' where there is none."""
    folder = storage.below(workdir, FOLDER)
    if storage.is_url(workdir):
        found = [name for name in storage.folder(folder).files() if name.endswith(TRACE)]
        return f"profile: {folder}   (copy it to a machine with a browser: tensorboard --logdir COPY)" if found else ""
    traces = sorted(pathlib.Path(folder).glob(f"plugins/profile/*/{TRACE}"))
    if not traces:
        return ""
    board = f"tensorboard --logdir {shlex.quote(folder)}   (pip install tensorboard xprof; the tab Profile)"
    return f"profile: {board}\nprofile: {traces[-1]}   (open it at https://ui.perfetto.dev; it stays on your machine)"


class Profiler:
    """Owner of the trace. Outside process 0, and without steps to trace, it only names each step."""

    def __init__(self, steps: Steps, workdir: pathlib.Path) -> None:
        self._steps, self._folder, self._tracing = steps, workdir / FOLDER, False
        self._wanted = bool(steps.last) and barriers.is_primary()

    def step(self, step: int) -> contextlib.AbstractContextManager[Any]:
        """A context manager for taking `step`; the call for the first of the steps to trace starts the trace."""
        if self._wanted and step == self._steps.first:
            with user_errors(self._folder, "free some space"):
                self._folder.mkdir(parents=True, exist_ok=True)
                options = jax.profiler.ProfileOptions()
                options.python_tracer_level = 0  # every call of Python would slow the steps and fill the trace
                jax.profiler.start_trace(str(self._folder), create_perfetto_trace=True, profiler_options=options)
            self._tracing = True
        return jax.profiler.StepTraceAnnotation(STEP, step_num=step)

    def taken(self, step: int, report: Any) -> None:
        """To be called when `step` was dispatched. For the last of the steps to trace it waits for the device and writes the trace."""
        if self._tracing and step == self._steps.last:
            jax.block_until_ready(report)
            self.close()

    def close(self) -> None:
        """Writes what was traced."""
        if self._tracing:
            self._tracing = False
            with user_errors(self._folder, "free some space"):
                jax.profiler.stop_trace()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()
