"""The GPU kernels of attention, interpreted on the CPU, against the plain path, on any mesh; and that they lower for a GPU."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax._src.pallas.triton import lowering  # jax has no public way to check a kernel without its GPU
from jax.experimental import pallas as pl
from jax.sharding import NamedSharding, PartitionSpec

from jaxenc import rng
from jaxenc.layers import fused_tiles
from jaxenc.layers.attend import attend
from jaxenc.layers.dropout import keep
from jaxenc.layers.fused_tiles import Tile, Tiles, tiles
from jaxenc.layers.visible import Visible
from jaxenc.objectives.mlm import MlmConfig
from jaxenc.sharding import collectives, partition, rules
from jaxenc.sharding import mesh as meshes
from jaxenc.sharding.mesh import MeshConfig
from jaxenc.training.state import parameters
from tests import tiny
from tests.selection import thinned

PLAIN = tiny.execution()
FUSED = dataclasses.replace(PLAIN, attention="pallas")
ROWS, HEADS, LAYER = 3, 2, 3
# Each kernel walks in steps smaller than its own tile, so that a walk one step short or long shows; and the other way round.
FINE = Tiles(Tile(32, 16, 4, 1), Tile(16, 32, 4, 1), Tile(32, 16, 4, 1))
COARSE = Tiles(Tile(16, 32, 4, 1), Tile(32, 16, 4, 1), Tile(16, 32, 4, 1))
SIZES = [FINE, *(pytest.param(sizes, marks=pytest.mark.full) for sizes in (COARSE, None))]


@pytest.fixture(autouse=True)
def interpreted(monkeypatch):
    """Kernels run on the CPU."""
    monkeypatch.setattr(pl, "pallas_call", functools.partial(pl.pallas_call, interpret=True))


def drawn(length, d, dtype="float32", rows=ROWS, heads=HEADS):
    """q, k, v and the gradient of the output."""
    return [jnp.asarray(x, dtype) for x in np.random.default_rng(length).normal(size=(4, rows, length, heads, d)).astype(np.float32)]


def mask(kind, length, rows=ROWS):
    """A mask of these rules. Row 0 is full by lengths and row 2 empty; by keys the first places are padding, so a causal query there sees
    nothing."""
    draw = np.random.default_rng(length + 1)
    lengths = jnp.asarray([length, (length + 1) // 2, 0, *draw.integers(0, length + 1, rows)][:rows], jnp.int32)
    holes = jnp.asarray(draw.integers(0, 3, (rows, length)) * (np.arange(length) > length // 8), jnp.int32)
    segments = jnp.asarray(-np.sort(-draw.integers(0, 4, (rows, length))), jnp.int32)
    given = {"lengths": lengths, "keys": holes, "segments": segments, "causal": True}
    return Visible(**{name: given[name] for name in kind.split()})


def both_passes(execution, visible, rate):
    """A function of (q, k, v, slope) that returns the output and the gradients of q, k, v."""

    def run(q, k, v, slope):
        noise = rng.training(5, jnp.int32(2), len(q)) if rate else None
        out, back = jax.vjp(lambda q, k, v: attend(q, k, v, visible, execution, rate, noise, LAYER), q, k, v)
        return out, *back(slope)

    return run


def plain(visible, rate, given):
    """`both_passes` of the plain path in float32. Queries that see no key, also in rows of padding, give 0 and get no gradient."""

    @jax.jit
    def run(*given):
        q, k, v, slope = (x.astype(jnp.float32) for x in given)
        some = jnp.broadcast_to(visible.sees(q.shape[1]).any(-1), (len(q), HEADS, q.shape[1])).swapaxes(1, 2)[..., None]
        out, *gradients = both_passes(PLAIN, visible, rate)(q, k, v, slope * some)
        return out * some, *gradients

    return run(*given)


def distance(ours, true):
    """Of two arrays in the Frobenius norm, relative to `true`, or to an array of 0.1 where that is smaller: one key has gradients of 0."""
    ours, true = np.asarray(ours, np.float32), np.asarray(true)
    return float(np.linalg.norm(ours - true) / max(np.linalg.norm(true), 0.1 * true.size**0.5))


def kept_by(rate, shape):
    """bool `shape` = [batch, ...]: what dropout of the weights of attention keeps in these tests."""
    return np.asarray(jax.jit(lambda: keep(rate, rng.training(5, jnp.int32(2), shape[0]).words("attention_weights", LAYER), shape))())


CASES = [
    ("lengths", 1, 32, 0.1),
    ("lengths", 63, 32, 0.1),
    ("lengths causal", 65, 32, 0.3),
    ("causal", 64, 32, 0.0),
    ("keys segments causal", 65, 24, 0.3),
    ("lengths segments", 128, 16, 0.1),
]
MORE = [
    *((kind, 65, 16, 0.2) for kind in ("", "keys", "segments", "keys causal", "segments causal", "keys segments")),
    ("lengths segments causal", 65, 16, 0.2),
    *(("lengths", length, 32, 0.1) for length in (64, 192, 320, 512, 1024)),
    *(("lengths causal", 192, d, 0.1) for d in (64, 128)),
    ("lengths", 128, 64, 0.0),
]


@pytest.mark.parametrize("sizes", SIZES, ids=["fine", "coarse", "table"])
@pytest.mark.parametrize("kind, length, d, rate", [*CASES, *(pytest.param(*case, marks=pytest.mark.full) for case in MORE)])
def test_outputs_and_gradients_are_those_of_the_plain_path(kind, length, d, rate, sizes, monkeypatch):
    """float32, <= 1e-5 in norm and <= 1e-5 of the largest element; queries that see no key give exactly 0 and have no gradient."""
    if sizes:
        monkeypatch.setattr(fused_tiles, "tiles", lambda *_: sizes)
    visible, given = mask(kind, length), drawn(length, d)
    with jax.default_matmul_precision("highest"):
        ours, true = jax.jit(both_passes(FUSED, visible, rate))(*given), plain(visible, rate, given)
    for one, two in zip(ours, true, strict=True):
        assert distance(one, two) <= 1e-5
        np.testing.assert_allclose(one, two, rtol=0, atol=1e-5 * max(1, float(np.abs(two).max())))
    blind = ~np.broadcast_to(np.asarray(jax.jit(visible.sees, static_argnums=0)(length)).any(-1)[:, 0], (ROWS, length))
    assert blind.any() == ("lengths" in kind or ("keys" in kind and "causal" in kind))
    assert not np.asarray(ours[0])[blind].any() and not np.asarray(ours[1])[blind].any()


def test_bfloat16_is_as_close_to_the_truth_as_the_plain_path():
    """At most 1.5 times the error of the plain path in bfloat16, both from the plain path in float32, and <= 1 % in norm."""
    visible, given = mask("lengths causal", 80), drawn(80, 32, "bfloat16")
    ours = jax.jit(both_passes(FUSED, visible, 0.1))(*given)
    low = jax.jit(both_passes(PLAIN, visible, 0.1))(*given)
    with jax.default_matmul_precision("highest"):
        true = plain(visible, 0.1, given)
    seen = np.asarray(visible.sees(80)).any(-1)[:, 0, :, None, None]
    for one, other, two in zip(ours, low, true, strict=True):
        assert one.dtype == jnp.bfloat16
        assert distance(one, two) <= max(1.5 * distance(np.asarray(other) * seen, np.asarray(two) * seen), 1e-3)
        assert distance(one, two) <= 0.01


@pytest.mark.parametrize("length, d", [(32, 32), (65, 128)])
def test_the_elements_that_are_dropped_are_those_of_dropout(length, d):
    """Bit for bit, in both passes. With equal scores and unit vectors as values, the output shows which weights were kept; with unit
    vectors as the output's gradient, so does the gradient of the values."""
    zeros = np.zeros((ROWS, length, HEADS, d), np.float32)
    units = np.broadcast_to(np.eye(length, d, dtype=np.float32)[None, :, None], zeros.shape)
    out, _, _, of_v = jax.jit(both_passes(FUSED, Visible(), 0.3))(zeros, zeros, units, units)
    kept = kept_by(0.3, (ROWS, HEADS, length, length))
    np.testing.assert_array_equal(np.asarray(out).transpose(0, 2, 1, 3)[..., :length] != 0, kept)
    np.testing.assert_array_equal(np.asarray(of_v).transpose(0, 2, 3, 1)[..., :length, :] != 0, kept)
    np.testing.assert_allclose(np.asarray(out).max(), 1 / (0.7 * length), rtol=1e-5)


