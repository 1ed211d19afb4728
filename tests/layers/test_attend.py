"""Attention against loops, for every form of the mask, and the choice of the backend."""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxenc import rng
from jaxenc.errors import UserError
from jaxenc.execution import Execution
from jaxenc.layers.attend import attend, for_mask, resolve
from jaxenc.layers.visible import Visible
from jaxenc.precision import policy

EXACT = Execution(policy("float32"), "xla", "none", False)
CUDNN = dataclasses.replace(EXACT, attention="cudnn")
BATCH, LENGTH, HEADS, D = 3, 7, 2, 4
LENGTHS = np.array([7, 4, 1], np.int32)
SEGMENTS = np.array([[1, 1, 1, 2, 2, 0, 0], [1, 1, 1, 1, 0, 0, 0], [1, 2, 3, 3, 3, 3, 3]], np.int32)
HOLES = np.array([[1, 0, 1, 2, 0, 1, 1], [0, 0, 0, 1, 1, 1, 1], [0, 0, 0, 0, 0, 0, 5]], np.int32)
BIAS = np.random.default_rng(2).normal(size=(BATCH, HEADS, LENGTH, LENGTH)).astype(np.float32)


def qkv():
    return [jnp.asarray(part) for part in np.random.default_rng(0).normal(size=(3, BATCH, LENGTH, HEADS, D)).astype(np.float32)]


def loops(q, k, v, seen, bias):
    """float64; seen(row, query, key) and bias[row, head, query, key]; 0 for a query that sees no key."""
    out = np.zeros(q.shape)
    for row, query, head in np.ndindex(BATCH, LENGTH, HEADS):
        if not (keys := [key for key in range(LENGTH) if seen(row, query, key)]):
            continue
        scores = [np.float64(q[row, query, head]) @ k[row, key, head] / math.sqrt(D) + bias[row, head, query, key] for key in keys]
        weights = np.exp(scores) / np.exp(scores).sum()
        out[row, query, head] = sum(weight * np.float64(v[row, key, head]) for weight, key in zip(weights, keys, strict=True))
    return out


def inside(row, query, key):
    return key < LENGTHS[row]


def kept(row, query, key):
    return HOLES[row, key] > 0


def same(row, query, key):
    return SEGMENTS[row, query] == SEGMENTS[row, key]


def past(row, query, key):
    return key <= query


# Masks that combine rules, and the rules. By HOLES the first places of rows 1 and 2 are padding: a causal query there sees no key.
COMBINED = {
    "causal": (Visible().causally(), (past,)),
    "lengths, causal": (Visible.by_lengths(LENGTHS).causally(), (inside, past)),
    "keys, causal": (Visible.by_keys(HOLES).causally(), (kept, past)),
    "segments, causal": (Visible.by_segments(SEGMENTS).causally(), (same, past)),
    "lengths, segments": (Visible(lengths=LENGTHS, segments=SEGMENTS), (inside, same)),
    "keys, segments, causal": (Visible(keys=HOLES, segments=SEGMENTS).causally(), (kept, same, past)),
}


@pytest.mark.parametrize("name", COMBINED)
def test_a_combination_hides_what_any_of_its_rules_hides(name):
    """<= 1e-6 from loops, alone and with a bias; `pairs` agrees. A query that sees no key gives exactly 0."""
    visible, rules = COMBINED[name]
    q, k, v = qkv()
    seen = lambda *place: all(rule(*place) for rule in rules)
    table = np.array([seen(*place) for place in np.ndindex(BATCH, LENGTH, LENGTH)]).reshape(BATCH, LENGTH, LENGTH)
    np.testing.assert_array_equal(np.broadcast_to(visible.pairs(LENGTH), table.shape), table)
    blind = ~table.any(axis=-1)
    assert blind.any() == ("keys" in name or name == "lengths, segments")
    for bias in (np.zeros_like(BIAS), BIAS):
        given = dataclasses.replace(visible, bias=bias) if bias.any() else visible
        with jax.default_matmul_precision("highest"):
            out = np.asarray(attend(q, k, v, given, EXACT, 0.0, None, 0))
        np.testing.assert_allclose(out, loops(q, k, v, seen, bias), rtol=0, atol=1e-6)
        assert not out[blind].any()


