"""Shows the wait for a compilation, and how long the same one took on this machine before."""

import contextlib
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import jax

from jaxenc import cache
from jaxenc.config import fingerprint, to_dict
from jaxenc.files import json_object, write_bytes
from jaxenc.progress import clock
from jaxenc.training.job import Job

P, R = ParamSpec("P"), TypeVar("R")
NAME = "compile_seconds.json"  # in the cache folder
SHORT = 3.0  # seconds: shorter waits need no forecast; programs from JAX's cache come within them
MOST = 256  # compilations that are remembered: the newest


def shown(job: Job, what: str, rows: int, length: int, compiled: Callable[P, R]) -> Callable[P, R]:
    """`compiled`, a jitted function, with a bar during its first call, which compiles it, that says how long this took the last time.

    what: what is compiled, such as `the step`, for batches of `rows` rows of `length` tokens.
    """
    waited = False

    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        nonlocal waited
        if waited:
            return compiled(*args, **kwargs)
        waited = True
        key = _key(job, what, rows, length)
        known = seconds().get(key, 0.0)
        title = f"compiling {what}: {rows:,} rows of {length:,} tokens"
        with job.bars.shown(title, hint=f"took {clock(known)} last time" if known else ""):
            started = time.monotonic()
            result = compiled(*args, **kwargs)
            _remember(key, time.monotonic() - started)
        return result

    return call


def seconds() -> dict[str, float]:
    """{compilation: seconds that it took on this machine}; {} where nothing is known."""
    with contextlib.suppress(OSError, RuntimeError, ValueError):  # RuntimeError: a user without a home
        return {key: float(value) for key, value in json_object(_path().read_bytes()).items()}
    return {}


def _path() -> Path:
    return cache.root() / NAME


def _key(job: Job, what: str, rows: int, length: int) -> str:
    """What decides how long a compilation takes: program, shapes, devices and versions."""
    device, run = job.mesh.devices.flat[0], job.run
    facts: list[Any] = [what, rows, length, to_dict(run.model), to_dict(run.objective)]
    facts += [run.train.microbatches, run.train.precision, run.train.remat, run.train.attention, run.train.scan]
    return fingerprint([*facts, dict(job.mesh.shape), device.device_kind, jax.__version__])[:16]


def _remember(key: str, took: float) -> None:
    """Adds a compilation. What cannot be written is not remembered."""
    if took < SHORT or jax.process_index():
        return
    with contextlib.suppress(OSError, RuntimeError):
        kept = dict([*((one, value) for one, value in seconds().items() if one != key), (key, round(took, 1))][-MOST:])
        _path().parent.mkdir(parents=True, exist_ok=True)
        write_bytes(_path(), json.dumps(kept, indent=1).encode())
