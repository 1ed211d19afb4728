"""Bidirectional language modelling: the losses against those of the outputs, what the state is, and what is drawn."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxenc.data import characters
from jaxenc.errors import UserError
from jaxenc.families.elmo.model import ElmoConfig
from jaxenc.objectives import bilm, parts
from jaxenc.objectives.base import PhaseSetting
from jaxenc.objectives.bilm import BilmConfig
from jaxenc.objectives.heads import HeadsConfig
from jaxenc.objectives.mlm import MlmConfig
from jaxenc.objectives.sampled import LogUniform
from tests import tiny
from tests.objectives import sentences

FULL = dataclasses.replace(sentences.CONFIG, softmax="full")
WORDS = dataclasses.replace(sentences.MODEL, input="tokens", words=300)


def random_state(chosen: bilm.Bilm, rows: int, seed: int = 0) -> Any:
    random = np.random.default_rng(seed)
    return jax.tree.map(lambda leaf: jnp.asarray(random.uniform(-1, 1, leaf.shape), leaf.dtype), chosen.carry(rows))


def text_rows(rows: int, length: int, seed: int = 3) -> dict[str, np.ndarray]:
    """Rows that each are one whole sentence: <S> and random words are read, the words and </S> predicted; backward the other way round."""
    words = np.random.default_rng(seed).integers(3, 200, (rows, length - 1))
    begin, end = np.zeros((rows, 1), int), np.ones((rows, 1), int)
    text = np.concatenate([begin, words, end], axis=1)
    batch = sentences.batch_at(0, rows, length)
    fields = {"tokens": text[:, :-1], "targets": text[:, 1:], "reverse_tokens": text[:, :0:-1], "reverse_targets": text[:, -2::-1]}
    return batch | {name: ids.astype(np.int32) for name, ids in fields.items()} | {"segments": np.ones((rows, length), np.int32)}


def test_the_losses_are_those_of_the_outputs() -> None:
    """A sentence a row, which begins fresh: -log softmax of the logits that `outputs` gives for the text with both its markers, in NumPy,
    <= 1e-5; the accuracy exactly."""
    chosen, params = sentences.objective(FULL, WORDS), sentences.drawn(FULL, WORDS)
    rows = text_rows(6, 7)
    text = np.concatenate([rows["tokens"], rows["targets"][:, -1:]], axis=1)
    given = jax.jit(chosen.outputs)(params, {"tokens": jnp.asarray(text), "segments": jnp.ones(text.shape, jnp.int32)})
    _, metrics, _ = sentences.terms(chosen, params, random_state(chosen, 6), rows | {"fresh": np.ones(6, np.int32)})
    for name, places, targets in (("forward", slice(None, -1), text[:, 1:]), ("backward", slice(1, None), text[:, :-1])):
        logits = np.float64(given[name])[:, places]
        nats = np.log(np.exp(logits).sum(-1)) - np.take_along_axis(logits, targets[..., None], -1)[..., 0]
        total, count = metrics[f"{name}_loss"]
        assert count == 42 and float(total) == pytest.approx(nats.sum(), rel=1e-5)
        assert metrics[f"{name}_accuracy"][0] == (logits.argmax(-1) == targets).sum()
    assert given["forward"].shape == (6, 8, 200) and given["hidden"].shape == (3, 6, 8, 16)


def test_a_later_word_changes_no_earlier_prediction() -> None:
    """Exactly zero, forward; and backward, an earlier word changes no later prediction. Each row has its other word at another place."""
    chosen, params = sentences.objective(), jax.tree.map(lambda leaf: 5 * leaf, sentences.drawn())
    rows = text_rows(1, 7)
    spelled = {"characters": rows["characters"], "segments": rows["segments"], "tokens": rows["tokens"]}
    many = {name: np.repeat(leaf, 8, axis=0) for name, leaf in spelled.items()}
    for place in range(7):
        many["characters"][place, place] = characters.of_words(["another"])[0]
    given = jax.jit(chosen.outputs)(params, {name: jnp.asarray(leaf) for name, leaf in many.items()})
    places = np.arange(7)
    for name, same in (("forward", places < places[:, None]), ("backward", places > places[:, None])):
        changed = np.abs(given[name][:7] - given[name][7]).max(axis=-1)
        assert (changed[same] == 0).all() and (changed.diagonal() > 0).all()


def test_state_goes_on_but_for_fresh_rows_and_padding() -> None:
    """A row that is not fresh reads the state, one that is reads zeros; both exactly. Padding keeps the state as it was."""
    chosen, params = sentences.objective(FULL), sentences.drawn(FULL)
    rows, first, second = sentences.batch_at(1, 16), random_state(sentences.objective(), 16), random_state(sentences.objective(), 16, 1)
    after = [sentences.terms(chosen, params, carry, rows)[2] for carry in (first, second, chosen.carry(16))]
    padded = ~rows["segments"].any(axis=1)
    assert padded.sum() == 2 and 2 < rows["fresh"].sum() < 8
    for one, other, zeros, before in zip(*map(jax.tree.leaves, (*after, first)), strict=True):
        fresh = rows["fresh"] > 0
        np.testing.assert_array_equal(one[fresh], other[fresh])
        np.testing.assert_array_equal(one[fresh & ~padded], zeros[fresh & ~padded])
        assert (np.abs(one - other).max(axis=(1, 2)) > 0)[~fresh].all()
        np.testing.assert_array_equal(one[padded & ~fresh], before[padded & ~fresh])
        assert not one[padded & fresh].any()


def test_two_rows_are_one_long_row() -> None:
    """Read in two steps with the state between them or at once: the same losses, <= 1e-5. The backward rows come from the end."""
    chosen, params = sentences.objective(FULL, WORDS), sentences.drawn(FULL, WORDS)
    whole = text_rows(4, 8) | {"fresh": np.ones(4, np.int32)}
    cut = lambda places: {name: leaf[:, places] if leaf.ndim > 1 else leaf for name, leaf in whole.items()}
    _, at_once, state = sentences.terms(chosen, params, chosen.carry(4), whole)
    _, one, between = sentences.terms(chosen, params, chosen.carry(4), cut(slice(0, 3)))
    _, two, end = sentences.terms(chosen, params, between, cut(slice(3, 8)) | {"fresh": np.zeros(4, np.int32)})
    for name in ("forward_loss", "backward_loss"):
        assert float(one[name][0] + two[name][0]) == pytest.approx(float(at_once[name][0]), rel=1e-5)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-6), end, state)


def test_held_out_numbers_are_of_the_full_softmax_in_any_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever training samples, and whether 8 places or 3 are computed at once, <= 1e-6; its gradient too."""
    rows, params = sentences.batch_at(0), sentences.drawn()
    full = sentences.objective(FULL)
    example, keys = sentences.inputs(full, rows)
    loss = lambda chosen: lambda params: sum(chosen.terms(params, chosen.carry(32), example, keys, False)[0].values())
    want = jax.jit(jax.value_and_grad(loss(full)))(params)
    assert float(jax.jit(loss(sentences.objective()))(params)) == pytest.approx(float(want[0]), rel=1e-6)
    monkeypatch.setattr(parts, "LOGITS", 3 * 32 * 256)
    got = jax.jit(jax.value_and_grad(loss(full)))(params)
    assert float(got[0]) == pytest.approx(float(want[0]), rel=1e-6)
    tiny.assert_close(jax.device_get(got[1]), jax.device_get(want[1]), 1e-6)


