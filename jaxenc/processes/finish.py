"""How several processes come to their end: none leaves while a device of another still waits for one of its own."""

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from jaxenc.processes.barriers import barrier


def finish(seconds: float) -> None:
    """Returns once all devices of all processes have done what was dispatched. Raises as `barrier`, to which all come within `seconds`.

    A result that all devices hold is read from the first of this process, while the others may still be at it: with Gloo, still connecting
    to those of another process for the first time. Where that one has ended meanwhile, they wait for it and this process never exits (6 of
    47 pairs of processes with 8 CPU devices each, jax 0.10.2). So all come here, where one sum over all devices, the last of their
    collectives, is awaited on each.
    """
    barrier("the end", seconds)
    mesh = Mesh(np.array(jax.devices()), "all")
    ones = jax.make_array_from_callback((mesh.size,), NamedSharding(mesh, PartitionSpec("all")), lambda _: np.ones(1, np.int32))
    jax.jit(lambda numbers: numbers.sum(), out_shardings=NamedSharding(mesh, PartitionSpec()))(ones).block_until_ready()
