"""The heads that predict an end given a start: losses, gradients and searches against loops in float64, and their use by objectives."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as nn

from jaxenc import rng, tree
from jaxenc.data.batch import check_ranges
from jaxenc.errors import UserError
from jaxenc.families.xlnet.model import XlnetConfig
from jaxenc.heads import BUILT_IN, span_search
from jaxenc.heads.contract import Head, Setting
from jaxenc.inference.model import Model
from jaxenc.objectives.heads import HeadsConfig
from jaxenc.training.run import Run
from tests import tiny
from tests.heads import reference_span_search as reference

WIDTH, LENGTH = 8, 12
XLNET = XlnetConfig(vocab_size=200, width=32, layers=1, heads=4, feed_forward=64, dropout=0.0, attention_dropout=0.0)
PAIR = dataclasses.replace(tiny.PAIR, layers=1, dropout=0.0, attention_dropout=0.0)
MODELS = {"joint_spans": PAIR, "beam_spans": XLNET}
# Row: tokens, the context from .. to, (start, end, answerable). CLS is the first token or the last one. The second row has no answer, the
# third ignores a label, the fourth has a context of one token, the last is padding.
ROWS = [(12, 3, 9, (4, 6, 1)), (9, 2, 5, None), (12, 3, 9, (4, -1, 1)), (6, 2, 3, (2, 2, 1)), (0, 0, 0, (0, 0, 0))]
NAMES = list(MODELS)
# Their biases add the same to every logit of a softmax.
SHIFTS = {"start", "end", "end_norm"}


def cls_of(name: str, tokens: int) -> int:
    return 0 if name == "joint_spans" else max(tokens - 1, 0)


def batch(name: str) -> dict[str, np.ndarray]:
    """ROWS as fields."""
    made = tiny.batch([tokens for tokens, *_ in ROWS], LENGTH)
    made["context"] = np.array([[start <= i < end for i in range(LENGTH)] for _, start, end, _ in ROWS], np.int32)
    labels = [own or (cls_of(name, tokens), cls_of(name, tokens), 0) for tokens, _, _, own in ROWS]
    columns = zip(("start", "end", "answerable"), np.array(labels, np.int32).T, strict=True)
    return made | dict(columns)


def wanted_rows(name: str) -> list[tuple | None]:
    """ROWS as the reference takes them."""
    given, out = batch(name), []
    for r, (tokens, *_) in enumerate(ROWS):
        cls, labels = cls_of(name, tokens), tuple(int(given[field][r]) for field in ("start", "end", "answerable"))
        allowed = (given["context"][r] > 0) | (np.arange(LENGTH) == cls)
        out.append((allowed, cls, labels) if tokens and min(labels) >= 0 else None)
    return out


def as_float64(params: Any) -> Any:
    return jax.tree.map(np.float64, jax.device_get(params))


@functools.cache
def built(name: str, rate: float = 0.0) -> tuple[Head, Any, Any, np.ndarray]:
    """(head, module, random parameters, random hidden states)"""
    random = np.random.default_rng(5)
    setting = Setting(WIDTH, WIDTH, 9, "gelu_erf", 1e-12, XLNET.initializer, tiny.execution(), (), "tanh", rate)
    module = BUILT_IN[name].module(setting)
    hidden = random.normal(0, 1, (len(ROWS), LENGTH, WIDTH)).astype(np.float32)
    shapes = jax.eval_shape(lambda: module.init(jax.random.key(0), hidden, batch(name), None, None))["params"]
    draw = lambda path, leaf: random.normal(path.endswith("scale"), 0.5, leaf.shape).astype(np.float32)
    return BUILT_IN[name], module, tree.map_with_path(draw, nn.unbox(shapes)), hidden


def assert_close(got: Any, wanted: Any, head: str = "") -> None:
    """<= 1e-5 by `tiny.assert_close`, of a head or of a model with this head. The biases that a softmax takes away, whose exact gradient is
    zero, are within 1e-6 of the largest slope."""
    largest = max(np.abs(leaf).max() for leaf in jax.tree.leaves(wanted))
    for slopes in (got, wanted):
        own = slopes[head] if head else slopes
        for name in SHIFTS & own.keys():
            assert np.abs(own[name].pop("bias")).max() <= 1e-6 * largest
    tiny.assert_close(got, wanted, 1e-5)


OF_ROW: dict[str, Callable] = {"joint_spans": reference.joint, "beam_spans": reference.beam}


@pytest.mark.parametrize("name", NAMES)
def test_the_loss_and_every_gradient_are_those_of_loops(name: str) -> None:
    """<= 1e-5, of the head's parameters and of the hidden states."""
    head, module, params, hidden = built(name)
    given = batch(name)
    counted = jnp.array([row is not None for row in wanted_rows(name)], jnp.int32)
    labels = {label.name: jnp.where(counted > 0, given[label.name], 0) for label in head.labels}

    def loss(params: Any, hidden: jax.Array) -> jax.Array:
        return head.loss(module.apply({"params": params}, hidden, given, labels, None), labels, counted)[0]

    with jax.default_matmul_precision("highest"):
        got, gradients = jax.jit(jax.value_and_grad(loss, argnums=(0, 1)))(params, hidden)
    wanted, of_params, of_hidden = reference.total(OF_ROW[name], as_float64(params), np.float64(hidden), wanted_rows(name))
    assert abs(float(got) - wanted) <= 1e-5 * wanted
    assert_close(jax.device_get(gradients[0]), of_params)
    tiny.assert_close({"hidden": np.asarray(gradients[1])}, {"hidden": of_hidden}, 1e-5)