def test_training_draws_one_set_a_step_and_direction() -> None:
    """The sums against a NumPy loop over what is read with dropout, its ids drawn by the key of the step and the direction, <= 1e-5."""
    chosen, params, table = sentences.objective(), sentences.drawn(), np.float64(sentences.drawn()["softmax"]["table"])
    read = jax.jit(lambda carry, example, keys: chosen.read(params, carry, example, keys)[0])
    k = np.arange(200)
    expected = np.log(-np.expm1(chosen.law.tries * np.log1p(-np.log1p(1 / (k + 1)) / np.log(201))))
    sets = []
    for step in (0, 1):
        rows = sentences.batch_at(step, 8)
        (example, keys), carry = sentences.inputs(chosen, rows, step), random_state(chosen, 8)
        both = read(carry, example, keys)
        terms, metrics, _ = sentences.terms(chosen, params, carry, rows, step, train=True)
        for name, field in (("forward", "targets"), ("backward", "reverse_targets")):
            ids = chosen.law.draw(keys.shared("sample", name)).tolist()
            sets.append(tuple(sorted(ids)))
            logits = np.float64(getattr(both, name)) @ table.T[:, :200] + np.float64(params["softmax"]["bias"])[:200] - expected
            total = 0.0
            for row, place in zip(*np.nonzero(rows["segments"]), strict=True):
                target, own = rows[field][row, place], logits[row, place]
                total += np.log(np.exp(own[[target, *(i for i in ids if i != target)]]).sum()) - own[target]
            assert float(terms[name]) == pytest.approx(total, rel=1e-5)
            assert metrics[f"{name}_sampled_loss"][0] == terms[name] and f"{name}_loss" not in metrics
    assert len(set(sets)) == 4 and all(len(set(ids)) == 50 for ids in sets)


