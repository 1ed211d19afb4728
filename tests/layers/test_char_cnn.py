"""The network over characters against a loop in NumPy."""

import jax
import numpy as np
import pytest
from flax import linen as nn

from jaxenc import tree
from jaxenc.data import characters
from jaxenc.execution import Execution
from jaxenc.layers.char_cnn import CharCnn, CharCnnSpec
from jaxenc.precision import policy
from tests.families import reference_elmo as reference

EXECUTION = Execution(policy("float32"), "xla", "none", False)


def spec(activation="relu", highways=2):
    return CharCnnSpec(4, (1, 2, 5, characters.WIDTH), (3, 4, 5, 2), activation, highways, 6)


def start(of, seed=0):
    net = CharCnn(of, EXECUTION)
    return net, nn.meta.unbox(jax.jit(net.init)(jax.random.key(seed), characters.of_words(["a"]))["params"])


@pytest.mark.parametrize("activation, highways", [("relu", 2), ("tanh", 1), ("relu", 0)])
def test_words_are_those_of_a_loop(activation, highways):
    """Short and long words, an empty one, all kinds of ids; a filter as wide as a word fits once."""
    of = spec(activation, highways)
    net, params = start(of)
    rng = np.random.default_rng(0)
    params = tree.map_with_path(lambda _, leaf: rng.normal(size=leaf.shape).astype(np.float32) / 2, params)
    ids = np.stack([*characters.of_words(["", "a", "Zürich", "w" * 60]), characters.begin(), characters.end()]).reshape(3, 2, 50)
    wide = tree.map_with_path(lambda _, leaf: np.float64(leaf), params)
    expected = np.stack([reference.word(wide, of, word) for word in ids.reshape(-1, 50)]).reshape(3, 2, 6)
    np.testing.assert_allclose(jax.jit(net.apply)({"params": params}, ids), expected, atol=1e-5 * np.abs(expected).max())


def test_starts_as_published():
    """bilm/training.py: uniform tables and filters, normal highways and projection, a carry bias of -2."""
    _, params = start(spec())
    flat = dict(tree.leaves(params))
    assert flat["characters/table"].shape == (261, 4) and flat["convolution_02/kernel"].shape == (20, 5)
    assert 0.95 < np.abs(flat["characters/table"]).max() <= 1
    assert 0.04 < np.abs(flat["convolution_02/kernel"]).max() <= 0.05
    assert (flat["highway_01/carry/bias"] == -2).all() and not np.asarray(flat["highway_01/transform/bias"]).any()
    assert 0.7 < flat["highway_00/carry/kernel"].std() * 14**0.5 < 1.3
    assert 0.7 < flat["projection/kernel"].std() * 14**0.5 < 1.3
    _, params = start(spec("tanh"))
    assert 0.8 < params["convolution_03"]["kernel"].std() * 200**0.5 < 1.2


def test_flops_count_every_product():
    filters = 50 * 1 * 4 * 3 + 49 * 2 * 4 * 4 + 46 * 5 * 4 * 5 + 1 * 50 * 4 * 2
    assert spec().forward_flops() == 2 * (filters + 2 * 2 * 14 * 14 + 14 * 6)
