"""Heads that fine-tuning adds to those of pretraining: numbers, sets of labels, and GPT's auxiliary language model, against loops."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxenc import rng
from jaxenc.data.batch import Batch, check_ranges, empty
from jaxenc.errors import UserError
from jaxenc.families.albert.model import AlbertConfig
from jaxenc.families.bert.model import BertConfig
from jaxenc.families.contract import EncoderConfig
from jaxenc.families.distilbert.model import DistilbertConfig
from jaxenc.families.electra.model import ElectraConfig
from jaxenc.families.gpt.model import GptConfig
from jaxenc.families.network_pair.model import NetworkPairConfig
from jaxenc.families.states import States
from jaxenc.families.xlnet.model import XlnetConfig
from jaxenc.heads.first_token import FIRST_TOKEN
from jaxenc.heads.pooler import POOLER
from jaxenc.heads.regressor import loss as squared_error
from jaxenc.layers.dropout import dropout
from jaxenc.objectives import encoder as encoders
from jaxenc.objectives.heads import Heads, HeadsConfig
from jaxenc.training.run import Run
from tests import tiny
from tests.families.reference_bert import dense

LABELS = ("good", "bad", "ugly")
LENGTHS = (12, 7, 3, 12, 0)
QUIET = dataclasses.replace(tiny.MODEL, layers=1, dropout=0.0, attention_dropout=0.0)
GPT = GptConfig(200, 32, 1, 2, 64, 64, dropout=0.0, table_dropout=0.0, attention_dropout=0.0)
BOTH = HeadsConfig(("pooler", "regressor", "multilabel"), LABELS)


def rows() -> Batch:
    """Five texts, the last one padding. Row 1 has no score; row 2 has one known class, row 3 none."""
    score = np.float32([0.5, np.nan, -3.0, 5.0, 1.0])
    classes = np.int32([[1, 0, 1], [0, 0, 0], [-1, 1, -1], [-1, -1, -1], [1, 1, 1]])
    return {**tiny.batch(LENGTHS, 12), "score": score, "classes": classes}


@functools.cache
def built(config: HeadsConfig = BOTH, model: EncoderConfig = QUIET) -> tuple[Heads, dict]:
    """(objective, parameters)"""
    return tiny.objective(config, model, 12), jax.tree.map(jnp.asarray, tiny.drawn(Run(objective=config, model=model)))


def terms_of(objective: Heads, params: dict, batch: Batch) -> tuple[dict, dict]:
    keys = rng.training(0, jnp.int32(0), len(batch["tokens"]))
    return jax.tree.map(np.float64, jax.jit(lambda params: objective.terms(params, {}, batch, keys, False)[:2])(params))


def test_scores_and_sets_of_labels_are_those_of_loops() -> None:
    """Sums, counts and right answers from the last hidden states, one label at a time (<= 1e-5)."""
    objective, params = built()
    batch, p = rows(), jax.device_get(params)
    terms, metrics = terms_of(objective, params, batch)
    pooled = np.tanh(dense(np.float64(jax.jit(objective.outputs)(params, batch)["hidden"][-1][:, 0]), p["pooler"]["dense"]))
    values, logits = dense(pooled, p["regressor"]["dense"])[:, 0], dense(pooled, p["multilabel"]["dense"])
    error, loss, correct = 0.0, 0.0, 0
    for row in (0, 2, 3):
        error += (values[row] - batch["score"][row]) ** 2
    for row, label in ((0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (2, 1)):
        odds = 1 / (1 + np.exp(-logits[row, label]))
        there = batch["classes"][row, label]
        loss -= np.log(odds if there else 1 - odds)
        correct += (odds > 0.5) == there
    assert {name: int(count) for name, count in objective.weights(batch).items()} == {"regressor": 3, "multilabel": 7}
    assert abs(terms["regressor"] - error) <= 1e-5 * error and abs(terms["multilabel"] - loss) <= 1e-5 * loss
    assert tuple(metrics["multilabel_accuracy"]) == (correct, 7) and metrics["regressor_loss"][1] == 3
    keys = rng.evaluation(0, np.arange(5, dtype=np.uint32))
    found = jax.jit(lambda params: objective.predict(params, batch, keys))(params)
    assert found["regressor"].shape == (5,) and found["multilabel"].shape == (5, 3)
    np.testing.assert_allclose(found["regressor"], values, rtol=0, atol=1e-5)
    np.testing.assert_allclose(found["multilabel"], 1 / (1 + np.exp(-logits)), rtol=0, atol=1e-5)


@pytest.mark.parametrize("rows", [1, 4])
def test_a_score_for_each_row_is_never_a_matrix(rows: int) -> None:
    """[rows, 1] minus [rows] is [rows, rows], which trains without an error and learns the mean."""
    score, counted = jnp.arange(rows, dtype=jnp.float32), jnp.ones(rows, jnp.int32)
    with pytest.raises(ValueError, match="the predictions have the shape"):
        squared_error(jnp.zeros((rows, 1)), {"score": score}, counted)
    assert float(squared_error(jnp.zeros(rows), {"score": score}, counted)[0]) == sum(i * i for i in range(rows))


def test_a_set_of_labels_is_a_field_with_an_axis_of_classes() -> None:
    objective, _ = built()
    batch = empty(objective.reads, 5, 12, objective.fields)
    assert batch["classes"].shape == (5, 3) and batch["score"].dtype == np.float32
    check_ranges({**batch, **rows()}, objective.reads, objective.fields)
    with pytest.raises(UserError, match="the rows hold classes from 0 to 2, and the model takes -1 to 1"):
        check_ranges({**batch, "classes": np.full((5, 3), 2) * (np.arange(5) == 1)[:, None]}, objective.reads, objective.fields)


def test_a_family_says_what_pools() -> None:
    """A head of its own, and ELECTRA's classifier reads the first token's hidden state itself."""
    kinds = {
        BertConfig: "pooler",
        ElectraConfig: "first_token",
        XlnetConfig: "summary",
        GptConfig: "last_token",
        NetworkPairConfig: "pooler",
    }
    assert {kind: kind().pools for kind in kinds} == kinds
    hidden = np.random.default_rng(0).normal(size=(2, 3, 4))
    assert (FIRST_TOKEN.module(None).apply({}, hidden, np.ones((2, 3), np.int32)) == hidden[:, 0]).all()


def test_dropout_on_what_heads_read_is_the_familys_or_ones_own() -> None:
    """The published rates: 0.1 in ALBERT's second version too, whose layers have none; 0.2 in DistilBERT; twice in RoBERTa's head."""
    rates = lambda model, *heads: tuple(model.head_dropout(head) for head in heads)
    all_of = ("pooler", "classifier", "regressor", "multilabel", "choice", "tags", "spans", "mlm")
    roberta = dataclasses.replace(BertConfig(), first_position=2)
    assert rates(BertConfig(), *all_of) == (0, 0.1, 0.1, 0.1, 0.1, 0.1, 0, 0) == rates(AlbertConfig(), *all_of)
    assert rates(roberta, *all_of) == (0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0, 0) == rates(ElectraConfig(), *all_of)
    assert rates(DistilbertConfig(), *all_of) == (0, 0.2, 0.2, 0.2, 0.2, 0.1, 0.1, 0)
    assert rates(XlnetConfig(), "summary", *all_of[1:-1]) == (0, 0.1, 0.1, 0.1, 0.1, 0, 0)
    assert rates(GptConfig(), "last_token", "classifier", "choice", "next_token") == (0, 0.1, 0.1, 0)
    found = tiny.objective(dataclasses.replace(BOTH, dropout=(0.25, 0.5, 0.0)), QUIET).heads
    assert {name: one.dropout for name, one in found.items()} == {"pooler": 0.25, "regressor": 0.5, "multilabel": 0.0}
    assert {one.dropout for one in built()[0].heads.values()} == {0.0}


def test_a_pooler_drops_what_it_reads() -> None:
    """The first dropout of RoBERTa's head: half of the first token's elements, twice as large, before the dense layer (<= 1e-5)."""
    objective = tiny.objective(dataclasses.replace(BOTH, dropout=(0.5, 0.0, 0.0)), QUIET)
    _, params = built()
    hidden, keys = np.random.default_rng(0).normal(0, 1, (5, 12, 32)).astype(np.float32), rng.training(0, jnp.int32(0), 5)
    states = States(hidden, params["embeddings"]["token"]["table"])
    found = jax.jit(lambda: encoders.logits(objective.heads, params, states, rows()["segments"], keys)["pooled"])()
    dropped = np.float64(dropout(hidden, 0.5, keys, POOLER.site))[:, 0]
    assert 0.3 < (dropped == 0).mean() < 0.7
    np.testing.assert_allclose(found, np.tanh(dense(dropped, jax.device_get(params)["pooler"]["dense"])), rtol=0, atol=1e-5)


@functools.cache
def choosing(weights: tuple[float, ...] = (1.0, 0.5, 2.0)) -> tuple[Heads, dict]:
    return built(HeadsConfig(("choice", "next_token", "last_token"), choices=3, weights=weights), GPT)


def test_a_language_model_is_trained_beside_a_choice() -> None:
    """As GPT's fine-tuning: the log-likelihood of every token of every text but the first, and nothing of an empty choice (<= 1e-5)."""
    objective, params = choosing()
    lengths = np.array([[12, 7, 3], [5, 0, 9]])
    texts = {name: array for name, array in tiny.batch(lengths.reshape(-1).tolist(), 12).items() if name in objective.encoder.config.inputs}
    batch = {name: array.reshape(2, 3, 12) for name, array in texts.items()} | {"choice": np.int32([1, 2])}
    terms, metrics = terms_of(objective, params, batch)
    logits = np.float64(jax.jit(objective.outputs)(params, texts)["next_token"])
    loss, correct, count = 0.0, 0, 0
    for text, length in enumerate(lengths.reshape(-1)):
        for place in range(length - 1):
            scores, token = logits[text, place], texts["tokens"][text, place + 1]
            loss += np.log(np.exp(scores).sum()) - scores[token]
            correct += scores[token] == scores.max()
            count += 1
    assert {name: int(value) for name, value in objective.weights(batch).items()} == {"choice": 2, "next_token": count}
    assert abs(terms["next_token"] - loss) <= 1e-5 * loss and objective.coef == {"choice": 1.0, "next_token": 0.5}
    assert tuple(metrics["next_token_accuracy"]) == (correct, count)
    alone, _ = choosing((1.0, 0.0, 1.0))
    assert alone.coef == {"choice": 1.0} and set(terms_of(alone, params, batch)[0]) == {"choice"}
    keys = rng.evaluation(0, np.arange(2, dtype=np.uint32))
    assert set(jax.eval_shape(lambda: objective.predict(params, batch, keys))) == {"choice"}


