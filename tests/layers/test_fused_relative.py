"""The GPU kernels of relative attention, interpreted on the CPU, against the plain path, on any mesh; and that they lower for a GPU."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import pallas as pl
from jax.sharding import NamedSharding, PartitionSpec

from jaxenc import rng
from jaxenc.layers import fused_tiles
from jaxenc.layers.fused_tiles import Tile, Tiles
from jaxenc.layers.relative import Sight, Terms, relative_attend
from jaxenc.objectives.base import PhaseSetting
from jaxenc.sharding import mesh as meshes
from jaxenc.sharding import rules
from jaxenc.sharding.mesh import MeshConfig
from tests import tiny
from tests.layers.test_fused import distance, kept_by, lowered, verified
from tests.objectives import streams
from tests.selection import thinned

ROWS, HEADS, LAYER = 2, 2, 3
# No kernel walks in steps of its own tile, so that a walk one step short or long shows.
FINE = Tiles(Tile(32, 16, 4, 1), Tile(16, 32, 4, 1), Tile(32, 16, 4, 1))


@pytest.fixture(autouse=True)
def interpreted(monkeypatch):
    """Kernels run on the CPU, in small tiles."""
    monkeypatch.setattr(pl, "pallas_call", functools.partial(pl.pallas_call, interpret=True))
    monkeypatch.setattr(fused_tiles, "relative_tiles", lambda *_: FINE)


def drawn(length, memory, predictions, d=16, dtype="float32", rows=ROWS, heads=HEADS):
    """(q, k, v, r, terms), the gradient of the output, and the mask; of the query stream where places are predicted. Row 0 of the queries
    sees nothing."""
    random, keys, queries = np.random.default_rng(length + predictions), memory + length, predictions or length
    draw = lambda *shape: jnp.asarray(random.normal(size=shape), dtype)
    sees = random.random((rows, queries, keys)) < 0.6
    sees[:, 0] = False
    at = jnp.asarray(random.integers(0, length, (rows, queries)), jnp.int32) if predictions else None
    sight = Sight(jnp.asarray(sees), jnp.asarray(random.random(sees.shape) < 0.5), at)
    terms = Terms(draw(heads, d), draw(heads, d), draw(heads, d), draw(2, heads, d))
    given = draw(rows, queries, heads, d), draw(rows, keys, heads, d), draw(rows, keys, heads, d), draw(rows, keys + length, heads, d)
    return (*given, terms), draw(rows, queries, heads, d), sight


def both_passes(backend, rate):
    """A function of (given, slope, sight) that returns the output and the gradients of q, k, v, r and the terms."""

    def run(given, slope, sight):
        noise = rng.training(5, jnp.int32(2), len(slope)) if rate else None
        rule = lambda *given: relative_attend(*given, sight, rate, noise, LAYER, backend)
        out, back = jax.vjp(rule, *given)
        return out, *back(slope)

    return run


# A text that runs backward only has other values of r, which are drawn here; lengths that tiles do not divide, and ones that they do.
CASES = [(33, 0, 0, 0.1), (32, 24, 0, 0.3), (5, 4, 0, 0.1), (40, 9, 17, 0.2)]
MORE = [(32, 0, 5, 0.1), (64, 32, 32, 0.0), (96, 0, 0, 0.1)]


@pytest.mark.parametrize("length, memory, predictions, rate", [*CASES, *(pytest.param(*case, marks=pytest.mark.full) for case in MORE)])
def test_outputs_and_gradients_are_those_of_the_plain_path(length, memory, predictions, rate):
    """float32, <= 1e-5 in norm and of the largest element; a query that sees no key gives exactly 0 and has no gradient."""
    given, slope, sight = drawn(length, memory, predictions, 24 if length == 33 else 16)
    with jax.default_matmul_precision("highest"):
        ours, true = (jax.jit(both_passes(backend, rate))(given, slope, sight) for backend in ("pallas", "xla"))
    for one, two in zip(jax.tree.leaves(ours), jax.tree.leaves(true), strict=True):
        assert distance(one, two) <= 1e-5
        np.testing.assert_allclose(one, two, rtol=0, atol=1e-5 * max(1, float(np.abs(two).max())))
    assert not np.asarray(ours[0])[:, 0].any() and not np.asarray(ours[1])[:, 0].any()


def test_bfloat16_is_as_close_to_the_truth_as_the_plain_path():
    """At most 1.5 times the error of the plain path in bfloat16, both from the plain path in float32."""
    given, slope, sight = drawn(48, 16, 0, dtype="bfloat16")
    ours, low = (jax.jit(both_passes(backend, 0.1))(given, slope, sight) for backend in ("pallas", "xla"))
    wide = jax.tree.map(lambda x: np.asarray(x, np.float32), (given, slope))
    with jax.default_matmul_precision("highest"):
        true = jax.jit(both_passes("xla", 0.1))(*wide, sight)
    for one, other, two in zip(*map(jax.tree.leaves, (ours, low, true)), strict=True):
        assert one.dtype == jnp.bfloat16 and distance(one, two) <= max(1.5 * distance(other, two), 1e-3)


MODEL = dataclasses.replace(streams.MODEL, dropout=0.1, attention_dropout=0.1)


def loss_of_xlnet(attention, remat="none", scan=False):
    """The loss of a tiny XLNet with memory, rows that run backward and dropout, as a function of its parameters."""
    how = dataclasses.replace(tiny.execution(remat, scan), attention=attention)
    chosen = streams.CONFIG.build(MODEL, PhaseSetting(tiny.VOCABULARY, how, streams.DATA))
    example, keys = streams.corrupted(chosen, streams.batch_at(1))
    carry = jax.tree.map(lambda leaf: jnp.ones(leaf.shape, leaf.dtype), jax.eval_shape(lambda: chosen.carry(tiny.ROWS)))
    return lambda params: sum(chosen.terms(params, carry, example, keys, train=True)[0].values())


def test_both_streams_of_xlnet_call_it_where_it_is_chosen():
    """In each of two layers; and not at all with xla."""
    params = streams.drawn(model=MODEL)
    calls = {name: str(jax.make_jaxpr(loss_of_xlnet(name))(params)).count("name=relative_attention_forward") for name in ("pallas", "xla")}
    assert calls == {"pallas": 4, "xla": 0}


@pytest.mark.full
@pytest.mark.parametrize("remat, scan", [("none", False), ("attention", True)])
def test_xlnet_trains_with_it_as_with_the_plain_path(remat, scan):
    """Loss and gradient, <= 1e-5 in norm."""
    params = streams.drawn(model=MODEL)
    (loss, true), (other, ours) = (jax.jit(jax.value_and_grad(loss_of_xlnet(name, remat, scan)))(params) for name in ("xla", "pallas"))
    np.testing.assert_allclose(other, loss, rtol=1e-6)
    square = lambda tree: sum(float(jnp.sum(leaf**2)) for leaf in jax.tree.leaves(tree))
    assert square(jax.tree.map(jnp.subtract, ours, true)) <= 1e-10 * square(true)


@pytest.mark.parametrize("predictions", [0, 5])
def test_the_elements_that_are_dropped_are_those_of_dropout(predictions):
    """Bit for bit, in both passes: with equal scores and unit vectors as values and as the output's gradient."""
    given, slope, sight = drawn(20, 12, predictions, d=32)
    queries, keys = slope.shape[1], 32
    q, k, v, r, terms = jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), given)
    v = np.broadcast_to(np.eye(keys, dtype=v.dtype)[None, :, None], v.shape)
    units = np.broadcast_to(np.eye(queries, 32, dtype=slope.dtype)[None, :, None], slope.shape)
    everything = Sight(np.ones(sight.sees.shape, bool), sight.other, sight.at)
    out, _, _, of_v, *_ = jax.jit(both_passes("pallas", 0.3))((q, k, v, r, terms), units, everything)
    kept = kept_by(0.3, (ROWS, HEADS, queries, keys))
    np.testing.assert_array_equal(np.asarray(out).transpose(0, 2, 1, 3) != 0, kept)
    np.testing.assert_array_equal(np.asarray(of_v).transpose(0, 2, 3, 1)[..., :queries, :] != 0, kept)


