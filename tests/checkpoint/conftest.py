"""A small state with every kind of branch that a run's state has, and a saved step of it."""

import functools
import shutil
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jaxenc.checkpoint.manager import Manager
from jaxenc.checkpoint.retention import CheckpointConfig


@functools.cache
def make_state(seed: int) -> dict:
    """Parameters, optax moments with empty NamedTuples, an empty carry and int32 scalars; random bits, so a swapped array is seen."""
    rng = np.random.default_rng(seed)
    params = {"encoder": {"kernel": _floats(rng, 8, 24), "bias": _floats(rng, 8)}, "head": {"kernel": _floats(rng, 8, 5)}}
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.scale_by_adam(), optax.add_decayed_weights(0.1))
    moments = optimizer.update(params, optimizer.init(params), params)[1]
    memory = jnp.asarray(rng.standard_normal((4, 6)), jnp.bfloat16)
    return {
        "step": jnp.int32(seed),
        "params": params,
        "frozen": {"embed": {"table": _floats(rng, 16, 8)}},
        "moments": moments,
        "carry": {"memory": memory, "none": {}},
        "skipped": jnp.int32(0),
    }


def _floats(rng: np.random.Generator, *shape: int) -> jax.Array:
    return jnp.asarray(rng.standard_normal(shape), jnp.float32)


def abstract(tree: dict) -> dict:
    return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=leaf.sharding), tree)


def save_all(directory: Path, numbers: list[int], config: CheckpointConfig = CheckpointConfig()) -> None:
    with Manager(directory, config) as manager:
        for number in numbers:
            manager.save(number, make_state(number), {"config.json": b'{"a": 1}'})


@pytest.fixture(scope="session")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("saved") / "checkpoints"
    save_all(directory, [1, 2])
    return directory


@pytest.fixture
def checkpoints(saved: Path, tmp_path: Path) -> Path:
    """A directory with the finished steps 1 and 2."""
    return Path(shutil.copytree(saved, tmp_path / "checkpoints"))
