"""Texts scored in orders of one's choice by a model with two streams."""

import dataclasses
import functools
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxenc.data.tokenizers.sentencepiece import unigram
from jaxenc.errors import UserError
from jaxenc.inference import orders
from jaxenc.inference.model import Model
from jaxenc.objectives import encoder as encoders
from jaxenc.training.run import Run
from tests import tiny
from tests.objectives import streams
from tests.selection import FULL

TEXT = "a small fox saw me"
LINES = [TEXT, "the quick brown fox jumps over the lazy dog", "we saw a fox"]


@functools.cache
def model() -> Model:
    tokenizer = unigram.train(LINES * 20, 60)
    run = Run(objective=streams.CONFIG, model=streams.MODEL, data=streams.DATA).with_vocabulary(tokenizer.vocabulary)
    return Model(run, jax.tree.map(jnp.asarray, tiny.drawn(run)), tokenizer)


def alone(ids: Sequence[int], before: Sequence[int], after: Sequence[int]) -> float:
    """log p of the token at after[0], from a row whose tokens at `after` are other ones. Those at `before` came one after another, those at
    neither are seen by all."""
    objective = dataclasses.replace(model().objective, memory=0)
    tokens, rank = np.array([ids], np.int32), np.zeros((1, len(ids)), np.int32)
    rank[0, before], rank[0, after] = np.arange(1, len(before) + 1), len(before) + 1
    tokens[0, after] = (tokens[0, after] + 3) % 40
    at = np.array([[after[0]]], np.int32)
    example = {"tokens": tokens, "types": tokens * 0, "rank": rank, "predicted_at": at, "direction": np.ones(1, np.int32)}
    with jax.default_matmul_precision("highest"):
        given = objective.read(model().params, None, jax.tree.map(jnp.asarray, example), None)
        logits = encoders.apply(objective.head, model().params, given.query, given.table)
    return float(jax.nn.log_softmax(logits[0, 0])[ids[after[0]]])


def test_every_number_is_that_of_its_token_alone() -> None:
    """To 1e-5: each conditional computed by itself, in a row where what the order hides is another token. Whole orders, and a part of one
    whose other places every prediction sees."""
    (ids,) = model().tokenizer.encode([TEXT])
    n, score = len(ids), orders.scorer(model())
    forward, mixed = list(range(n)), np.random.default_rng(0).permutation(n).tolist()
    for chosen in ([mixed, forward[::-1]] if FULL else [mixed], [mixed[:2]]):
        found = score(TEXT, chosen)
        assert found.shape == (len(chosen), len(chosen[0])) and found.dtype == np.float32
        for order, row in zip(chosen, found, strict=True):
            assert np.abs(row - [alone(ids, order[:k], order[k:]) for k in range(len(order))]).max() <= 1e-5
    sums = score(TEXT, [forward, mixed]).sum(1)
    assert abs(sums[0] - sums[1]) > 1e-4, "an untrained model does not give two orders the same number"


def test_what_is_predicted_later_changes_nothing_of_what_came_before() -> None:
    """And a token that the order leaves out is seen by all."""
    score = orders.scorer(model())
    (ids,) = model().tokenizer.encode([TEXT])
    n = len(ids)
    first = score(TEXT, [list(range(n))])[0, :-1]
    assert np.abs(first - score(TEXT, [[*range(n - 1)]])[0]).max() > 0, "the last token is seen where the order leaves it out"
    swapped = score(TEXT, [[*range(n - 2), n - 1, n - 2]])[0]
    assert np.abs(first[: n - 2] - swapped[: n - 2]).max() <= 1e-6


class Numbers:
    """Reads the ids of a text that are written in it."""

    vocabulary = property(lambda self: model().tokenizer.vocabulary)

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        return [[int(word) for word in text.split()] for text in texts]


def test_the_probabilities_of_all_tokens_sum_to_one() -> None:
    """Of the first token of an order, of one that it predicts in the middle, and of one that is given all others (<= 1e-5)."""
    score = orders.scorer(dataclasses.replace(model(), tokenizer=Numbers()))
    for order in ([1, 0, 2], [0, 1, 2], [2, 0, 1], [1]):
        of = lambda token, order=order: score(f"7 {token} 9", [order])[0, order.index(1)]
        assert abs(sum(np.exp(np.float64(of(token))) for token in range(model().tokenizer.vocabulary.size)) - 1) <= 1e-5


@pytest.mark.parametrize("text", [["a", "b"], ["a"], None, 3])
def test_a_scorer_takes_one_text(text: object) -> None:
    with pytest.raises(UserError, match="a scorer takes one text; call it for each of several"):
        orders.scorer(model())(text, [[0]])


@pytest.mark.parametrize(
    "wrong, said",
    [
        ([[0, 99]], "use 0 to"),
        ([[0, -1]], "use 0 to"),
        ([[1, 1]], "name each place once"),
        ([0, 1], "give a list of orders"),
        ([[0.5]], "give a list of orders"),
        ([[0], [0, 1]], "give a list of orders"),
        ([], "give a list of orders"),
    ],
)
def test_what_is_no_order_is_refused(wrong: list, said: str) -> None:
    with pytest.raises(UserError, match=said):
        orders.scorer(model())(TEXT, wrong)


def test_another_objective_has_no_orders() -> None:
    other = Model(Run(), {}, model().tokenizer)
    with pytest.raises(UserError, match="objective.kind plm"):
        orders.scorer(other)