@pytest.mark.parametrize("predictions", [0, pytest.param(6, marks=pytest.mark.full)])
@pytest.mark.parametrize("preset, tensor", [pytest.param("dp", 1, marks=pytest.mark.full), ("fsdp_tp", 2)])
def test_eight_devices_compute_what_one_computes(preset, tensor, predictions):
    """Outputs and gradients of q, k, v and r <= 5e-6 (their products are rounded by shape); no scores move between devices."""
    given, slope, sight = drawn(20, 4, predictions, rows=8, heads=4)
    run = jax.jit(both_passes("pallas", 0.3))
    one = run(given, slope, sight)
    mesh = meshes.make(MeshConfig(preset, tensor=tensor))
    place = lambda spec: lambda x: jax.device_put(x, NamedSharding(mesh, spec))
    wide, row = PartitionSpec(rules.TABLE["batch"], None, rules.TABLE["heads"]), PartitionSpec(rules.TABLE["batch"])
    with jax.set_mesh(mesh):
        terms = jax.tree.map(place(PartitionSpec()), given[4])
        placed = (*map(place(wide), given[:4]), terms), place(wide)(slope), jax.tree.map(place(row), sight)
        compiled = run.lower(*placed).compile()
        many = compiled(*placed)
    for a, b in zip(jax.tree.leaves(many[:5]), jax.tree.leaves(one[:5]), strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=5e-6)
    text = compiled.as_text()
    assert not [name for name in ("all-gather", "all-to-all", "collective-permute") if name in text]


LOWERED = [(512, 0, 0, 0.1), (512, 384, 85, 0.1), (100, 7, 0, 0.0), (1, 0, 1, 0.1)]


# jax 0.12 still has Pallas's Triton backend and says that a later version will not.
@pytest.mark.filterwarnings("ignore:The Pallas Triton backend is deprecated:DeprecationWarning")
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("length, memory, predictions, rate", thinned(LOWERED, (512, 384, 85, 0.1)))
def test_every_variant_lowers_for_a_gpu(length, memory, predictions, rate, dtype, monkeypatch):
    """Triton takes fewer operations than the interpreter; one kernel forward and two backward."""
    monkeypatch.undo()
    valid = verified(monkeypatch)
    given, slope, sight = drawn(length, memory, predictions, 48 if length == 100 else 64, dtype)
    text = lowered(both_passes("pallas", rate), (given, slope, sight))
    assert text.count("custom_call @__gpu$xla.gpu.triton") == len(valid) == 3 and all(valid)