@pytest.mark.parametrize("name", COMBINED)
def test_a_hidden_key_has_no_gradient(name):
    """The gradients of a query with respect to the keys and values that it does not see are exactly 0, those to the others are not."""
    visible, rules = COMBINED[name]
    q, k, v = qkv()
    of_values = jax.jit(jax.jacrev(lambda q, k, v: attend(q, k, v, visible, EXACT, 0.0, None, 0).sum(axis=(2, 3)), argnums=(1, 2)))
    seen = np.array([all(rule(*place) for rule in rules) for place in np.ndindex(BATCH, LENGTH, LENGTH)])
    for jacobian in of_values(q, k, v):
        own = np.asarray(jacobian)[np.arange(BATCH), :, np.arange(BATCH)]
        assert np.isfinite(jacobian).all()
        moved = own.any(axis=(-2, -1))
        alone = seen.reshape(moved.shape).sum(axis=-1, keepdims=True) == 1
        np.testing.assert_array_equal(moved | alone, seen.reshape(moved.shape) | alone)
        assert not moved[~seen.reshape(moved.shape)].any()


def test_padding_is_said_once():
    with pytest.raises(ValueError, match="lengths and keys both mark padding"):
        Visible(lengths=LENGTHS, keys=HOLES)


def test_causality_is_a_part_of_the_compiled_program():
    """Not an array: masks with it and without it are different trees, so jit does not confuse them."""
    one, two = Visible.by_lengths(LENGTHS), Visible.by_lengths(LENGTHS).causally()
    assert len(jax.tree.leaves(two)) == 1 and jax.tree.structure(one) != jax.tree.structure(two)
    assert jax.tree.map(lambda leaf: leaf, two).causal


@pytest.mark.parametrize(
    "visible, seen, bias",
    [
        (Visible.by_lengths(LENGTHS), lambda row, query, key: key < LENGTHS[row], np.zeros_like(BIAS)),
        (Visible.by_keys(HOLES), lambda row, query, key: HOLES[row, key] > 0, np.zeros_like(BIAS)),
        (Visible.by_keys(HOLES > 0), lambda row, query, key: HOLES[row, key] > 0, np.zeros_like(BIAS)),
        (Visible.by_segments(SEGMENTS), lambda row, query, key: SEGMENTS[row, query] == SEGMENTS[row, key], np.zeros_like(BIAS)),
        (Visible.by_bias(BIAS), lambda row, query, key: True, BIAS),
    ],
    ids=["lengths", "keys", "bool keys", "segments", "bias"],
)
def test_equals_loops(visible, seen, bias):
    """<= 1e-6, float32 against float64."""
    q, k, v = qkv()
    with jax.default_matmul_precision("highest"):
        out = attend(q, k, v, visible, EXACT, 0.1, None, 0)
    np.testing.assert_allclose(out, loops(q, k, v, seen, bias), rtol=0, atol=1e-6)


def test_lengths_and_segments_of_one_text_agree_on_the_text():
    q, k, v = qkv()
    inside = np.arange(LENGTH) < LENGTHS[:, None]
    one = attend(q, k, v, Visible.by_lengths(LENGTHS), EXACT, 0.0, None, 0)
    two = attend(q, k, v, Visible.by_segments(inside.astype(np.int32)), EXACT, 0.0, None, 0)
    np.testing.assert_array_equal(np.asarray(one)[inside], np.asarray(two)[inside])


def hiding(value):
    """A bias that hides all keys of row 0, and of row 1 those of query 2 in head 1 alone."""
    bias = BIAS.copy()
    bias[0], bias[1, 1, 2] = value, value
    return Visible.by_bias(jnp.asarray(bias))


