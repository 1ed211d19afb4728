"""`jaxenc pretrain`, whose process RANK stands still at PLACES, each once in a run.

Arguments: RANK, PLACE,PLACE,..., `stopped` (a SIGSTOP) or `hung` (only the thread that comes there), a folder that notes who stands
where, seconds between two lines about who is awaited, seconds after which a process that is behind ends the others; then those of
`jaxenc pretrain`. Places: restore, data, save, written (the arrays of a save, before the others know), data-again.
"""

import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jaxenc.checkpoint import arrays, manager
from jaxenc.cli import main
from jaxenc.sharding import multihost
from jaxenc.train import read

RANK, PLACES, HOW, NOTES, TELL, LIMIT = sys.argv[1:7]
BATCHES = {3: "data", 13: "data-again"}


def stand(place: str) -> None:
    """Stands still here, where this process was told to and has not yet."""
    note = Path(NOTES) / place
    if os.environ["JAXENC_PROCESS"] == RANK and place in PLACES.split(",") and not note.exists():
        note.write_text(str(os.getpid()))
        if HOW == "stopped":
            os.kill(os.getpid(), signal.SIGSTOP)
        else:
            threading.Event().wait()


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
        stand(BATCHES[batches])


def met(name: str, *args: Any) -> None:
    if name.startswith("Orbax async_write_complete"):
        stand("written")


if __name__ == "__main__":
    batches = 0
    multihost.TELL, multihost.LIMIT = float(TELL), int(LIMIT)
    first(arrays, "read", lambda *args: stand("restore"))
    first(read, "check_ranges", batch_read)
    first(manager.Manager, "save", lambda *args: stand("save"))
    first(multihost, "barrier", met)
    sys.exit(main.main(["pretrain", *sys.argv[7:]]))
