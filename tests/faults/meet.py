"""One of several processes that do nothing but meet: `python -m tests.faults.meet ACTION`, with the environment of launch/local.sh."""

import os
import signal
import sys
import time

from jaxenc.errors import UserError
from jaxenc.sharding import multihost
from jaxenc.sharding.multihost import barrier, from_primary

rank = int(os.environ["JAXENC_PROCESS"])
multihost.TELL = 1


def refuse() -> None:
    raise UserError("no such folder")


def act(action: str) -> None:
    if action == "value":
        answers = [from_primary(name, lambda name=name: [rank, name]) for name in ("first", "second", "first")]
        print(answers, flush=True)
    if action == "error":
        from_primary("first", refuse)
    if action == "absent":
        if rank == 2:
            time.sleep(30)
        barrier("the door", 2.5)
    if action.startswith("killed"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        barrier("all here", 30)
        if rank == int(action[-1]):
            os.kill(os.getpid(), signal.SIGKILL)
        barrier("the door", 60)
    if action == "late":
        time.sleep(2.5 * (rank == 1))
        barrier("the door", 30)
        barrier("the stairs", 30)
        print("through", flush=True)


def told(error: BaseException) -> int:
    print(f"{type(error).__name__}: {error}", flush=True)
    return 2


with multihost.joined(multihost.from_environment(os.environ), told):
    act(sys.argv[1])
