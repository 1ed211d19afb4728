"""Replaced-token detection: the published rule in NumPy, whose gradient reaches what, its metrics, and batches with nothing to learn.

Each objective is compiled once for all that a test asks of it.
"""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxenc import rng, tree
from jaxenc.errors import UserError
from jaxenc.families.electra.model import ElectraConfig
from jaxenc.objectives.corrupt import sample
from jaxenc.objectives.rtd import Rtd, RtdConfig
from jaxenc.training.accumulate import combine
from jaxenc.training.run import Run
from tests import tiny
from tests.families import reference_electra as reference

LENGTHS = (16, 9, 3, 1, 0, 12)
CLEAN = RtdConfig(rate=0.4)
PUBLISHED = RtdConfig(rate=0.4, mask_share=0.85, with_replacement=True, temperature=0.7)
SHARED = dataclasses.replace(tiny.PAIR, layers=1)
UNTIED = dataclasses.replace(SHARED, sharing="none")
# Both ways to mask and both ways to share, each once.
SETTINGS = pytest.mark.parametrize("config, model", [(CLEAN, UNTIED), (PUBLISHED, SHARED)], ids=["clean", "published"])


@functools.cache
def opened(config: RtdConfig, model: ElectraConfig) -> tuple[Rtd, Any]:
    """The objective on rows of 16 places, and random parameters."""
    return tiny.objective(config, model, 16), tiny.drawn(Run(objective=config, model=model))


@functools.cache
def corruption(config: RtdConfig) -> Any:
    return jax.jit(jax.vmap(opened(config, SHARED)[0].corrupt, in_axes=(0, 0, None)))


def corrupted(config: RtdConfig, rows: tiny.Batch | None = None) -> tuple[dict[str, np.ndarray], rng.Keys]:
    """(example, keys) of six rows, in training step 4."""
    rows, keys = tiny.batch(LENGTHS, 16) if rows is None else rows, rng.training(0, jnp.int32(4), 6)
    example = corruption(config)(keys.per_row("corrupt", "mask"), tiny.reads(rows, opened(config, SHARED)[0]), keys.step)
    return jax.device_get(example), keys


@functools.cache
def quiet(config: RtdConfig, model: ElectraConfig) -> Any:
    """Compiled: ({term: sum}, metrics, the discriminator's rows) of (params, example, keys), without dropout."""
    objective, _ = opened(config, model)

    @jax.jit
    def run(params: Any, example: Mapping[str, Any], keys: rng.Keys) -> tuple:
        rows = objective.generator.sampled(objective.generator.logits(params, example, None), example, keys)
        return *objective.terms(params, {}, example, keys, False)[:2], rows

    return lambda *given: jax.device_get(run(*given))


@functools.cache
def trained(config: RtdConfig, model: ElectraConfig) -> Any:
    """Compiled: (values, their gradients, metrics) of (params, example, keys), with dropout; values: {each term's sum, and `loss`}."""
    objective, _ = opened(config, model)

    @jax.jit
    def run(params: Any, example: Mapping[str, Any], keys: rng.Keys) -> tuple:
        def values(params: Any) -> tuple[dict, dict]:
            sums, metrics, _ = objective.terms(params, {}, example, keys, True)
            return {**sums, "loss": combine(objective, sums, objective.weights(example))}, metrics

        found, pull, metrics = jax.vjp(values, params, has_aux=True)
        slopes = jax.vmap(pull)(dict(zip(found, jnp.eye(len(found)), strict=True)))[0]
        return found, {name: jax.tree.map(lambda leaf, i=i: leaf[i], slopes) for i, name in enumerate(found)}, metrics

    return lambda *given: jax.device_get(run(*given))


