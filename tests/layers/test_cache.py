"""A stack that reads a text in parts, with a cache, against the float64 loop over the whole text."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as nn

from jaxenc import tree
from jaxenc.execution import Execution
from jaxenc.layers import cache as caches
from jaxenc.layers.frame import BlockSpec
from jaxenc.layers.initializers import TruncatedNormal
from jaxenc.layers.stack import Stack
from jaxenc.layers.visible import Visible
from jaxenc.precision import policy
from tests.layers import reference_block as reference

EXACT = Execution(policy("float32"), "xla", "none", False)
SPEC = BlockSpec(8, 2, 12, "gelu_tanh", 1e-5, 0.1, 0.1, TruncatedNormal(0.2))
FRAMES = {"post": {}, "pre, no biases, gated": {"norm": "pre", "biases": False, "gated": True}}
USES = (0, 0, 1)  # three layers on two stored ones
ROWS, LENGTH, PLACES = 3, 7, 9
X = np.random.default_rng(0).normal(size=(ROWS, LENGTH, 8)).astype(np.float32)
# The tokens that each row has in the first part; what follows there is padding.
FIRST = np.array([5, 2, 1])


@pytest.mark.parametrize("scan", [False, True])
@pytest.mark.parametrize("frame", FRAMES)
def test_parts_of_a_text_are_the_whole_text(frame: str, scan: bool) -> None:
    """Every layer of every token within 1e-5 of a loop that knows no cache: prompts of three lengths, then a token at a time, whose places
    are those of the padding; what a cache holds before it is written is never seen."""
    spec = dataclasses.replace(SPEC, **FRAMES[frame])
    stack = Stack(spec, len(USES), dataclasses.replace(EXACT, scan=scan), stored=2)
    shapes = nn.meta.unbox(jax.eval_shape(stack.init, jax.random.key(0), X, Visible(), None)["params"])
    random = np.random.default_rng(1)
    params = tree.map_with_path(lambda path, leaf: random.normal(path.endswith("scale"), 0.3, leaf.shape).astype(np.float32), shapes)
    wide = jax.tree.map(np.float64, params)
    wanted = np.stack([reference.stack(wide, np.float64(row), spec, USES, lambda query, key: key <= query) for row in X], axis=1)

    @jax.jit
    def read(x: jax.Array, places: jax.Array, cache: tuple[caches.Cache, ...]) -> tuple[jax.Array, tuple[caches.Cache, ...]]:
        return stack.apply({"params": params}, x, Visible.by_places(places).causally(), None, all_layers=True, cache=cache)

    cache = jax.tree.map(lambda leaf: leaf + 100.0, caches.empty(spec, len(USES), ROWS, PLACES, jnp.float32))
    real = np.arange(5) < FIRST[:, None]
    out, cache = read(np.where(real[..., None], X[:, :5], 50.0), np.broadcast_to(np.arange(5), (ROWS, 5)), cache)
    np.testing.assert_allclose(np.where(real[..., None], out, 0), np.where(real[..., None], wanted[:, :, :5], 0), rtol=0, atol=1e-5)
    for step in range(LENGTH - FIRST.max()):
        places = (FIRST + step)[:, None]
        out, cache = read(np.take_along_axis(X, places[..., None], axis=1), places, cache)
        np.testing.assert_allclose(out[:, :, 0], wanted[:, np.arange(ROWS), places[:, 0]], rtol=0, atol=1e-5)


def test_a_query_sees_what_stands_before_its_place() -> None:
    """The mask of queries at three places of a cache of five, by hand; segments say nothing of a cache and are refused."""
    seen = Visible.by_places(jnp.array([[0, 3], [4, 1]])).causally().pairs(5)
    assert np.asarray(seen).astype(int).tolist() == [[[1, 0, 0, 0, 0], [1, 1, 1, 1, 0]], [[1, 1, 1, 1, 1], [1, 1, 0, 0, 0]]]
    with pytest.raises(ValueError, match="set segments or places"):
        Visible(segments=jnp.ones((1, 2)), places=jnp.zeros((1, 2)))
