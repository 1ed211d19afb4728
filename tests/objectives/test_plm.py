"""Permutation language modelling: what an order hides is hidden, the likelihood factorises, and what memory is."""

import dataclasses
import functools
import itertools
from typing import Any

import jax
import numpy as np
import pytest

from jaxenc.data.sources import DataConfig
from jaxenc.errors import UserError
from jaxenc.families.xlnet.model import XlnetConfig
from jaxenc.objectives.base import PhaseSetting
from jaxenc.objectives.plm import Plm, PlmConfig
from tests import tiny
from tests.objectives import streams

PUBLISHED = dataclasses.replace(streams.CONFIG, unit="tokens", candidates="all", shuffle="shared")
# Predicts all eight tokens of the first half, so nothing precedes the first one where there is no memory, and eight of the second half.
FULL, SHORT = dataclasses.replace(streams.CONFIG, predictions=16), dataclasses.replace(streams.DATA, reuse=8)


@functools.cache
def scored(config: PlmConfig = streams.CONFIG, model: Any = streams.MODEL, data: DataConfig = streams.DATA) -> Any:
    """Compiled: (log p, logits, content) of (params, carry, example)."""
    chosen = streams.objective(config, model, data)
    return jax.jit(lambda params, carry, example: streams.log_likelihoods(chosen, params, carry, example))


def remembered(chosen: Plm, rows: int, seed: int = 0) -> dict[str, np.ndarray]:
    """A carry of random states, of which 24, 23, ... are real."""
    shapes = jax.eval_shape(lambda: chosen.carry(rows))
    if not shapes:
        return {}
    states = np.random.default_rng(seed).normal(size=shapes["states"].shape).astype(np.float32)
    return {"states": states, "filled": ((24 - np.arange(rows)) % 25).astype(np.int32)}


@pytest.mark.parametrize(
    "config, data",
    [(FULL, SHORT), pytest.param(dataclasses.replace(FULL, memory=0), SHORT, marks=pytest.mark.full), (PUBLISHED, streams.DATA)],
    ids=["clean", "no memory", "published"],
)
def test_a_token_that_the_order_hides_changes_nothing(config: PlmConfig, data: DataConfig) -> None:
    """Exactly zero: 32 copies of a backward row and of a forward, fresh one, of which copy j has another token at place j.

    No logit of a prediction that does not see j, which it never does of its own place, and no content vector of a place that does not
    see j moves by a bit; the others do.
    """
    chosen, params = streams.objective(config, data=data), streams.drawn(config)
    example, _ = streams.corrupted(chosen, streams.batch_at(1, reuse=data.reuse))
    carry = remembered(chosen, 32)
    assert example["fresh"][1:3].tolist() == [0, 1]
    for row in (1, 2):
        copies = {name: np.repeat(leaf[row : row + 1], 32, axis=0) for name, leaf in example.items()}
        kept = jax.tree.map(lambda leaf, row=row: np.repeat(leaf[row : row + 1], 32, axis=0), carry)
        tokens = copies["tokens"] + np.eye(32, dtype=np.int32) * 7
        plain = jax.device_get(scored(config, data=data)(params, kept, copies))
        moved = jax.device_get(scored(config, data=data)(params, kept, {**copies, "tokens": tokens % 200}))
        rank, at, n = example["rank"][row], example["predicted_at"][row], int(example["masked"][row].sum())
        assert data is not SHORT or not (rank[:, None] < rank[at[:n]]).any(axis=0).all(), "nothing precedes one of them"
        for j in range(32):
            changed = (plain[1][j] != moved[1][j]).any(-1)[:n]
            assert (changed == (rank[j] < rank[at[:n]])).all(), f"row {row}, place {j}"
            assert ((plain[2][j] != moved[2][j]).any(-1) == (rank[j] <= rank)).all(), f"row {row}, place {j}"