@pytest.mark.parametrize("rate", [0.0, 0.5])
@pytest.mark.parametrize(
    "visible", [hiding(-1e30), hiding(-np.inf), hiding(np.finfo(np.float32).min)], ids=["hidden", "infinite", "lowest"]
)
def test_a_query_from_which_a_bias_hides_every_key_gets_exactly_zero(visible, rate):
    """What these queries give does not depend on any query, key or value: all gradients of it are exactly 0. Gradients of all queries are
    finite, and only theirs are 0."""
    q, k, v = qkv()
    noise, seen = rng.training(0, jnp.int32(0), BATCH) if rate else None, np.ones((BATCH, LENGTH, HEADS), bool)
    seen[0], seen[1, 2, 1] = False, False

    @jax.jit
    def run(slope):
        out, back = jax.vjp(lambda q, k, v: attend(q, k, v, visible, EXACT, rate, noise, 0), q, k, v)
        return out, back(slope)

    ones = np.ones(q.shape, np.float32)
    out, of_blind = run(ones * ~seen[..., None])
    assert not np.asarray(out)[~seen].any() and seen.any() == np.asarray(out)[seen].any()
    assert not any(np.asarray(gradient).any() for gradient in of_blind)
    _, of_all = run(ones)
    assert all(np.isfinite(gradient).all() for gradient in of_all) and not np.asarray(of_all[0])[~seen].any()
    assert all(np.asarray(gradient).any() == seen.any() for gradient in of_all)


def test_dropout_acts_on_the_weights():
    """With equal keys and v = 1 an output is (kept weights) / (0.5 · length): a multiple of 2 / 7, of mean 1; heads and layers differ."""
    q, v, noise = jnp.zeros((256, LENGTH, HEADS, D)), jnp.ones((256, LENGTH, HEADS, D)), rng.training(0, jnp.int32(0), 256)
    visible = Visible.by_lengths(jnp.full((256,), LENGTH))
    out = np.asarray(attend(q, q, v, visible, EXACT, 0.5, noise, 0))
    np.testing.assert_allclose(out * LENGTH / 2, np.round(out * LENGTH / 2), rtol=0, atol=1e-5)
    n = 256 * LENGTH * HEADS
    assert abs(out[..., 0].mean() - 1) <= 3 / np.sqrt(n * LENGTH)
    assert not np.array_equal(out[:, :, 0], out[:, :, 1])
    assert not np.array_equal(out, attend(q, q, v, visible, EXACT, 0.5, noise, 1))
    np.testing.assert_array_equal(attend(q, q, v, visible, EXACT, 0.5, None, 0), np.ones_like(v))


@pytest.mark.parametrize(
    "backend, platform, compute, rate, length, answer",
    [
        ("auto", "gpu", "bfloat16", 0.0, 512, "pallas"),
        ("auto", "cuda", "bfloat16", 0.0, 513, "cudnn"),
        ("auto", "gpu", "bfloat16", 0.1, 512, "pallas"),
        ("auto", "gpu", "float32", 0.1, 512, "xla"),
        ("auto", "gpu", "float32", 0.0, 128, "xla"),
        ("auto", "cpu", "bfloat16", 0.1, 128, "xla"),
        ("auto", "tpu", "bfloat16", 0.1, 128, "xla"),
        ("auto", "gpu of compute capability 7.5", "bfloat16", 0.1, 128, "xla"),
        ("xla", "gpu", "bfloat16", 0.0, 512, "xla"),
        ("cudnn", "gpu", "bfloat16", 0.0, 128, "cudnn"),
        ("pallas", "gpu", "float32", 0.0, 512, "pallas"),
    ],
)
def test_resolve(backend, platform, compute, rate, length, answer):
    assert resolve(backend, platform, jnp.dtype(compute), rate, length) == answer


@pytest.mark.parametrize("platform, compute, rate", [("cpu", "bfloat16", 0.0), ("gpu", "float32", 0.0), ("gpu", "bfloat16", 0.1)])
def test_resolve_refuses_cudnn_where_it_cannot_run(platform, compute, rate):
    with pytest.raises(UserError, match="train.precision=bfloat16 and attention_dropout=0"):
        resolve("cudnn", platform, jnp.dtype(compute), rate, 512)


