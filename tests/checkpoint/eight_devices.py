"""On 8 devices: restores step 1 with its matrices split over them, compares it, and saves it as step 2."""

import sys
from pathlib import Path

import jax
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from jaxenc.checkpoint.manager import Manager
from jaxenc.checkpoint.restore import restore_state
from jaxenc.checkpoint.retention import CheckpointConfig
from tests.checkpoint.conftest import make_state

mesh = jax.make_mesh((8,), ("fsdp",), axis_types=(jax.sharding.AxisType.Auto,))
expected = make_state(1)


def split(leaf: jax.Array) -> jax.ShapeDtypeStruct:
    spec = PartitionSpec("fsdp") if leaf.ndim and leaf.shape[0] % 8 == 0 else PartitionSpec()
    return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=NamedSharding(mesh, spec))


wanted = jax.tree.map(split, expected)
state = restore_state(Path(sys.argv[1]) / "1", wanted)
for leaf, want, original in zip(*map(jax.tree.leaves, (state, wanted, expected)), strict=True):
    assert leaf.sharding == want.sharding
    assert np.asarray(leaf).tobytes() == np.asarray(original).tobytes()
assert len(state["params"]["encoder"]["kernel"].addressable_shards) == 8
with Manager(Path(sys.argv[1]), CheckpointConfig()) as manager:
    manager.save(2, state, {"config.json": b"{}"})