def test_with_as_many_negatives_as_ids_training_is_the_full_softmax() -> None:
    assert sentences.objective(dataclasses.replace(sentences.CONFIG, negatives=200)) == sentences.objective(FULL)
    assert sentences.objective(dataclasses.replace(sentences.CONFIG, negatives=199)).law == LogUniform(200, 199)


def test_the_loss_is_half_of_each_direction_times_the_scale() -> None:
    assert sentences.objective().coef == {"forward": 10.0, "backward": 10.0}
    assert sentences.objective(dataclasses.replace(FULL, scale=1.0)).coef == {"forward": 0.5, "backward": 0.5}


def test_perplexities_are_those_of_the_means() -> None:
    chosen = sentences.objective()
    sums = {"forward_loss": (np.float64(8), np.float64(4)), "backward_loss": (np.float64(4), np.float64(4))}
    told = chosen.summary(sums)
    assert told["forward_perplexity"] == pytest.approx(np.exp(2)) and told["backward_perplexity"] == pytest.approx(np.exp(1))
    assert told["perplexity"] == pytest.approx(np.exp(1.5)) and told["forward_loss"] == 2
    sampled = chosen.summary({f"{name}_sampled_loss": (np.float64(1), np.float64(1)) for name in ("forward", "backward")})
    assert not any("perplexity" in name for name in sampled)


def test_flops_are_those_of_the_published_row() -> None:
    """3 · (of each of 20 words and 2 directions: the characters, two layers, and 8,193 rows of the softmax)."""
    chosen = BilmConfig().build(ElmoConfig(), PhaseSetting(tiny.VOCABULARY, tiny.execution(), sentences.DATA))
    filters = zip(range(1, 8), (32, 32, 64, 128, 256, 512, 1024), strict=True)
    word = sum((51 - width) * width * 16 * count for width, count in filters) + 2 * 2 * 2048**2 + 2048 * 512
    layer = 1024 * 16384 + 4096 * 512
    assert chosen.flops(20) == 3 * 2 * 2 * 20 * (word + 2 * layer + 512 * 8193)


@pytest.mark.parametrize("config", [MlmConfig(), HeadsConfig(heads=("pooler", "classifier"), labels=("a", "b"))], ids=["mlm", "heads"])
def test_an_objective_of_encoders_is_refused_in_one_line(config: Any) -> None:
    with pytest.raises(UserError, match=f"^objective.kind {config.kind} takes an encoder; set model.kind to bert .* not elmo$"):
        config.build(sentences.MODEL, PhaseSetting(tiny.VOCABULARY, tiny.execution(), sentences.DATA))


def test_masked_words_need_a_mask() -> None:
    vocabulary = dataclasses.replace(tiny.VOCABULARY, mask=-1)
    with pytest.raises(UserError, match="objective.kind mlm: the tokenizer has no mask; .* --type wordpiece or bpe"):
        MlmConfig().build(tiny.MODEL, PhaseSetting(vocabulary, tiny.execution(), sentences.DATA))


@pytest.mark.parametrize(
    "fields, words",
    [
        ({"softmax": "sparse"}, "objective.softmax is 'sparse'; use sampled or full"),
        ({"negatives": 0}, "objective.negatives is 0; it is at least 1"),
        ({"scale": 0.0}, "objective.scale is 0.0; it takes a positive number"),
    ],
)
def test_a_setting_that_cannot_be_is_one_line(fields: dict, words: str) -> None:
    with pytest.raises(UserError, match=words):
        BilmConfig(**fields)


def test_a_model_that_reads_one_way_is_refused() -> None:
    with pytest.raises(UserError, match="objective.kind bilm takes a model that reads both ways; set model.kind to elmo.*, not bert"):
        sentences.CONFIG.build(tiny.MODEL, PhaseSetting(tiny.VOCABULARY, tiny.execution(), sentences.DATA))
