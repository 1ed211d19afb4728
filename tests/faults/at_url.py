"""Commands whose work directory is at a URL of `tests.bucket`, in one process or in two that share nothing else."""

import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.faults.gang import ROOT

CHILD = ROOT / "tests" / "faults" / "child.py"
NONE = ("nothing", "-", 1)
LIMIT = 600  # seconds


def with_devices(count: int) -> dict[str, str]:
    """The environment of a process with `count` devices."""
    return {"XLA_FLAGS": os.environ["XLA_FLAGS"].replace("device_count=8", f"device_count={count}")}


def start(command: Sequence[object], notes: Path, accident: Sequence[object] = NONE, **environment: str) -> subprocess.Popen:
    """One process of a command, as `tests/faults/child.py` says."""
    given = [sys.executable, *map(str, (CHILD, notes, *accident, *command))]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    return subprocess.Popen(given, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace", env=environment)


def lived(command: Sequence[object], notes: Path, *accident: object, **environment: str) -> str:
    """What a process says until the accident that kills it, or until its end."""
    with start(command, notes, accident or NONE, **environment) as process:
        said = process.communicate(timeout=LIMIT)[1]
    assert process.returncode == (-9 if accident else 0), said
    return said


def free_port() -> int:
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as server:
        return server.getsockname()[1]


@contextlib.contextmanager
def two(command: Sequence[object], folder: Path, accident: Sequence[object] = NONE, devices: int = 4) -> Iterator[list[subprocess.Popen]]:
    """Two processes with `devices` devices and an empty cache each, as on machines without a shared disk; process 0 has the accident."""
    folder.mkdir()
    common = {"JAXENC_COORDINATOR": f"127.0.0.1:{free_port()}", "JAXENC_PROCESSES": "2"}
    common |= with_devices(devices)
    gang = []
    for rank in (0, 1):
        own = {"JAXENC_PROCESS": str(rank), "JAXENC_CACHE": str(folder / f"cache-{rank}")}
        gang.append(start(command, folder / f"notes-{rank}", NONE if rank else accident, **common, **own))
    try:
        yield gang
    finally:
        for process in gang:
            process.kill()
            process.communicate()


def ended(gang: list[subprocess.Popen]) -> tuple[list[int], list[str]]:
    """(exit codes, what they said) of all processes."""
    said = [process.communicate(timeout=LIMIT)[1] for process in gang]
    return [process.returncode for process in gang], said
