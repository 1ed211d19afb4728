"""What reads the features of a frozen encoder, against NumPy in float64, and its gradients against finite differences of that."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxenc import rng, tree
from jaxenc.heads.classifier import Classifier
from jaxenc.heads.probe import MIX, Probe
from jaxenc.layers.initializers import glorot_uniform
from jaxenc.layers.recurrence import LstmSpec
from tests import tiny
from tests.families import reference_elmo as reference

LAYERS, WIDTH, CELLS, CLASSES = 3, 4, 3, 2
# The same recurrence with a projection that does nothing, as the reference has it.
SPEC = LstmSpec(CELLS, CELLS, 0.0, 0.0, 1.0)
REAL = np.array([[1, 1, 1, 1, 0], [0, 1, 1, 0, 0]], bool)  # padding at the end, and on both sides
PROBE = Probe(MIX, False, 0.0, CELLS, 2, False, Classifier(CLASSES, glorot_uniform, tiny.execution()), tiny.execution())


def drawn() -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """(hidden, {path: random parameter})"""
    random = np.random.default_rng(0)
    hidden = random.normal(0, 1, (LAYERS, *REAL.shape, WIDTH)).astype(np.float32)
    shapes = jax.eval_shape(PROBE.init, jax.random.key(0), hidden, REAL, None)["params"]
    shapes = jax.tree.map(lambda box: box.value, shapes, is_leaf=lambda leaf: hasattr(leaf, "names"))
    return hidden, {path: random.normal(0, 0.5, leaf.shape).astype(np.float32) for path, leaf in tree.leaves(shapes)}


def slow(hidden: np.ndarray, flat: dict[str, np.ndarray], pools: bool) -> np.ndarray:
    """The logits, 0 at padding, one row and one step at a time."""
    shares = np.exp(flat["mix/weights"]) / np.exp(flat["mix/weights"]).sum()
    x = flat["mix/gamma"] * sum(share * layer for share, layer in zip(shares, hidden, strict=True))
    for number in range(2):
        both = []
        for name, turn in (("forward", 1), ("backward", -1)):
            p = {leaf: flat[f"bilstm_{number}/{name}/{leaf}"] for leaf in ("input", "recurrent", "bias")} | {"projection": np.eye(CELLS)}
            zeros = np.zeros(CELLS), np.zeros(CELLS)
            rows = [reference.lstm_row(p, SPEC, row[::turn], real[::turn], *zeros)[0][::turn] for row, real in zip(x, REAL, strict=True)]
            both.append(np.stack(rows))
        x = np.concatenate(both, axis=-1)
    if pools:
        x = np.stack([row[real].mean(axis=0) for row, real in zip(x, REAL, strict=True)])
    return x @ flat["head/dense/kernel"] + flat["head/dense/bias"]


@pytest.mark.parametrize("pools", [False, True])
def test_mix_bilstm_and_head_are_those_of_loops(pools: bool) -> None:
    """Logits of words and of texts (<= 1e-5), and every gradient (<= 1e-5 of its largest number), by central differences in float64."""
    hidden, flat = drawn()
    counted = np.ones(2, bool) if pools else REAL
    slopes = np.random.default_rng(1).normal(size=(*counted.shape, CLASSES)) * counted[..., None]
    probe = dataclasses.replace(PROBE, pools=pools)

    def total(params: Any) -> tuple[jax.Array, jax.Array]:
        logits = probe.apply({"params": params}, hidden, REAL.astype(np.int32), None)
        return jnp.sum(logits * slopes), logits

    (_, logits), grads = jax.jit(jax.value_and_grad(total, has_aux=True))(tree.from_leaves(flat.items()))
    exact = {path: np.float64(leaf) for path, leaf in flat.items()}
    np.testing.assert_allclose(logits[counted], slow(np.float64(hidden), exact, pools)[counted], rtol=0, atol=1e-5)
    at = lambda changed: (slow(np.float64(hidden), changed, pools) * slopes).sum()
    for path, grad in tree.leaves(grads):
        wanted = np.zeros(grad.shape)
        for place in np.ndindex(grad.shape):
            step = np.zeros(grad.shape)
            step[place] = 1e-5
            up, down = ({**exact, path: exact[path] + sign * step} for sign in (1, -1))
            wanted[place] = (at(up) - at(down)) / 2e-5
        np.testing.assert_allclose(grad, wanted, rtol=0, atol=1e-5 * max(np.abs(wanted).max(), 1e-2), err_msg=path)


@pytest.mark.parametrize("pools, depth", [(False, 2), (True, 2), (True, 0)])
def test_what_stands_in_the_padding_changes_nothing(pools: bool, depth: int) -> None:
    """Large numbers there leave every logit of a word or text as it was, bit for bit; longer rows do but for rounding (<= 1e-6)."""
    hidden, flat = drawn()
    if not depth:
        flat["head/dense/kernel"] = flat["head/dense/kernel"][:WIDTH]
    probe, params = dataclasses.replace(PROBE, pools=pools, depth=depth), tree.from_leaves(flat.items())
    run = jax.jit(lambda hidden, segments: probe.apply({"params": params}, hidden, segments, None))
    segments, noisy = REAL.astype(np.int32), np.where(REAL[..., None], hidden, 1e4).astype(np.float32)
    found, other = np.asarray(run(hidden, segments)), np.asarray(run(noisy, segments))
    wide = np.asarray(run(np.pad(noisy, [(0, 0), (0, 0), (0, 3), (0, 0)], constant_values=7.0), np.pad(segments, [(0, 0), (0, 3)])))
    seen = (lambda a: a) if pools else (lambda a: a[:, : REAL.shape[1]][REAL])
    np.testing.assert_array_equal(seen(found), seen(other))
    np.testing.assert_allclose(seen(found), seen(wide), rtol=0, atol=1e-6)


def test_one_layer_is_read_alone_and_dropout_is_on_it() -> None:
    """A linear head on layer 1: no other layer matters; with dropout at 0.5 about half of the features are gone, the others doubled."""
    hidden, _ = drawn()
    linear = dataclasses.replace(PROBE, layer=1, depth=0, dropout=0.5, head=Classifier(WIDTH, glorot_uniform, tiny.execution()))
    params = {"head": {"dense": {"kernel": np.eye(WIDTH, dtype=np.float32), "bias": np.zeros(WIDTH, np.float32)}}}
    run = lambda noise: np.asarray(linear.apply({"params": params}, hidden, REAL.astype(np.int32), noise))
    np.testing.assert_array_equal(run(None), hidden[1])
    dropped = run(rng.training(0, jnp.int32(0), 2))
    assert set(np.unique(np.round(dropped / hidden[1], 5))) == {0.0, 2.0}