@pytest.mark.parametrize(
    "config, model",
    [(CLEAN, UNTIED), (PUBLISHED, SHARED), (dataclasses.replace(PUBLISHED, detects="chosen"), SHARED)],
    ids=["clean", "published", "chosen"],
)
def test_loss_and_metrics_equal_a_slow_reference(config: RtdConfig, model: ElectraConfig) -> None:
    """float64, one token at a time, from the same masks and the same noise: <= 1e-5 of each sum. Counts are equal."""
    (objective, params), (example, keys) = opened(config, model), corrupted(config)
    losses, metrics, _ = quiet(config, model)(params, example, keys)
    wide, lengths = jax.tree.map(np.float64, params), example["segments"].sum(1)
    inputs = (example["types"], example["positions"], np.maximum(lengths, 1))  # What a row of padding looks at counts for nothing.
    generated = reference.encode(wide, model, "generator", example["tokens"], *inputs)[-1]
    noise = np.asarray(sample.gumbel(keys.per_row("sample", "generator"), example["masked_at"].shape[1], 256))

    mlm = entropy = hits = 0.0
    fake = example["original"].copy()
    for row, slot in np.argwhere(example["masked"]):
        at, original = example["masked_at"][row, slot], example["masked_ids"][row, slot]
        assert original == example["original"][row, at]
        scores = reference.mlm_logits(wide, model, generated[row, at])
        p = np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum()
        mlm, entropy, hits = mlm - np.log(p[original]), entropy - np.sum(p * np.log(p)), hits + (p.argmax() == original)
        best = np.sort(scores / config.temperature + noise[row, slot, : model.vocab_size])
        assert best[-1] - best[-2] > 1e-4, "a near tie: take another seed"
        if at not in example["masked_at"][row, :slot]:
            fake[row, at] = (scores / config.temperature + noise[row, slot, : model.vocab_size]).argmax()
    detected = reference.rtd_logits(wide, model, reference.encode(wide, model, "discriminator", fake, *inputs)[-1])

    loss, table = 0.0, np.zeros((2, 2), int)
    counted = example["segments"]
    if config.detects == "chosen":
        counted = np.zeros_like(fake)
        for row, slot in np.argwhere(example["masked"]):
            counted[row, example["masked_at"][row, slot]] = 1
        assert 0 < counted.sum() < example["masked"].sum(), "no place was drawn twice"
    for row, at in np.argwhere(counted):
        label, score = int(fake[row, at] != example["original"][row, at]), detected[row, at]
        loss += np.log1p(np.exp(-score if label else score))
        table[label, int(score > 0)] += 1
    assert table[1].sum() > 5 and table[:, 1].sum() > 5
    np.testing.assert_allclose([losses["mlm"], losses["rtd"]], [mlm, loss], rtol=1e-5)
    count, real = int(example["masked"].sum()), int(counted.sum())
    assert {name: int(n) for name, n in objective.weights(example).items()} == {"mlm": count, "rtd": real}
    expected = {
        "mlm_loss": (mlm, count),
        "mlm_accuracy": (hits, count),
        "mlm_entropy": (entropy, count),
        "rtd_loss": (loss, real),
        "replaced": (table[1].sum(), real),
        "rtd_accuracy": (np.trace(table), real),
        "rtd_precision": (table[1, 1], table[:, 1].sum()),
        "rtd_recall": (table[1, 1], table[1].sum()),
    }
    for name, pair in expected.items():
        np.testing.assert_allclose(metrics[name], pair, rtol=1e-5, err_msg=name)
    total = combine(objective, losses, objective.weights(example))
    np.testing.assert_allclose(total, mlm / count + 50 * loss / real, rtol=1e-5)


def test_every_kind_of_place_counts_for_the_discriminator() -> None:
    """[CLS], [SEP] and tokens that nothing replaced are in its weight; padding is not. Originals are kept beside the masked row."""
    (objective, _), (example, _) = opened(CLEAN, SHARED), corrupted(CLEAN)
    assert int(objective.weights(example)["rtd"]) == sum(LENGTHS)
    assert (example["tokens"] == tiny.VOCABULARY.mask).sum() == example["masked"].sum() > 0
    rows = tiny.batch(LENGTHS, 16)["tokens"]
    np.testing.assert_array_equal(example["original"], rows)
    assert not np.isin(np.take_along_axis(rows, example["masked_at"], 1)[example["masked"] > 0], [0, 2, 3, 4]).any()