@pytest.mark.parametrize(
    "config, model, said",
    [
        (
            HeadsConfig(("next_token",)),
            QUIET,
            "the head next_token learns to predict tokens that it then sees; set model.attention to causal",
        ),
        (HeadsConfig(("first_token", "classifier"), LABELS), QUIET, "first_token is not a head of model.kind bert"),
        (HeadsConfig(("pooler", "multilabel")), QUIET, "objective.labels is empty; name the classes of multilabel"),
        (HeadsConfig(("regressor",)), QUIET, "objective.heads holds regressor without pooler or summary"),
    ],
)
def test_what_does_not_fit_the_model_is_one_line(config: HeadsConfig, model: EncoderConfig, said: str) -> None:
    with pytest.raises(UserError) as error:
        tiny.objective(config, model)
    assert said in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    "weights, said",
    [
        ((1.0,), "objective.weights has 1 numbers, and objective.heads names 2; give a number for each head, in the order of"),
        ((1.0, -0.5), "objective.weights holds -0.5; use finite numbers that are not negative"),
        ((1.0, float("nan")), "objective.weights holds nan; use finite"),
        ((1.0, float("inf")), "objective.weights holds inf; use finite"),
    ],
)
def test_weights_that_are_none_are_one_line(weights: tuple[float, ...], said: str) -> None:
    with pytest.raises(UserError, match="objective.weights") as error:
        HeadsConfig(("pooler", "regressor"), weights=weights)
    assert said in str(error.value)


def test_a_rate_that_is_none_is_one_line() -> None:
    with pytest.raises(UserError, match=r"objective.dropout holds 1.0; use rates from 0 up to but not including 1"):
        HeadsConfig(("pooler", "regressor"), dropout=(0.1, 1.0))
