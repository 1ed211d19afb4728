"""One answer of all processes to whether they stop, without waiting for it."""

import jax
import numpy as np
from jax import Array
from jax.sharding import Mesh, NamedSharding, PartitionSpec


class Agreement:
    """Whether all processes stop here: owner of the one question that is still on the devices.

    Asked by every process after every step and before every batch of an evaluation. Each question is an `or` over the devices of all
    processes, dispatched at once and read when the next one is asked: nobody waits for it, and no process can miss it or hear another
    answer. jax's own `reached_preemption_sync_point` takes SIGTERM for itself and, asked at some steps only, lets a run go on forever
    (measured).
    """

    def __init__(self, mesh: Mesh) -> None:
        self._shards = NamedSharding(mesh, PartitionSpec(mesh.axis_names))
        self._size = mesh.size
        self._any = jax.jit(lambda votes: votes.any(), out_shardings=NamedSharding(mesh, PartitionSpec()))
        self._pending: Array | None = None

    def agreed(self, requested: bool) -> bool:
        """Whether any process said `requested` one call ago, the same in all of them; a process that is alone is answered at once."""
        if jax.process_count() == 1:
            return requested
        vote = np.full(1, requested)
        votes = jax.make_array_from_callback((self._size,), self._shards, lambda _: vote)
        previous, self._pending = self._pending, self._any(votes)
        return previous is not None and bool(previous)