def sure_of(token: int, params: Any) -> Any:
    """The parameters of a generator that says `token` everywhere."""
    params = jax.tree.map(np.copy, params)
    params["mlm"]["bias"][token] = 1e3
    return params


def test_a_correct_guess_is_real() -> None:
    """A generator that is sure of one id, which stood at one of the masked places: that place is labelled as an original token."""
    (_, params), (example, keys) = opened(CLEAN, UNTIED), corrupted(CLEAN)
    chosen, sure = example["masked"] > 0, example["masked_ids"][0, 0]
    _, metrics, fake = quiet(CLEAN, UNTIED)(sure_of(sure, params), example, keys)
    assert (np.take_along_axis(fake, example["masked_at"], axis=1)[chosen] == sure).all()
    wrong = int((example["masked_ids"][chosen] != sure).sum())
    assert wrong < chosen.sum() and metrics["replaced"][0] == wrong == (fake != example["original"]).sum()


@SETTINGS
def test_whose_gradient_reaches_what(config: RtdConfig, model: ElectraConfig) -> None:
    """Exactly zero where a loss does not reach: no gradient passes through the samples. Every shared table learns from both."""
    _, slopes, _ = trained(config, model)(opened(config, model)[1], *corrupted(config))
    of_mlm, of_rtd = ({path: bool(np.any(leaf)) for path, leaf in tree.leaves(slopes[term])} for term in ("mlm", "rtd"))
    for path in of_mlm:
        part, shared = path.split("/")[0], model.sharing == "embeddings"
        assert of_mlm[path] == (part in ("generator", "mlm") or (part == "embeddings" and shared)), path
        assert of_rtd[path] == (part in ("discriminator", "rtd", "embeddings")), path


def test_both_networks_drop_out_in_training() -> None:
    """The generator's loss changes with dropout; where its samples cannot, the discriminator's does. An evaluation has none."""
    params, given = opened(PUBLISHED, SHARED)[1], corrupted(PUBLISHED)
    still, noisy = quiet(PUBLISHED, SHARED), trained(PUBLISHED, SHARED)
    assert still(params, *given)[0]["mlm"] != noisy(params, *given)[0]["mlm"]
    sure = sure_of(7, params)
    assert still(sure, *given)[1]["replaced"] == noisy(sure, *given)[2]["replaced"]
    assert still(sure, *given)[0]["rtd"] != noisy(sure, *given)[0]["rtd"]


def nothing(kind: str) -> tiny.Batch:
    """Six rows without a candidate: of padding, of specials, or of three tokens, whose only word is a [MASK] that stood in the text."""
    rows = tiny.batch({"padding": (0,) * 6, "specials": (1, 0, 2, 3, 16, 5), "three tokens": (3,) * 6}[kind], 16)
    rows["tokens"] = np.where(rows["tokens"] > tiny.VOCABULARY.mask, tiny.VOCABULARY.mask if kind == "three tokens" else 3, rows["tokens"])
    return rows


@SETTINGS
@pytest.mark.parametrize("kind", ["padding", "specials", "three tokens"])
def test_nothing_to_learn_is_zero_and_finite(config: RtdConfig, model: ElectraConfig, kind: str) -> None:
    """No generator loss without a candidate, no loss at all without a token; gradients are finite, and zero where the loss is."""
    (objective, params), (example, keys) = opened(config, model), corrupted(config, nothing(kind))
    assert not example["masked"].any() and (example["tokens"] == example["original"]).all()
    values, slopes, metrics = trained(config, model)(params, example, keys)
    leaves = {name: jax.tree.leaves(slope) for name, slope in slopes.items()}
    assert all(np.isfinite(leaf).all() for slope in leaves.values() for leaf in slope)
    for name in ("mlm", "rtd", "loss"):
        zero = name == "mlm" or kind == "padding"
        assert np.isfinite(values[name]) and (values[name] == 0) == zero, name
        assert zero == (not any(leaf.any() for leaf in leaves[name])), name
    summary = objective.summary(metrics)
    assert all(np.isfinite(value) for value in summary.values()) and summary["replaced"] == 0 and "rtd_auc" not in summary


