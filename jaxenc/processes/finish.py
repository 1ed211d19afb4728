"""The end of several processes: none leaves while a device of another still waits for one of its devices."""

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from jaxenc.processes.barriers import barrier


def finish(seconds: float) -> None:
    """Returns once all devices of all processes have done what was dispatched. Raises as `barrier`, which all reach within `seconds`.

    A replicated result is read from the first device of this process, while the others may still compute it: with Gloo, they may still be
    connecting to another process. Where that process has ended meanwhile, they wait for it and this process never exits (6 of 47 pairs of
    processes with 8 CPU devices each, jax 0.10.2). So every process waits here for a last sum over all devices, on each of its own.
    """
    barrier("the end", seconds)
    mesh = Mesh(np.array(jax.devices()), "all")
    ones = jax.make_array_from_callback((mesh.size,), NamedSharding(mesh, PartitionSpec("all")), lambda _: np.ones(1, np.int32))
    jax.jit(lambda numbers: numbers.sum(), out_shardings=NamedSharding(mesh, PartitionSpec()))(ones).block_until_ready()