def test_the_likelihood_is_that_of_one_token_at_a_time() -> None:
    """Every conditional computed alone, in a row that holds no token of that rank or after but random ones: the sum over predictions is
    the query stream's loss to 1e-5, in every row."""
    chosen, params = streams.objective(FULL, data=SHORT), streams.drawn(FULL)
    example, keys = streams.corrupted(chosen, streams.batch_at(1, reuse=SHORT.reuse))
    carry, score = remembered(chosen, 32), scored(FULL, data=SHORT)
    whole = np.asarray(score(params, carry, example)[0]) * example["masked"]
    total, places = np.zeros(32), np.arange(32)
    for p in range(16):
        at = example["predicted_at"][:, p : p + 1]
        own = np.take_along_axis(example["rank"], at, axis=1)
        garbage = np.random.default_rng(p).integers(5, 200, example["tokens"].shape, np.int32)
        # The token itself is only the label; what is fed at its place is garbage too.
        fed = np.where((example["rank"] >= own) | (places == at), garbage, example["tokens"])
        logits = np.float64(score(params, carry, {**example, "tokens": fed, "predicted_at": np.repeat(at, 16, axis=1)})[1][:, 0])
        label = np.take_along_axis(example["tokens"], at, axis=1)
        given = np.take_along_axis(logits, label, axis=1)[:, 0] - np.log(np.exp(logits).sum(1))
        total += given * example["masked"][:, p]
    assert (example["masked"].sum(1) == 16).all()
    np.testing.assert_allclose(total, whole.sum(1), rtol=1e-5)
    terms, metrics, _ = jax.jit(lambda params: chosen.terms(params, carry, example, keys, False))(params)
    assert terms["plm"] == pytest.approx(-total.sum(), rel=1e-5) and metrics["plm_loss"][1] == 16 * 32