@pytest.mark.parametrize("platform", ["cpu", "tpu", "gpu of compute capability 7.5"])
def test_resolve_refuses_pallas_without_a_gpu(platform):
    with pytest.raises(UserError, match=f"'pallas' on {platform}, and it runs on a gpu"):
        resolve("pallas", platform, jnp.dtype("bfloat16"), 0.1, 512)


def test_relative_positions_have_xla_and_pallas():
    """auto is pallas where it was measured, with dropout; cudnn is refused where it would run for another model."""
    bfloat16 = jnp.dtype("bfloat16")
    assert resolve("auto", "gpu", bfloat16, 0.1, 512, True) == "pallas"
    assert resolve("auto", "gpu", bfloat16, 0.1, 513, True) == resolve("auto", "gpu", bfloat16, 0.0, 512, True) == "xla"
    assert resolve("pallas", "gpu", bfloat16, 0.1, 512, True) == "pallas"
    with pytest.raises(UserError, match="attention is 'cudnn', which has no relative positions"):
        resolve("cudnn", "gpu", bfloat16, 0.0, 512, True)


def test_resolve_names_the_backends():
    with pytest.raises(UserError, match="'flash'; use auto, xla, cudnn or pallas"):
        resolve("flash", "gpu", jnp.dtype("bfloat16"), 0.0, 512)


def test_cudnn_refuses_dropout():
    with pytest.raises(ValueError, match="set attention_dropout to 0"):
        attend(*qkv(), Visible.by_lengths(LENGTHS), CUDNN, 0.1, rng.training(0, jnp.int32(0), BATCH), 0)


@pytest.mark.parametrize(
    "visible, instead",
    [
        (Visible.by_lengths(LENGTHS), ("cudnn", "pallas", "xla")),
        (Visible.by_lengths(LENGTHS).causally(), ("cudnn", "pallas", "xla")),
        (Visible.by_keys(HOLES), ("pallas", "pallas", "xla")),
        (Visible.by_segments(SEGMENTS), ("pallas", "pallas", "xla")),
        (Visible(lengths=LENGTHS, segments=SEGMENTS), ("pallas", "pallas", "xla")),
        (Visible().causally(), ("pallas", "pallas", "xla")),
        (Visible.by_bias(BIAS), ("xla", "xla", "xla")),
        (Visible(lengths=LENGTHS, bias=BIAS), ("xla", "xla", "xla")),
    ],
)
def test_a_mask_that_a_backend_does_not_take_goes_to_another(visible, instead):
    assert tuple(for_mask(backend, visible) for backend in ("cudnn", "pallas", "xla")) == instead


@pytest.mark.parametrize("causal", [False, True])
def test_cudnn_gets_key_lengths_of_at_least_one(monkeypatch, causal):
    """The call that a GPU would run, replayed on the xla implementation: equal to our xla backend, and finite for an empty row."""
    mask = lambda lengths: Visible.by_lengths(lengths).causally() if causal else Visible.by_lengths(lengths)
    q, k, v = qkv()
    call = jax.nn.dot_product_attention
    seen = {}

    def replay(*args, implementation, **options):
        seen.update(options, implementation=implementation)
        return call(*args, implementation="xla", **options)

    monkeypatch.setattr(jax.nn, "dot_product_attention", replay)
    out = attend(q, k, v, mask(jnp.array([7, 4, 0])), CUDNN, 0.1, None, 0)
    assert seen["implementation"] == "cudnn" and seen["key_value_seq_lengths"].tolist() == [7, 4, 1]
    assert seen["is_causal"] == causal
    np.testing.assert_allclose(out, attend(q, k, v, mask(LENGTHS), EXACT, 0.0, None, 0), rtol=0, atol=1e-6)


def test_unknown_backend():
    with pytest.raises(ValueError, match="'auto' is not one of xla, cudnn, pallas"):
        attend(*qkv(), Visible.by_lengths(LENGTHS), dataclasses.replace(EXACT, attention="auto"), 0.0, None, 0)