def in_two_layers(q, k, v, slope, lengths, numbers, step):
    """Two scanned layers, computed again in the backward pass: the number of the layer is traced."""
    noise = dataclasses.replace(rng.training(0, step, len(q)), rows=numbers)

    def layer(x, number):
        rule = lambda x: attend(x, k, v, Visible.by_lengths(lengths).causally(), FUSED, 0.3, noise, number)
        return jax.checkpoint(rule, prevent_cse=False)(x), None

    out, back = jax.vjp(lambda q: jax.lax.scan(layer, q, jnp.arange(2))[0], q)
    return out, *back(slope)


@pytest.mark.parametrize(
    "preset, tensor, own",
    [("fsdp_tp", 2, False), ("fsdp_tp", 2, True), *(pytest.param("dp", 1, own, marks=pytest.mark.full) for own in (False, True))],
)
def test_eight_devices_compute_what_one_computes(preset, tensor, own):
    """Outputs bit for bit, gradients <= 1e-6; nothing moves between devices. Scanned layers and remat, as in a step. own: where each device
    has its own rows already, as in a training step."""
    given, lengths = drawn(20, 16, rows=8, heads=4), jnp.asarray([20, 3, 0, 7, 20, 1, 9, 13])
    numbers = jnp.arange(8, dtype=jnp.uint32)
    one = jax.jit(in_two_layers)(*given, lengths, numbers, jnp.int32(3))
    mesh = meshes.make(MeshConfig(preset, tensor=tensor))
    rows, whole = partition.batch_sharding(mesh), partition.replicated(mesh)
    heads = NamedSharding(mesh, PartitionSpec(rules.TABLE["batch"], None, rules.TABLE["heads"]))
    with jax.set_mesh(mesh):
        placed = [
            *(jax.device_put(x, heads) for x in given),
            *jax.device_put((lengths, numbers), rows),
            jax.device_put(jnp.int32(3), whole),
        ]
        of_mesh = collectives.on_own_rows(in_two_layers, mesh, (*[rows.spec] * 6, PartitionSpec()), rows.spec) if own else in_two_layers
        compiled = jax.jit(of_mesh).lower(*placed).compile()
        out, of_q = compiled(*placed)
    np.testing.assert_array_equal(out, one[0])
    np.testing.assert_allclose(of_q, one[1], rtol=0, atol=1e-6)
    text = compiled.as_text()
    assert not [name for name in ("all-gather", "all-reduce", "all-to-all", "collective-permute") if name in text]


