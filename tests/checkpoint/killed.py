"""Saves step 3 of each directory in a child process of its own, which kills itself as soon as a stage has ended.

Arguments: a folder; its directories have the names of the stages. Prints one line for each: stage and how the child ended, as
`os.waitstatus_to_exitcode` says. All is imported once; jax starts in the children, so that none has threads when it is forked.
"""

import os
import signal
import sys
from pathlib import Path

from jaxenc.checkpoint.manager import Manager
from jaxenc.checkpoint.retention import CheckpointConfig
from tests.checkpoint.conftest import make_state


def save(directory: Path) -> None:
    def die(stage: str) -> None:
        if stage == directory.name:
            os.kill(os.getpid(), signal.SIGKILL)

    with Manager(directory, CheckpointConfig(keep=2), stage=die) as manager:
        manager.save(3, make_state(3), {"config.json": b"{}"})


for directory in Path(sys.argv[1]).iterdir():
    child = os.fork()
    if not child:
        save(directory)
        os._exit(0)
    print(directory.name, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
