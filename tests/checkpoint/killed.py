"""Saves step 3 of a directory and kills its own process as soon as the named stage has ended."""

import os
import signal
import sys
from pathlib import Path

from jaxenc.checkpoint.manager import Manager
from jaxenc.checkpoint.retention import CheckpointConfig
from tests.checkpoint.conftest import make_state


def die(stage: str) -> None:
    if stage == sys.argv[2]:
        os.kill(os.getpid(), signal.SIGKILL)


with Manager(Path(sys.argv[1]), CheckpointConfig(keep=2), stage=die) as manager:
    manager.save(3, make_state(3), {"config.json": b"{}"})