def test_rows_and_heads_that_do_not_divide_over_a_mesh():
    """One row and three heads, as in an initialisation, on 8 devices: <= 1e-6."""
    visible, given = mask("lengths", 20, rows=1), drawn(20, 16, rows=1, heads=3)
    one = jax.jit(both_passes(FUSED, visible, 0.1))(*given)
    with jax.set_mesh(meshes.make(MeshConfig("fsdp_tp", tensor=2))):
        many = jax.jit(both_passes(FUSED, visible, 0.1))(*given)
    for a, b in zip(one, many, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-6)


@pytest.mark.full
def test_a_model_trains_with_it_as_with_the_plain_path():
    """The loss and its gradient of a tiny BERT with dropout, layers scanned and computed again: <= 1e-5 in norm."""
    rows = tiny.batch((48, 20, 3, 33))

    def gradient(attention):
        how = dataclasses.replace(tiny.execution("attention", scan=True), attention=attention)
        objective = tiny.objective(MlmConfig(), length=48, how=how)
        keys = rng.training(0, jnp.int32(1), 4)
        every_row = jax.jit(jax.vmap(objective.corrupt, in_axes=(0, 0, None)))
        example = every_row(keys.per_row("corrupt", "mask"), given(objective), jnp.int32(1))
        loss = lambda params: sum(objective.terms(params, {}, example, keys, train=True)[0].values())
        return jax.jit(jax.value_and_grad(loss))(tiny.filled(parameters(objective)[0], objective, tiny.VOCABULARY.size))

    given = lambda objective: {name: jnp.asarray(rows[name]) for name in objective.reads}
    (loss, true), (other, ours) = gradient("xla"), gradient("pallas")
    np.testing.assert_allclose(other, loss, rtol=1e-6)
    square = lambda tree: sum(float(jnp.sum(leaf**2)) for leaf in jax.tree.leaves(tree))
    assert square(jax.tree.map(jnp.subtract, ours, true)) <= 1e-10 * square(true)


