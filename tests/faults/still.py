"""`jaxenc pretrain`, whose process RANK stops itself (SIGSTOP) in a restore, in its data, in a save and in its data again, each time once.

Arguments: RANK, a folder that notes who has stopped where, seconds between two lines about who is awaited; then those of
`jaxenc pretrain`.
"""

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jaxenc.checkpoint import arrays, manager
from jaxenc.cli import main
from jaxenc.processes import barriers
from jaxenc.training import read

RANK, NOTES, TELL = sys.argv[1:4]
# Behind the first steps: at the first collective of a program Gloo waits for the other processes for 30 s and no longer.
BATCHES = {8: "data", 18: "data-again"}


def stop(place: str) -> None:
    """Stops here, where this process is the one and has not yet."""
    note = Path(NOTES) / place
    if os.environ["JAXENC_PROCESS"] == RANK and not note.exists():
        note.write_text(str(os.getpid()))
        os.kill(os.getpid(), signal.SIGSTOP)


def first(owner: Any, name: str, before: Callable[..., None]) -> None:
    """`owner.name` calls `before` with its arguments first."""
    function = getattr(owner, name)

    def wrapped(*args: Any, **named: Any) -> Any:
        before(*args)
        return function(*args, **named)

    setattr(owner, name, wrapped)


def batch_read(*args: Any) -> None:
    global batches
    batches += 1
    if batches in BATCHES:
        stop(BATCHES[batches])


if __name__ == "__main__":
    batches = 0
    barriers.TELL = float(TELL)
    first(arrays, "read", lambda *args: stop("restore"))
    first(read, "check_ranges", batch_read)
    first(manager.Manager, "save", lambda *args: stop("save"))
    sys.exit(main.main(["pretrain", *sys.argv[4:]]))
