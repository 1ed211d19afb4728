"""Which path of a checkpoint a parameter is read from."""

from pathlib import Path

import jax
import numpy as np
import pytest

from jaxenc.checkpoint import moved
from jaxenc.checkpoint.restore import restore_params

from .conftest import make_state
from .test_manager import same_bits


@pytest.mark.parametrize(
    "path, want",
    [
        ("discriminator/encoder/kernel", "generator/encoder/kernel"),
        ("discriminator", "generator"),
        ("discriminators/kernel", "discriminators/kernel"),
        ("generator/embeddings/token/table", "embeddings/token/table"),
        ("generator/embeddings_too", "other/embeddings_too"),
        ("embeddings/token/table", "embeddings/token/table"),
    ],
)
def test_whole_names_and_the_longest_prefix(path: str, want: str) -> None:
    pairs = moved.parse(["discriminator=generator", "generator=other", "generator/embeddings=embeddings"])
    assert moved.origin(path, pairs) == want == moved.origin(path, pairs[::-1])


def test_two_parameters_of_one_path_are_two_arrays(checkpoints: Path) -> None:
    """The state of a step is donated, and an array cannot be given away twice."""
    state = make_state(2)
    leaf = lambda like: jax.ShapeDtypeStruct(like.shape, like.dtype)
    wanted = jax.tree.map(leaf, {"encoder": state["params"]["encoder"], "copy": state["params"]["encoder"]})
    found = restore_params(checkpoints / "2", wanted, (("copy", "encoder"),))
    assert same_bits(found, {"encoder": state["params"]["encoder"], "copy": state["params"]["encoder"]})
    kernels = [found[name]["kernel"] for name in ("encoder", "copy")]
    kernels[0].delete()
    assert np.isfinite(kernels[1]).all()
