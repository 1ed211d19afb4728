"""One of several processes that do nothing but meet: `python -m tests.faults.meet ACTION`, with the environment of launch/local.sh."""

import itertools
import os
import signal
import sys
import time
from pathlib import Path

from jaxenc.errors import UserError
from jaxenc.processes import barriers, cluster, connection
from jaxenc.processes.barriers import barrier, from_primary, must_be_equal
from jaxenc.processes.watch import Watch

rank = int(os.environ["JAXENC_PROCESS"])
barriers.TELL, barriers.LIMIT = 1, 4


def refuse() -> None:
    raise UserError("no such folder")


def save(hangs: str) -> None:
    """A checkpoint of one number, in which process 1 never comes to the barriers whose names begin with `hangs`."""
    # The others do without these, which take longer to import than all they do.
    import jax
    import numpy as np

    from jaxenc.checkpoint.manager import Manager
    from jaxenc.checkpoint.retention import CheckpointConfig
    from jaxenc.sharding import mesh as meshes
    from jaxenc.sharding import partition

    barrier("imported", 120)

    def meet(name: str, seconds: float = barriers.LIMIT) -> None:
        time.sleep(60 * (rank == 1 and name.startswith(hangs)))
        barrier(name, seconds)

    barriers.barrier = meet
    everywhere = partition.replicated(meshes.make(meshes.MeshConfig()))
    number = jax.make_array_from_callback((), everywhere, lambda _: np.float32(1))
    with Manager(Path(sys.argv[2]), CheckpointConfig()) as checkpoints:
        checkpoints.save(1, {"number": number}, {})


def fall_behind() -> None:
    with Watch() as watch:
        for place in ("step 1", "step 2"):
            time.sleep(60 * (rank == 1 and place == "step 2"))
            watch.at(place)
        time.sleep(60)


def act(action: str) -> None:
    if action == "together":
        numbers = itertools.count(10 * rank)
        print([from_primary(name, lambda: next(numbers)) for name in ("first", "second", "first")], flush=True)
        time.sleep(2.5 * (rank == 1))
        for name in ("the door", "the stairs", "the door"):
            barrier(name, 30)
        print("through", flush=True)
        must_be_equal("facts", {"all": (1, 2)}, "say the same")
        try:
            must_be_equal("facts", {"all": 1, "each": {"rank": rank}}, "say the same")
        except UserError as error:
            told(error)
        from_primary("last", refuse)
    if action == "each":
        barrier("all here", 120)
        time.sleep(0.5 * (rank == 1))
        refuse()
    if action == "absent":
        if rank == 2:
            time.sleep(30)
        barrier("the door", 2.5)
    if action == "behind":
        fall_behind()
    if action.startswith("save"):
        save(action.removeprefix("save "))
    if action.startswith("killed"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        barrier("all here", 120)
        print("all here", flush=True)
        if rank == int(action[-1]):
            os.kill(os.getpid(), signal.SIGKILL)
        barrier("the door", 60)


def told(error: BaseException) -> int:
    print(f"{type(error).__name__}: {error}", flush=True)
    return 2


with connection.joined(cluster.from_environment(os.environ), told):
    act(sys.argv[1])
