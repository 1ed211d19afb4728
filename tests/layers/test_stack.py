"""How the stack is computed changes nothing in what it computes: unrolled or scanned, kept or computed again."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as nn

from jaxenc import rng, tree
from jaxenc.execution import Execution
from jaxenc.layers.block import Block
from jaxenc.layers.frame import BlockSpec
from jaxenc.layers.initializers import TruncatedNormal
from jaxenc.layers.stack import Stack, layer_name
from jaxenc.layers.visible import Visible
from jaxenc.precision import policy

PLAIN = Execution(policy("float32"), "xla", "none", False)
LAYERS = 2
SPEC = BlockSpec(16, 2, 32, "gelu_tanh", 1e-12, 0.2, 0.2, TruncatedNormal(0.2))
VISIBLE = Visible.by_lengths(jnp.array([5, 2]))
X = jax.random.normal(jax.random.key(1), (2, 5, 16))
NOISE = rng.training(0, jnp.int32(4), 2)


def init(execution=PLAIN):
    return nn.meta.unbox(jax.jit(Stack(SPEC, LAYERS, execution).init)(jax.random.key(0), X, VISIBLE, None)["params"])


def run(execution, params):
    """(every hidden state, gradient of a sum over them) with dropout on."""

    def total(params):
        states = Stack(SPEC, LAYERS, execution).apply({"params": params}, X, VISIBLE, NOISE, all_layers=True)
        return jnp.sum(states**2 * jnp.arange(16)), states

    (_, states), gradient = jax.jit(jax.value_and_grad(total, has_aux=True))(params)
    return states, gradient


@pytest.fixture(scope="module")
def plain():
    shapes = nn.meta.unbox(jax.eval_shape(Stack(SPEC, LAYERS, PLAIN).init, jax.random.key(0), X, VISIBLE, None)["params"])
    random = np.random.default_rng(0)
    params = tree.map_with_path(lambda path, leaf: np.float32(random.normal(path.endswith("scale"), 0.2, leaf.shape)), shapes)
    return params, *run(PLAIN, params)


# The two that are `full` here tests/training/test_step.py compares through the whole step.
@pytest.mark.parametrize(
    "scan, remat",
    [
        (False, "block"),
        pytest.param(False, "attention", marks=pytest.mark.full),
        (True, "none"),
        pytest.param(True, "block", marks=pytest.mark.full),
    ],
)
def test_scan_and_remat_change_nothing(plain, scan, remat):
    """States within 1e-6; gradients within 1e-6 of the largest entry of the tree; dropout is on, so one other mask would show."""
    params, states, gradient = plain
    others, slope = run(dataclasses.replace(PLAIN, scan=scan, remat=remat), params)
    np.testing.assert_allclose(others, states, rtol=0, atol=1e-6)
    largest = max(np.abs(leaf).max() for leaf in jax.tree.leaves(gradient))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=0, atol=1e-6 * largest), slope, gradient)


def test_each_layer_is_its_block_with_its_own_number(plain):
    """Within 1e-6; the second block with the first one's number drops other elements."""
    params, states, _ = plain
    block = jax.jit(Block(SPEC, PLAIN).apply)
    for layer in range(LAYERS):
        out = block({"params": params[layer_name(layer)]}, states[layer], VISIBLE, NOISE, layer)
        np.testing.assert_allclose(out, states[layer + 1], rtol=0, atol=1e-6)
    other = block({"params": params[layer_name(1)]}, states[1], VISIBLE, NOISE, 0)
    assert np.abs(other - states[2]).max() > 0.1


def primitives(execution, params):
    """Names of the primitives of the forward pass, outermost level and inside."""
    apply = lambda params: Stack(SPEC, LAYERS, execution).apply({"params": params}, X, VISIBLE, NOISE)
    return str(jax.make_jaxpr(apply)(params))


def test_the_choice_is_heeded(plain):
    """One scan of six products (q, k and v are one), instead of the same in each layer; checkpoints where asked."""
    params = plain[0]
    scanned = primitives(dataclasses.replace(PLAIN, scan=True), params)
    unrolled = primitives(PLAIN, params)
    assert (scanned.count("scan["), unrolled.count("scan[")) == (1, 0)
    assert unrolled.count("dot_general[") == LAYERS * scanned.count("dot_general[") == LAYERS * 6
    for remat in ("block", "attention"):
        assert primitives(dataclasses.replace(PLAIN, remat=remat), params).count("prevent_cse=True") == LAYERS


def test_initial_parameters_do_not_depend_on_the_execution():
    same = init(dataclasses.replace(PLAIN, scan=True, remat="block"))
    jax.tree.map(np.testing.assert_array_equal, init(), same)


def test_last_state_is_the_default(plain):
    params, states, _ = plain
    for scan in (False, True):
        last = jax.jit(Stack(SPEC, LAYERS, dataclasses.replace(PLAIN, scan=scan)).apply)({"params": params}, X, VISIBLE, NOISE)
        np.testing.assert_allclose(last, states[-1], rtol=0, atol=1e-6)
    np.testing.assert_array_equal(states[0], X)
