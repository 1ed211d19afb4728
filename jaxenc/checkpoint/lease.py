"""Which process may write to a folder at a URL. An object store has no locks: a small file names the owner, which keeps rewriting it.

What it guarantees: a second process that starts while the first one lives is refused, unless both start at the same moment. One of those
then reads the other's token, before its next checkpoint at the latest, and ends. A process that was suspended for longer than STALE may
have been replaced, and ends at its next look. Clocks of different machines are never compared.
"""

import contextlib
import json
import os
import secrets
import socket
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jaxenc.errors import UserError
from jaxenc.files import json_object
from jaxenc.storage import Folder

NAME = ".lease.json"
# Seconds between two writes of the owner, and without one until it counts as dead.
REFRESH, STALE = 15.0, 60.0
BUSY = "wait for it, or choose another --workdir"  # advice while another process writes to the work directory


class Lease:
    """Owner of the right to write to `folder`, and of the thread that renews it; use it in a `with` block. token: names this owner."""

    def __init__(self, folder: Folder, refresh: float = REFRESH, stale: float = STALE) -> None:
        """Takes the lease. Raises UserError while another process has it, and for a folder that cannot be written to.

        The lease of a process that died on this machine is taken at once, any other after `stale` seconds without a sign of life.
        """
        self._folder, self._refresh, self._stale = folder, refresh, stale
        self.token, self._count, self._lost = secrets.token_hex(8), 0, False
        self._end = threading.Event()
        found = self._read()
        if found and not _is_dead(found):
            self._watch(found)
        self._write()
        self.confirm()
        self._thread = threading.Thread(target=self._keep, name="lease", daemon=True)
        self._thread.start()

    def check(self) -> None:
        """Raises UserError where the thread has seen another owner; sends no request."""
        if self._lost:
            raise UserError("another process has begun to write here", self._folder.url, BUSY)

    def confirm(self) -> None:
        """Reads the lease and raises UserError as `check`."""
        if self._read().get("owner") != self.token:
            self._lost = True
        self.check()

    def _keep(self) -> None:
        while not self._end.wait(self._refresh):
            # A request that fails now may succeed a moment later; a save reports it otherwise.
            with contextlib.suppress(UserError):
                self.confirm()
                self._write()
            if self._lost:
                return

    def _watch(self, found: dict[str, Any]) -> None:
        """Returns once the owner of a lease counts as dead or has released it. Raises UserError where it lives."""
        who = f"process {found.get('pid')} on {found.get('host')}"
        taken = UserError(f"another process is writing here ({who})", self._folder.url, BUSY)
        if _is_here(found):
            raise taken
        line = f"{who} was writing here: waiting {self._stale:g} s for a sign of life"
        print(f"{self._folder.url}: {line}", file=sys.stderr, flush=True)
        until = time.monotonic() + self._stale
        while time.monotonic() < until:
            time.sleep(min(1.0, self._stale / 10))
            now = self._read()
            if not now:
                return
            if now != found:
                raise taken

    def _read(self) -> dict[str, Any]:
        """The lease, {} where there is none, or none that can be read: a file system that is not an object store may show half of one."""
        with contextlib.suppress(FileNotFoundError, ValueError):
            return json_object(self._folder.read(NAME))
        return {}

    def _write(self) -> None:
        self._count += 1
        self._folder.write(NAME, json.dumps({"owner": self.token, "count": self._count, **_identity()}).encode())

    def close(self) -> None:
        """Deletes the lease if this owner still has it."""
        self._end.set()
        self._thread.join()
        with contextlib.suppress(UserError):
            self.confirm()
            self._folder.remove([NAME])

    def __enter__(self) -> "Lease":
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()


def owner(folder: Folder) -> str:
    """The token of the lease at a folder, '' where there is none."""
    with contextlib.suppress(FileNotFoundError, ValueError):
        return str(json_object(folder.read(NAME)).get("owner", ""))
    return ""


def _identity() -> dict[str, Any]:
    """Identifies this process: the machine since its boot, the namespace of process ids, the id, and the time of its start."""
    return {"host": socket.gethostname(), "machine": list(_machine()), "pid": os.getpid(), "began": _began(os.getpid())}


def _machine() -> Iterator[str]:
    """The boot id and the pid namespace, '' where the system does not say."""
    for read in (lambda: Path("/proc/sys/kernel/random/boot_id").read_text().strip(), lambda: os.readlink("/proc/self/ns/pid")):
        try:
            yield read()
        except OSError:
            yield ""


def _began(pid: int) -> str:
    """When a process of this machine started, in ticks since boot; '' where there is no such process."""
    with contextlib.suppress(OSError):
        # Field 22; field 2, a name in parentheses, may hold spaces.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    return ""


def _is_here(found: dict[str, Any]) -> bool:
    """Whether the owner of a lease is in this machine's namespace of process ids."""
    return all(_machine()) and (found.get("host"), found.get("machine")) == (socket.gethostname(), list(_machine()))


def _is_dead(found: dict[str, Any]) -> bool:
    """Whether the owner of a lease has certainly ended."""
    return _is_here(found) and isinstance(found.get("pid"), int) and _began(found["pid"]) != found.get("began")
