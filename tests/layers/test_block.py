"""Every frame of a layer against a float64 loop, values and gradients, and its parameters, products and splits."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as nn
from jax.sharding import NamedSharding, PartitionSpec

from jaxenc import rng, tree
from jaxenc.errors import UserError
from jaxenc.execution import Execution
from jaxenc.layers.feed_forward import FeedForward
from jaxenc.layers.frame import BlockSpec
from jaxenc.layers.initializers import TruncatedNormal
from jaxenc.layers.stack import Stack, stack_flops
from jaxenc.layers.two_streams import TwoStreamBlock
from jaxenc.layers.visible import Visible
from jaxenc.precision import policy
from jaxenc.sharding import rules
from tests import tiny
from tests.layers import reference_block as reference
from tests.sent import sent

EXACT = Execution(policy("float32"), "xla", "none", False)
SCANNED = dataclasses.replace(EXACT, scan=True)
SPEC = BlockSpec(8, 2, 12, "gelu_tanh", 1e-5, 0.0, 0.0, TruncatedNormal(0.2))
LENGTHS = np.array([5, 3], np.int32)
X = np.random.default_rng(0).normal(size=(2, 5, 8)).astype(np.float32)
FRAMES = {
    "pre": {"norm": "pre"},
    "post, no biases, gated": {"biases": False, "gated": True},
    "pre, no biases, gated": {"norm": "pre", "biases": False, "gated": True},
}


def shapes(stack):
    return jax.eval_shape(stack.init, jax.random.key(0), X, Visible.by_lengths(LENGTHS), None)["params"]


def drawn(stack, seed=1):
    """Parameters at which every term matters."""
    random = np.random.default_rng(seed)
    value = lambda path, leaf: random.normal(path.endswith("scale"), 0.3, leaf.shape).astype(np.float32)
    return tree.map_with_path(value, nn.meta.unbox(shapes(stack)))


def expected(params, spec, uses, causal):
    sees = lambda row: lambda query, key: key < LENGTHS[row] and (key <= query or not causal)
    wide = jax.tree.map(np.float64, params)
    return np.stack([reference.stack(wide, np.float64(X[row]), spec, uses, sees(row)) for row in range(len(X))], axis=1)


@pytest.mark.parametrize("frame", FRAMES)
def test_equals_the_reference(frame):
    """<= 1e-5 in every hidden state, and in the slope of a sum of them along a random direction of each parameter, relative to the largest
    of all; three layers on two stored ones, causal and not."""
    spec, uses = dataclasses.replace(SPEC, **FRAMES[frame]), (0, 0, 1)
    causal = "gated" in frame
    visible = Visible.by_lengths(LENGTHS).causally() if causal else Visible.by_lengths(LENGTHS)
    stack = Stack(spec, 3, EXACT, stored=2)
    params, weight = drawn(stack), np.random.default_rng(2).normal(size=(4, *X.shape))

    @jax.jit
    def run(params):
        with jax.default_matmul_precision("highest"):
            states, last = (stack.apply({"params": params}, X, visible, None, all_layers=every) for every in (True, False))
        return jnp.sum(states * weight), (states, last)

    gradient, (states, last) = jax.jit(jax.grad(run, has_aux=True))(params)
    np.testing.assert_allclose(states, expected(params, spec, uses, causal), rtol=0, atol=1e-5)
    np.testing.assert_allclose(last, states[-1], rtol=0, atol=1e-6)
    slopes, random = {}, np.random.default_rng(3)
    leaves = dict(tree.leaves(params))
    for path, of_leaf in tree.leaves(gradient):
        direction = random.normal(size=of_leaf.shape)
        ahead, behind = (tree.from_leaves({**leaves, path: leaves[path] + step * direction}.items()) for step in (1e-5, -1e-5))
        rise = np.sum((expected(ahead, spec, uses, causal) - expected(behind, spec, uses, causal)) * weight)
        slopes[path] = float(np.sum(of_leaf * direction)), rise / 2e-5
    largest = max(abs(want) for _, want in slopes.values())
    for path, (got, want) in slopes.items():
        assert abs(got - want) <= 1e-5 * largest, path


def slope(stack, params):
    """(gradient of a sum over every hidden state, the states), with dropout on."""

    def total(params):
        states = stack.apply({"params": params}, X, Visible.by_lengths(LENGTHS), rng.training(0, jnp.int32(3), 2), all_layers=True)
        return jnp.sum(states**2 * jnp.arange(8)), states

    return jax.jit(jax.grad(total, has_aux=True))(params)


NOISY = dataclasses.replace(SPEC, norm="pre", dropout=0.3, attention_dropout=0.3)


@pytest.fixture(scope="module")
def copied():
    """Parameters of two stored layers; the states of three layers whose first two are equal, and the gradients, those of equals added."""
    params = drawn(Stack(NOISY, 3, EXACT, stored=2))
    names = {"layer_00": "layer_00", "layer_01": "layer_00", "layer_02": "layer_01", "final_norm": "final_norm"}
    each, states = slope(Stack(NOISY, 3, EXACT), {copy: params[stored] for copy, stored in names.items()})
    added = {**each, "layer_00": jax.tree.map(jnp.add, each["layer_00"], each["layer_01"]), "layer_01": each["layer_02"]}
    return params, states, {name: added[name] for name in params}


@pytest.mark.parametrize(
    "execution",
    [
        pytest.param(EXACT, id="unrolled"),
        pytest.param(SCANNED, id="scan"),
        pytest.param(dataclasses.replace(SCANNED, remat="block"), id="remat", marks=pytest.mark.full),
    ],
)
def test_shared_layers_are_copies_whose_gradients_add_up(copied, execution):
    """Three layers on two stored ones: states within 1e-6 of the copies', gradients within 1e-5 of the largest entry. Layers that share
    have their own dropout masks, as the copies have."""
    params, states, added = copied
    got, shared = slope(Stack(NOISY, 3, execution, stored=2), params)
    np.testing.assert_allclose(shared, states, rtol=0, atol=1e-6 * np.abs(states).max())
    largest = max(np.abs(leaf).max() for leaf in jax.tree.leaves(added))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=0, atol=1e-5 * largest), got, added)


def test_the_parameters_of_a_frame():
    """Names and axes: no bias anywhere, a gate split as `up` is, two stored layers, the last norm."""
    found = shapes(Stack(dataclasses.replace(SPEC, norm="pre", biases=False, gated=True), 4, EXACT, stored=2))
    names = {path: leaf.names for path, leaf in tree.leaves(found)}
    kernels = {f"attention/{name}": ("embed", "heads") for name in ("query", "key", "value")}
    kernels |= {"attention/output": ("heads", "embed"), "feed_forward/down": ("mlp", "embed")}
    kernels |= {"feed_forward/gate": ("embed", "mlp"), "feed_forward/up": ("embed", "mlp")}
    layer = {f"{name}/kernel": axes for name, axes in kernels.items()}
    layer |= {f"{name}/norm/scale": ("norm",) for name in ("attention", "feed_forward")}
    want = {f"layer_{number:02d}/{path}": axes for number in range(2) for path, axes in layer.items()}
    assert names == {**want, "final_norm/scale": ("norm",)}


@pytest.mark.parametrize("gated", [False, True])
def test_flops_are_two_for_each_product(gated):
    """Each token meets every kernel of each layer, stored or shared, and each query every key, twice."""
    spec = dataclasses.replace(SPEC, gated=gated, norm="pre")
    kernels = sum(leaf.value.size for path, leaf in tree.leaves(shapes(Stack(spec, 3, EXACT))) if path.endswith("kernel"))
    assert stack_flops(spec, 3, 5) == 2 * 5 * kernels + 3 * (2 * 2 * 5 * 5 * 8)


def test_a_split_of_the_gate_stays_a_split():
    """Over two devices, kernels split as the table of axes says, nothing but sums moves: no kernel and no activation is gathered."""
    layer = FeedForward(dataclasses.replace(SPEC, gated=True), EXACT)
    mesh = tiny.mesh("fsdp_tp", 2)
    assert dict(mesh.shape)["tensor"] == 2
    boxed = jax.eval_shape(layer.init, jax.random.key(0), X, None, 0)["params"]
    place = lambda leaf: NamedSharding(mesh, rules.spec(leaf.names, "fsdp_tp"))
    split = jax.tree.map(place, boxed, is_leaf=lambda leaf: isinstance(leaf, nn.meta.AxisMetadata))
    whole = NamedSharding(mesh, PartitionSpec())
    slope = jax.grad(lambda params, x: jnp.sum(layer.apply({"params": params}, x, None, 0) ** 2))
    step = jax.jit(slope, in_shardings=(split, whole), out_shardings=split)
    with jax.set_mesh(mesh):
        text = step.lower(nn.meta.unbox(boxed), X).compile().as_text()
    assert {one.kind for one in sent(text)} == {"all-reduce"}


def test_an_unknown_norm_is_named_as_the_config_names_it():
    with pytest.raises(UserError, match="^model.norm is 'both'; use post or pre$"):
        dataclasses.replace(SPEC, norm="both")


def test_what_no_stack_can_be():
    with pytest.raises(ValueError, match="3 stored layers for 2 layers"):
        shapes(Stack(SPEC, 2, EXACT, stored=3))
    with pytest.raises(ValueError, match="post-LN only"):
        TwoStreamBlock(dataclasses.replace(SPEC, norm="pre"), EXACT).init(jax.random.key(0), (X, None), None, None, 0)