@pytest.mark.parametrize("name, beam, activation", [("joint_spans", 20, reference.gelu), ("beam_spans", 5, reference.tanh)])
def test_the_search_is_that_of_loops(name: str, beam: int, activation: Callable) -> None:
    """Starts, ends and their scores of every row, in order; places that may not be answers come after all others."""
    _, module, params, hidden = built(name)
    found = jax.device_get(jax.jit(lambda: module.apply({"params": params}, hidden, batch(name), None, None))())
    shapes = {"start": (5, beam), "end": (5, beam, beam), "start_score": (5, beam), "end_score": (5, beam, beam), "no_answer": (5,)}
    assert {part: value.shape for part, value in found.items()} == shapes
    p, masked, few = as_float64(params), -1000.0 if name == "joint_spans" else -1e30, min(beam, LENGTH)
    for r, row in enumerate(wanted_rows(name)):
        if row is None:
            continue
        mask, first = np.where(row[0], 0, masked), name == "joint_spans"
        for i, (place, score, ends) in enumerate(reference.searched(p, np.float64(hidden[r]), mask, activation, first, beam)):
            if i < row[0].sum():  # the order of places that are masked is of no interest
                assert found["start"][r, i] == place and abs(found["start_score"][r, i] - score) <= 1e-4
                good = min(few, int(row[0].sum()))
                assert found["end"][r, i, :good].tolist() == [at for at, _ in ends[:good]]
                np.testing.assert_allclose(found["end_score"][r, i, :good], [one for _, one in ends[:good]], rtol=0, atol=1e-4)
        states = np.float64(hidden[r])
        logit = reference.no_answer(p, states, reference.layer(p["start"], states)[:, 0] + mask, row[1], activation, first)[0]
        assert abs(found["no_answer"][r] - logit) <= 1e-4 * max(1, abs(logit))
    assert (found["start"][:, few:] == span_search.NOWHERE).all() and (found["end"][:, :, few:] == span_search.NOWHERE).all()
    assert (found["start_score"][:, few:] == span_search.WORST).all() and (found["end"][:, few:] == span_search.NOWHERE).all()


@functools.cache
def loaded(name: str) -> Model:
    run = Run(objective=HeadsConfig(heads=(name,)), model=MODELS[name])
    return Model(run, jax.tree.map(jnp.asarray, tiny.drawn(run)), None)


@pytest.mark.parametrize("name", NAMES)
def test_an_objective_trains_and_predicts(name: str) -> None:
    """Its term is the reference's sum on its own hidden states, its gradient reaches the encoder and every layer of the head, and its
    predictions are the outputs of the model, one a row."""
    model = loaded(name)
    built, params = model.objective, model.params
    given, keys = batch(name), rng.training(0, jnp.int32(0), len(ROWS))
    assert int(built.weights(given)[name]) == 3

    def loss(params: Any) -> tuple[jax.Array, Any]:
        terms, metrics, _ = built.terms(params, {}, given, keys, train=True)
        return terms[name], metrics

    @jax.jit
    def everything(params: Any) -> Any:
        return jax.value_and_grad(loss, has_aux=True)(params), model.apply(params, given), built.predict(params, given, keys)

    ((total, metrics), slopes), outputs, predictions = everything(params)
    wanted, of_params, _ = reference.total(OF_ROW[name], as_float64(params[name]), np.float64(outputs["hidden"][-1]), wanted_rows(name))
    assert abs(float(total) - wanted) <= 1e-5 * wanted and float(metrics[f"{name}_loss"][0]) == float(total)
    assert_close(jax.device_get(slopes[name]), of_params)
    still = {path for path, slope in tree.leaves(slopes) if not np.abs(slope).max() > 0}
    left = {path for path in still if path.startswith((name, "encoder/layer_00/attention/value"))}
    assert left <= {f"{name}/{shift}/bias" for shift in SHIFTS}
    parts = ("start", "end", "start_score", "end_score", "no_answer")
    assert set(predictions) == {f"{name}_{part}" for part in parts}
    assert {outputs[key].dtype for key in predictions} == {jnp.dtype("int32"), jnp.dtype("float32")}
    for key, value in predictions.items():
        np.testing.assert_allclose(value[:4], outputs[key][:4], rtol=1e-5, atol=1e-5)


