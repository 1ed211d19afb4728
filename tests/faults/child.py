"""A command that trains, which notes its stages in a file and, the n-th time that a stage ends, has an accident.

Stages: those of a save, `step` (a step has been dispatched) and `evaluation` (its first batch has been read; that of a task begins). The
file of notes also has a line `start` for each process. With JAXENC_TEST_BUCKET there is a `tests.bucket`, whose requests for a
CHECKSUMS.json are stages too: `put-begun`, `put-done`, `rm-begun`, `rm-done`. So are the uploads of the files that a fine-tuning ends
with: `answers-begun`, `answers-done`, `result-begun`, `result-done`, `results-begun`, `results-done`.

Arguments: file of notes, accident, stage, n, then the command and its own.
"""

import errno
import os
import resource
import signal
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

from jaxenc.checkpoint.manager import Manager
from jaxenc.checkpoint.verify import CHECKSUMS
from jaxenc.cli import main
from jaxenc.training import evaluate, loop, predict, pretrain, state
from tests import bucket, contexts

PREDICT = predict.predict
ENDS = {"dev.jsonl": "answers", "result.json": "result", "results.json": "results"}
NOTES, ACCIDENT, STAGE, COUNT = Path(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4])


def kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def interrupt_twice() -> None:
    """A person who will not wait: the second comes once the first has been taken."""
    os.kill(os.getpid(), signal.SIGINT)
    while signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        time.sleep(0.001)
    os.kill(os.getpid(), signal.SIGINT)


def no_quota() -> None:
    raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))


def size_limit() -> None:
    """No file grows beyond 30 kB: too little for the arrays of a nano run, and enough for the first lines of its logs."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, resource.RLIM_INFINITY))


def read_only() -> None:
    """Root loses its rights, for it may write anywhere."""
    (Path(sys.argv[sys.argv.index("--workdir") + 1]) / "checkpoints").chmod(0o555)
    if os.geteuid() == 0:
        os.seteuid(65534)


def nothing() -> None:
    pass


ACCIDENTS = {accident.__name__: accident for accident in (kill, interrupt_twice, no_quota, size_limit, read_only, nothing)}
seen = 0


def stage(name: str) -> None:
    global seen
    with NOTES.open("a") as notes:
        notes.write(f"{time.time():.3f} {name}\n")
    seen += name == STAGE
    if name == STAGE and seen == COUNT:
        ACCIDENTS[ACCIDENT]()


class Log(loop.Log):
    def push(self, *step: Any) -> None:
        super().push(*step)
        stage("step")


def zero_carry(*slots: Any) -> Any:
    stage("evaluation")
    return state.zero_carry(*slots)


def predict_rows(*given: Any) -> Any:
    stage("evaluation")
    return PREDICT(*given)


def request(kind: str, name: str, done: bool) -> None:
    name, state = name.rpartition("/")[2], "done" if done else "begun"
    if name == CHECKSUMS and kind in ("put", "rm"):
        stage(f"{kind}-{state}")
    if name in ENDS and kind == "put":
        stage(f"{ENDS[name]}-{state}")


if __name__ == "__main__":
    stage("start")
    if root := os.environ.get("JAXENC_TEST_BUCKET"):
        bucket.register(Path(root))
        bucket.Bucket.accident = staticmethod(request)
    contexts.reuse()
    loop.Log, evaluate.zero_carry, predict.predict = Log, zero_carry, predict_rows
    pretrain.Manager = partial(Manager, stage=stage)
    sys.exit(main.main(sys.argv[5:]))