def test_one_word_between_specials_is_learnt() -> None:
    """Rows of [CLS] x [SEP], one of them beside five of padding: x is predicted, and everything is finite."""
    for lengths in ((3,) * 6, (0, 3, 0, 0, 0, 0)):
        example, keys = corrupted(PUBLISHED, tiny.batch(lengths, 16))
        assert (example["masked"].sum(1) == np.array(lengths) / 3).all() and (example["masked_at"] == example["masked"]).all()
        values, slopes, _ = trained(PUBLISHED, SHARED)(opened(PUBLISHED, SHARED)[1], example, keys)
        assert all(np.isfinite(value) and value > 0 for value in values.values())
        assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(slopes))


def test_outputs_are_those_of_both_networks() -> None:
    """Of rows as they are, without masks or dropout: <= 2e-5 against the reference; the vocabulary without its padding."""
    objective, params = opened(CLEAN, SHARED)
    rows = tiny.batch([9, 1, 13], 13)
    got = jax.jit(objective.outputs)(params, {name: rows[name] for name in ("tokens", "types", "positions", "segments")})
    wide, inputs = jax.tree.map(np.float64, params), (rows["tokens"], rows["types"], rows["positions"], rows["segments"].sum(1))
    states = reference.encode(wide, SHARED, "discriminator", *inputs)
    mlm = reference.mlm_logits(wide, SHARED, reference.encode(wide, SHARED, "generator", *inputs)[-1])
    for name, want in {"hidden": states, "rtd": reference.rtd_logits(wide, SHARED, states[-1]), "mlm": mlm}.items():
        assert got[name].shape == want.shape and got[name].dtype == jnp.float32
        np.testing.assert_allclose(got[name], want, rtol=0, atol=2e-5, err_msg=name)


@pytest.mark.parametrize(
    "field, values",
    [
        ("temperature", (0.0, -1.0, np.nan, np.inf, 1e30)),
        ("mlm_coef", (-1.0, np.nan, np.inf, 1e30)),
        ("rtd_coef", (-1.0, np.nan, np.inf, 1e30)),
        ("rate", (0.0, -0.1, 1.1, np.nan, np.inf)),
        ("mask_share", (-0.1, 1.1, np.nan, np.inf)),
        ("random_share", (-0.1, 0.1, np.nan, np.inf)),
    ],
)
def test_numbers_that_are_none_are_refused_by_name(field: str, values: tuple[float, ...]) -> None:
    for value in values:
        with pytest.raises(UserError, match=rf"^objective\.(\w+ is \S+ and objective\.)?{field} [^\n]*$") as error:
            RtdConfig(**{field: value})
        assert str(value) in str(error.value) or "share" in field


def test_what_draws_with_replacement_do_not_do_is_refused() -> None:
    for changes, told in (({"random_share": 0.1, "mask_share": 0.8}, "draws no random ids"), ({"unit": "spans"}, "draws single tokens")):
        with pytest.raises(UserError, match=f"objective.with_replacement {told}"):
            RtdConfig(with_replacement=True, **changes)


def test_a_model_that_is_no_pair_is_refused() -> None:
    with pytest.raises(UserError, match="set model.kind to electra or .*, not bert"):
        tiny.objective(RtdConfig(), tiny.MODEL)


def test_flops_are_those_of_all_products() -> None:
    """Counted by hand from the shapes of the kernels: 6 a row of a product and entry, and 12 · length · width a layer for attention."""
    objective = tiny.objective(RtdConfig(), tiny.PAIR)
    shapes = {path: leaf.shape for path, leaf in tree.leaves(tiny.drawn(Run(objective=RtdConfig(), model=tiny.PAIR)))}
    predictions = objective.generator.masking.predictions
    total = 6 * predictions * 200 * tiny.PAIR.embedding
    for path, shape in shapes.items():
        if path.endswith("kernel"):
            total += 6 * np.prod(shape) * (predictions if path.startswith("mlm") else tiny.LENGTH)
    total += 12 * tiny.LENGTH**2 * (2 * 32 + 1 * 16)
    assert objective.flops(tiny.LENGTH) == total