def ordered(random: np.random.Generator, budget: int, reuse: int, size: int) -> dict[str, np.ndarray]:
    """One row of 12 places with a random order as `permute.apply` writes it: `budget` places, 8 slots, any of each half but SEP and CLS."""
    special, rank, chosen = {9, 10, 11}, np.zeros(12, np.int32), []
    for first, end, wanted in ((0, reuse, budget - budget // 2), (reuse, 12, budget // 2)):
        places = np.arange(first, end)
        some = random.choice([i for i in places if i not in special], wanted, replace=False).tolist()
        place = np.concatenate([random.permutation(size) + block for block in range(0, end - first, size)])
        base = first + (first > 0)
        rank[first:end] = np.where(np.isin(places, [*some, *special]), base + 1 + place, base)
        chosen += sorted(some)
    at, masked = np.zeros(8, np.int32), np.zeros(8, np.int32)
    at[:budget], masked[:budget] = chosen, 1
    return {"rank": rank, "predicted_at": at, "masked": masked}


@pytest.mark.parametrize("memory", [0, 5])
def test_the_probabilities_of_all_texts_add_up_to_one(memory: int) -> None:
    """<= 1e-6 over all values of the predicted tokens, the others being given: for every budget, from 2 places to all, reused part and
    permutation of rows of 12 places; both directions; fresh rows, and beside memory of which no, some and all places are real.

    A prediction that sees itself, or what comes after it, makes the sum another one.
    """
    model, data = dataclasses.replace(streams.MODEL, vocab_size=2, width=8), dataclasses.replace(streams.DATA, length=12, reuse=4)
    config, random = dataclasses.replace(FULL, predictions=8, permutation=4, memory=memory), np.random.default_rng(0)
    params, values = streams.drawn(config, model), np.array(list(itertools.product(range(2), repeat=8)), np.int32)
    before = [(1, 5), (0, 0), (0, 2), (0, 5)]
    fresh, filled = np.repeat(np.array(before, np.int32).T, len(values), axis=1)
    states = random.normal(size=(len(before), model.layers, memory, model.width)).astype(np.float32)
    carry = {"states": np.repeat(states, len(values), axis=0), "filled": filled} if memory else {}
    given = {"types": np.zeros((len(fresh), 12), np.int32), "fresh": fresh}
    blind = 0
    for reuse, size in ((4, 4), (4, 2), (4, 1), (6, 6), (6, 3), (3, 3), (2, 2)):
        most = min(8, 2 * reuse, 2 * (9 - reuse) + 1)
        for budget in range(2, most + 1):
            row = ordered(random, budget, reuse, size)
            blind += not (row["rank"][:, None] < row["rank"][row["predicted_at"][:budget]]).any(axis=0).all()
            tokens = np.tile(random.integers(0, 2, 12).astype(np.int32), (len(values), 1))
            tokens[:, row["predicted_at"][:budget]] = values[:, :budget]
            example = {name: np.tile(leaf, (len(fresh), 1)) for name, leaf in row.items()} | {"tokens": np.tile(tokens, (len(before), 1))}
            example["direction"] = np.full(len(fresh), 1 - 2 * (budget % 2), np.int32)
            scores = np.float64(scored(config, model, data)(params, carry, example | given)[0]) * example["masked"]
            sums = np.exp(scores.sum(1)).reshape(len(before), -1).mean(1) * 2**budget
            np.testing.assert_allclose(sums, 1, rtol=0, atol=1e-6, err_msg=f"{budget} of reuse {reuse}, permutation {size}")
    assert blind >= 5, "nothing precedes one of the predictions"


def test_two_segments_with_memory_are_one_long_segment() -> None:
    """To 1e-5, both streams: the reused part of the first row, then the second row, in one row of 48 without memory whose order lets the
    second see all of the first. Types are 0: those of a memory count as such."""
    config = dataclasses.replace(streams.CONFIG, memory=16)
    chosen, params = streams.objective(config), streams.drawn()
    first, second = (streams.corrupted(chosen, streams.batch_at(step) | {"types": np.zeros((32, 32), np.int32)})[0] for step in (0, 1))
    second["fresh"] *= 0

    @jax.jit
    def kept(params: Any, rows: Any) -> Any:
        empty = chosen.remembered(chosen.carry(32), rows["fresh"])
        return chosen.kept(empty, chosen.read(params, empty, rows, None))

    carry = kept(params, first)
    _, logits, content = scored(config)(params, carry, second)

    long = {name: np.concatenate([first[name][:, :16], second[name]], axis=1) for name in ("tokens", "types")}
    long["rank"] = np.concatenate([first["rank"][:, :16], 17 + second["rank"]], axis=1)
    long |= {"predicted_at": 16 + second["predicted_at"], "direction": second["direction"], "fresh": first["fresh"]}
    apart = streams.objective(dataclasses.replace(config, memory=0))
    _, whole_logits, whole = jax.jit(lambda params, rows: streams.log_likelihoods(apart, params, {}, rows))(params, long)
    np.testing.assert_allclose(content, whole[:, 16:], atol=1e-5)
    np.testing.assert_allclose(logits, whole_logits, atol=1e-5)
    without = scored(config)(params, chosen.carry(32), second)[2]
    assert np.abs(np.asarray(without) - content).max() > 1e-2


@functools.cache
def slopes() -> Any:
    """Compiled: ((loss, carry), gradient by params and by states) of (params, carry, example, keys) in training."""
    chosen = streams.objective()

    def loss(params: Any, states: Any, filled: Any, example: Any, keys: Any) -> tuple[jax.Array, Any]:
        terms, _, carry = chosen.terms(params, {"states": states, "filled": filled}, example, keys, True)
        return terms["plm"], carry

    return jax.jit(jax.value_and_grad(loss, argnums=(0, 1), has_aux=True))


def test_a_fresh_row_sees_no_memory_and_an_unfilled_place_is_not_seen() -> None:
    """The loss has the gradient zero, exactly, by what is before a stream, and not zero by what is before the other rows."""
    chosen, params = streams.objective(), streams.drawn()
    example, keys = streams.corrupted(chosen, streams.batch_at(1))
    carry = remembered(chosen, 32)
    (_, after), (_, slope) = slopes()(params, carry["states"], carry["filled"], example, keys)
    fresh, real = example["fresh"] > 0, np.arange(24) >= 24 - carry["filled"][:, None]
    seen = np.asarray(slope).any((1, 3))
    assert fresh.any() and not fresh.all()
    assert (seen == (real & ~fresh[:, None])).all()
    assert (np.asarray(after["filled"]) == np.where(fresh, 16, np.minimum(24, carry["filled"] + 16))).all()
    np.testing.assert_array_equal(np.asarray(after["states"])[:, :, :8], carry["states"][:, :, 16:])


def test_a_batch_of_padding_has_no_loss_and_a_finite_gradient() -> None:
    """Of zeros, as a batch is filled up with, beside memory that is full or not there: the loss and every gradient are zero."""
    chosen, params = streams.objective(), streams.drawn()
    rows = {name: np.zeros_like(leaf) for name, leaf in streams.batch_at(0).items()}
    example, keys = streams.corrupted(chosen, rows)
    carry = remembered(chosen, 32)
    (loss, after), gradients = slopes()(params, carry["states"], carry["filled"], example, keys)
    assert loss == 0 and int(chosen.weights(example)["plm"]) == 0
    assert not any(np.asarray(leaf).any() for leaf in jax.tree.leaves(gradients)) and np.isfinite(after["states"]).all()


def test_outputs_are_those_of_the_content_stream_that_sees_everything() -> None:
    """An order in which nothing is predicted gives the same last layer, and the logits of the head on it."""
    config = dataclasses.replace(streams.CONFIG, memory=0)
    chosen, params = streams.objective(config), streams.drawn(config)
    rows = streams.batch_at(0) | {"direction": np.ones(32, np.int32)}
    given = jax.jit(chosen.outputs)(params, {name: rows[name] for name in ("tokens", "types", "positions", "segments")})
    example = {**streams.corrupted(chosen, rows)[0], "rank": np.zeros((32, 32), np.int32)}
    content = scored(config)(params, {}, example)[2]
    np.testing.assert_allclose(given["hidden"][-1], content, atol=1e-5)
    assert given["lm"].shape == (32, 32, 200) and given["hidden"].shape == (3, 32, 32, 16)


def test_flops_are_those_of_the_published_row() -> None:
    """3 · (each layer's products over 512 + 85 queries and 384 + 512 keys, and the vocabulary of 85 predictions)."""
    chosen = PlmConfig().build(XlnetConfig(), PhaseSetting(tiny.VOCABULARY, tiny.execution(), DataConfig(length=512, reuse=256)))
    w, queries, keys = 768, 597, 896
    layer = 2 * (queries * 2 * w * w + keys * 2 * w * w + queries * 8 * w * w + 3 * queries * keys * w)
    assert chosen.flops(512) == 3 * (12 * layer + 2 * 85 * w * 32000)


@pytest.mark.parametrize(
    "fields, data, words",
    [
        ({"permutation": 32}, {}, "objective.permutation is 32, which does not divide .* data.reuse 16 and the other 16 of data.length 32"),
        ({"permutation": 16}, {"length": 40}, "objective.permutation is 16, which does not divide"),
        ({"predictions": 28}, {}, "28 predictions a row, but a half of a row has 13 tokens .* lower objective.predictions"),
        ({"predictions": 85}, {}, "85 predictions a row, but a half of a row has 16 tokens"),
        ({}, {"reuse": 0}, "data.reuse is 0 and data.length 32"),
        ({}, {"reuse": 32}, "data.reuse is 32 and data.length 32"),
        ({"predictions": 1}, {}, "objective.predictions is 1; it is at least 2"),
        ({"memory": -1}, {}, "objective.memory is -1"),
        ({"memory": 10**12}, {}, "objective.memory is 1000000000000; it is at most"),
        ({"alpha": 1, "beta": 2}, {}, "objective.alpha is 1 and objective.beta 2"),
        ({"alpha": 1001, "beta": 1001}, {}, "objective.alpha is 1001 .* alpha is from beta to 1,000"),
        ({"longest": 10**9}, {}, "objective.longest is 1000000000; an n-gram has 100 words or tokens at most"),
        ({"unit": "spans"}, {}, "objective.unit is 'spans'; use words or tokens"),
        ({"shuffle": "none"}, {}, "objective.shuffle is 'none'; use own or shared"),
    ],
)
def test_lengths_that_do_not_fit_are_one_line(fields: dict, data: dict, words: str) -> None:
    with pytest.raises(UserError, match=words) as error:
        streams.objective(dataclasses.replace(streams.CONFIG, **fields), data=dataclasses.replace(streams.DATA, **data))
    assert "\n" not in str(error.value)


def test_a_phase_with_one_prediction_is_refused() -> None:
    """The second half would have none to choose."""
    with pytest.raises(UserError, match="phases.max_predictions is 1, .* use 2 or more"):
        streams.CONFIG.build(streams.MODEL, PhaseSetting(tiny.VOCABULARY, tiny.execution(), streams.DATA, 1))


def test_a_tokenizer_without_an_end_of_documents_is_refused() -> None:
    """That of WordPiece, say; a model that has none still opens."""
    named = dataclasses.replace(tiny.VOCABULARY, fingerprint="wordpiece")
    build = lambda vocabulary: streams.CONFIG.build(streams.MODEL, PhaseSetting(vocabulary, tiny.execution(), streams.DATA))
    with pytest.raises(UserError, match="data .*: the tokenizer has no <eod>.* `jaxenc tokenizer --type unigram`"):
        build(named)
    assert build(dataclasses.replace(named, eod=7)) and build(tiny.VOCABULARY)


def test_a_model_without_a_query_stream_is_refused() -> None:
    with pytest.raises(UserError, match="objective.kind plm .* set model.kind to xlnet.*, not bert"):
        streams.CONFIG.build(tiny.MODEL, PhaseSetting(tiny.VOCABULARY, tiny.execution(), streams.DATA))