def lowered(run, given):
    """The program of `run` for an NVIDIA GPU; none is needed."""
    if not hasattr(jax.sharding, "AbstractDevice"):
        return jax.jit(run).trace(*given).lower(lowering_platforms=("cuda",)).as_text()
    device = jax.sharding.AbstractDevice(device_kind="NVIDIA H200", num_cores=None, platform="gpu")
    one = jax.sharding.AbstractMesh((1,), ("data",), abstract_device=device)
    with jax.sharding.use_abstract_mesh(one):
        return jax.jit(run).trace(*given).lower(lowering_platforms=("cuda",)).as_text()


def verified(monkeypatch):
    """A list to which every kernel that is lowered from now on adds whether it is valid."""
    lower, valid = lowering.lower_jaxpr_to_triton_module, []

    def checked(*args, **options):
        result = lower(*args, **options)
        valid.append(result.module.operation.verify())
        return result

    monkeypatch.setattr(lowering, "lower_jaxpr_to_triton_module", checked)
    return valid


# jax 0.12 still has Pallas's Triton backend and says that a later version will not.
@pytest.mark.filterwarnings("ignore:The Pallas Triton backend is deprecated:DeprecationWarning")
@pytest.mark.parametrize("length, kernels", thinned([(1, 2), (100, 3), (512, 3)], 512))
@pytest.mark.parametrize(
    "kind, rate, dtype",
    [
        ("", 0.0, "bfloat16"),
        *(pytest.param(kind, 0.1, "bfloat16", marks=pytest.mark.full) for kind in ("lengths", "lengths causal")),
        *(("keys segments causal", 0.1, dtype) for dtype in ("bfloat16", "float32")),
        *(pytest.param(kind, 0.1, "float32", marks=pytest.mark.full) for kind in ("", "lengths", "lengths causal")),
    ],
)
def test_every_variant_lowers_for_a_gpu(kind, rate, length, kernels, dtype, monkeypatch):
    """Triton takes fewer operations than the interpreter. A row that one tile of keys covers needs one kernel in the backward pass. The
    kernels are checked here, since jax leaves that to the GPU's compiler."""
    monkeypatch.undo()
    valid = verified(monkeypatch)
    kernels -= dtype == "bfloat16" and length == 100
    given = drawn(length, 48 if length == 100 else 64, dtype)
    text = lowered(both_passes(FUSED, mask(kind, length), rate), given)
    assert text.count("custom_call @__gpu$xla.gpu.triton") == len(valid) == kernels and all(valid)


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_every_size_has_tiles_that_triton_takes(dtype):
    """Powers of two from 16, no longer than the row needs."""
    for length, d in ((1, 1), (17, 48), (128, 64), (129, 64), (512, 128), (4096, 256)):
        for tile in tiles(length, d, jnp.dtype(dtype)):
            assert all(size >= 16 and size & (size - 1) == 0 and size < max(32, 2 * length) for size in tile[:2])
