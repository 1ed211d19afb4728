"""A command that trains, whose main thread is held in a call of C at one place until a file exists.

Arguments: the place (data, compile, evaluation, save), the file, then the command and its own. It prints `held` to stderr on getting there.
"""

import ctypes
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from jaxenc.checkpoint.manager import Manager
from jaxenc.cli import interrupted, main
from jaxenc.training import evaluate, loop, prepare, pretrain

PLACE, GO = sys.argv[1], Path(sys.argv[2])
C = ctypes.CDLL(None)


def hold(place: str) -> None:
    """No signal ends the call: Python runs its handlers once it has returned."""
    if place != PLACE:
        return
    mutex = ctypes.create_string_buffer(256)
    C.pthread_mutex_lock(mutex)

    def release() -> None:
        print("held", file=sys.stderr, flush=True)
        while not GO.exists():
            time.sleep(0.01)
        C.pthread_mutex_unlock(mutex)

    threading.Thread(target=release, daemon=True).start()
    C.pthread_mutex_lock(mutex)


def held(place: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any) -> Any:
        hold(place)
        return function(*args)

    return call


if __name__ == "__main__":
    interrupted.PATIENCE = 0.0
    prepare.check_data = held("data", prepare.check_data)
    compile_step = loop.compile_step
    loop.compile_step = lambda *args: held("compile", compile_step(*args))
    evaluate.zero_carry = held("evaluation", evaluate.zero_carry)
    pretrain.Manager = partial(Manager, stage=lambda name: hold("save") if name == "copied" else None)
    sys.exit(main.main(sys.argv[3:]))
