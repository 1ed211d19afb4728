"""Several real processes under `launch/local.sh`, to be killed, stopped and signalled."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[2]
LAUNCHER = ROOT / "launch" / "local.sh"
PRETRAIN = (sys.executable, "-m", "tests.faults.caching", "pretrain")


def note_of(notes: Path, rank: int | str, number: int) -> Path:
    """The file with the id of the process that sent itself signal `number` of process `rank`, as tests/faults/signals.py writes it."""
    return notes / f"{rank}-{number}"


class Gang:
    """Owner of a launcher and, through it, of its processes."""

    def __init__(self, procs: int, devices: int, command: tuple[object, ...], **environment: str) -> None:
        self._procs = procs
        inherited = {**os.environ, "PYTHON": sys.executable}
        self._launcher = subprocess.Popen(
            ["bash", str(LAUNCHER), "--procs", str(procs), "--devices-per-proc", str(devices), "--", *map(str, command)],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", env={**inherited, **environment},
        )  # fmt: skip
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        for line in self._launcher.stdout:
            self.lines.append(line.rstrip("\n"))

    @property
    def said(self) -> str:
        """Everything that was printed so far."""
        return "\n".join(self.lines)

    def wait_for(self, pattern: str, limit: float = 120) -> None:
        """Returns once a line matches."""
        self.until(lambda: any(re.search(pattern, line) for line in list(self.lines)), pattern, limit)

    def until(self, condition: Callable[[], bool], what: str, limit: float = 60) -> None:
        """Returns once `condition` holds; AssertionError after `limit` seconds or when everything has ended."""
        end = time.monotonic() + limit
        while not condition():
            assert time.monotonic() < end and self._launcher.poll() is None, f"no {what}:\n{self.said}"
            time.sleep(0.01)

    def pid(self, rank: int) -> int:
        """The process with this number."""
        children = Path(f"/proc/{self._launcher.pid}/task/{self._launcher.pid}/children").read_text().split()
        for child in children:
            if f"JAXENC_PROCESS={rank}".encode() in Path(f"/proc/{child}/environ").read_bytes().split(b"\0"):
                return int(child)
        raise AssertionError(f"no process {rank}:\n{self.said}")

    def send(self, rank: int, number: signal.Signals) -> None:
        os.kill(self.pid(rank), number)

    def signal(self, number: signal.Signals) -> None:
        """Sends a signal to the launcher."""
        self._launcher.send_signal(number)

    def end(self, limit: float = 120) -> int:
        """Waits for the launcher and returns its exit code; what is left after `limit` seconds is killed."""
        try:
            return self._launcher.wait(limit)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still running after {limit} s:\n{self.said}") from None
        finally:
            self.kill()

    def kill(self) -> None:
        """Kills every process that is left, each by its number."""
        if self._launcher.poll() is None:
            for rank in range(self._procs):
                with contextlib.suppress(AssertionError, OSError):
                    self.send(rank, signal.SIGKILL)
            self._launcher.kill()
            self._launcher.wait()
        self._reader.join(5)
        self._launcher.stdout.close()

    def __enter__(self) -> "Gang":
        return self

    def __exit__(self, *raised: object) -> None:
        self.kill()
