"""`jaxenc pretrain`, one of several processes, which sends itself signals, each once in all its lives and in their order.

Arguments: a folder that notes which have been sent; seconds between two lines about who is awaited; the signals, RANK:PLACE:NAME with
commas between them; then those of `jaxenc pretrain`. Places: `restore` and `save` (as they begin), `data-N` (this process has read its
Nth batch), `step-N` (step N has been dispatched), `files` (a save has written its files).
"""

import os
import signal
import sys
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from jaxenc.checkpoint import arrays, manager
from jaxenc.cli import main
from jaxenc.processes import barriers
from jaxenc.training import loop, pretrain, read
from tests.faults.caching import keep
from tests.faults.gang import note_of

NOTES, TELL, SIGNALS = sys.argv[1:4]
BATCHES = count(1)


def at(place: str) -> None:
    """Sends what is next for this process, where it is for this place."""
    rank = os.environ["JAXENC_PROCESS"]
    own = [words for words in (one.split(":") for one in SIGNALS.split(",")) if words[0] == rank]
    sent = len(list(Path(NOTES).glob(f"{rank}-*")))
    if sent < len(own) and own[sent][1] == place:
        note_of(Path(NOTES), rank, sent).write_text(str(os.getpid()))
        os.kill(os.getpid(), getattr(signal, f"SIG{own[sent][2]}"))


def first(owner: Any, name: str, before: Callable[..., None]) -> None:
    """`owner.name` calls `before` with its arguments first."""
    function = getattr(owner, name)

    def wrapped(*args: Any, **named: Any) -> Any:
        before(*args)
        return function(*args, **named)

    setattr(owner, name, wrapped)


if __name__ == "__main__":
    keep()
    barriers.TELL = float(TELL)
    first(arrays, "read", lambda *args: at("restore"))
    first(read, "check_ranges", lambda *args: at(f"data-{next(BATCHES)}"))
    first(loop.Log, "push", lambda log, step, *rest: at(f"step-{step}"))
    first(manager.Manager, "save", lambda *args: at("save"))
    pretrain.Manager = partial(manager.Manager, stage=at)
    sys.exit(main.main(["pretrain", *sys.argv[4:]]))
