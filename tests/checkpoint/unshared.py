"""One of two processes that save at a URL and share nothing else.

Arguments: the folder of the object store, a folder for their caches, the URL.
"""

import os
import sys
from pathlib import Path

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from jaxenc.checkpoint.manager import Manager
from jaxenc.checkpoint.open_workdir import opened
from jaxenc.checkpoint.retention import CheckpointConfig
from jaxenc.processes import cluster, connection
from tests import bucket

# By name: shape, and over which of its axes it is split. `large` is held by all, and large enough that each writes a part of it.
ARRAYS = {"split": ((8, 4), ("all",)), "large": ((1024, 1024), ()), "number": ((), ()), "step": ((), ())}


def values(name: str, step: int) -> np.ndarray:
    shape, _ = ARRAYS[name]
    return step + np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


def state(step: int) -> dict[str, dict[str, jax.Array]]:
    mesh = Mesh(np.array(jax.devices()), ("all",))
    placed = {name: NamedSharding(mesh, PartitionSpec(*axes)) for name, (_, axes) in ARRAYS.items()}
    make = lambda name: jax.make_array_from_callback(ARRAYS[name][0], placed[name], lambda at: values(name, step)[at])
    return {"params": {name: make(name) for name in ARRAYS}}


def save(url: str) -> None:
    with opened(url, True) as (path, work):
        directory = path / "checkpoints"
        with Manager(directory, CheckpointConfig(keep=1), upload=work.upload(directory)) as checkpoints:
            for step in (1, 2):
                checkpoints.save(step, state(step), {"config.json": b"{}"})


if __name__ == "__main__":
    bucket.register(Path(sys.argv[1]))
    os.environ["JAXENC_CACHE"] = str(Path(sys.argv[2]) / os.environ["JAXENC_PROCESS"])
    with connection.joined(cluster.from_environment(os.environ), lambda error: 2):
        save(sys.argv[3])