def test_the_accuracies_are_of_both_ends_and_of_no_answer() -> None:
    logits = {"start": jnp.array([[0.0, 2, 1], [3, 0, 0]]), "end": jnp.array([[0.0, 2, 1], [3, 0, 0]]), "no_answer": jnp.array([-1.0, 1.0])}
    labels = {"start": jnp.array([1, 1]), "end": jnp.array([2, 0]), "answerable": jnp.array([1, 1])}
    _, found = span_search.loss(logits, labels, jnp.ones(2, jnp.int32))
    assert (float(found["accuracy"]), float(found["answerable_accuracy"])) == (1.0, 1.0)


def test_dropout_is_before_the_last_layer_of_no_answer_alone() -> None:
    """As in zihangdai/xlnet; the other head has none, and neither has it in a search."""
    keys = rng.training(0, jnp.int32(0), len(ROWS))
    labels = {label: jnp.zeros(len(ROWS), jnp.int32) for label in ("start", "end", "answerable")}
    for name, moves in (("joint_spans", False), ("beam_spans", True)):
        _, module, params, hidden = built(name, rate=0.5)
        run = functools.partial(module.apply, {"params": params}, hidden, batch(name), labels)
        quiet, noisy = jax.jit(lambda keys, run=run: (run(None), run(keys)))(keys)
        assert {part: bool((quiet[part] == noisy[part]).all()) for part in quiet} == {"start": True, "end": True, "no_answer": not moves}


def test_an_objective_gives_the_head_its_noise_in_training() -> None:
    """With the same dropout in the encoder, the head's own changes the loss, in training only."""
    name = "beam_spans"
    built = tiny.objective(HeadsConfig(heads=(name,)), dataclasses.replace(XLNET, dropout=0.5))
    one = built.heads[name]
    without = dataclasses.replace(built, heads={name: dataclasses.replace(one, module=one.module.clone(dropout=0.0))})
    keys, given = rng.training(0, jnp.int32(0), len(ROWS)), batch(name)
    of = lambda which, params, train: which.terms(params, {}, given, keys, train)[0][name]
    found = jax.jit(lambda params: [[of(which, params, train) for which in (built, without)] for train in (True, False)])
    noisy, quiet = found(loaded(name).params)
    assert abs(noisy[0] - noisy[1]) > 1e-3 and quiet[0] == quiet[1]


@pytest.mark.parametrize("name", NAMES)
def test_without_a_context_every_token_may_be_an_answer(name: str) -> None:
    """A model that is only applied gets no such field; padding is no answer there either."""
    _, module, params, hidden = built(name)
    given = batch(name)
    del given["context"]
    every = given | {"context": given["segments"]}
    one, other = (module.apply({"params": params}, hidden, fields, None, None) for fields in (given, every))
    assert all((one[part] == other[part]).all() for part in one)
    assert set(np.asarray(one["start"][3]).tolist()[:5]) <= set(range(6))


def test_the_context_is_a_field_with_bounds() -> None:
    built = loaded("joint_spans").objective
    assert {name: built.reads[name] for name in ("context", "answerable", "start")} == {"context": 2, "answerable": 2, "start": 64}
    assert built.fields["context"].shape == ("length",) and built.fields["answerable"].shape == ()
    with pytest.raises(UserError, match="the rows hold context from 0 to 2"):
        check_ranges({"context": np.array([[0, 2]], np.int32)}, {"context": 2}, built.fields)


def test_heads_of_one_family_are_refused_by_another() -> None:
    with pytest.raises(UserError, match="joint_spans is not a head of model.kind xlnet"):
        tiny.objective(HeadsConfig(heads=("joint_spans",)), XLNET)
    with pytest.raises(UserError, match="does not choose between texts"):
        tiny.objective(HeadsConfig(heads=("joint_spans",), choices=2), PAIR)
