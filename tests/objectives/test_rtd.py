"""Replaced-token detection: the published rule in NumPy, whose gradient reaches what, its metrics, and batches with nothing to learn."""

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
from jaxenc.models.electra import ElectraConfig
from jaxenc.objectives import detection
from jaxenc.objectives.corrupt import sample
from jaxenc.objectives.rtd import RtdConfig
from jaxenc.optim.config import OptimConfig
from jaxenc.run import Run
from jaxenc.train.accumulate import combine
from jaxenc.train.config import TrainConfig
from tests import tiny
from tests.models import reference_electra as reference

LENGTHS = [16, 9, 3, 1, 0, 12]
PUBLISHED = RtdConfig(rate=0.4, mask_share=0.85, with_replacement=True, temperature=0.7)
UNTIED = dataclasses.replace(tiny.PAIR, sharing="none")


@functools.cache
def setting(config: RtdConfig, model: ElectraConfig = tiny.PAIR, lengths: tuple[int, ...] = tuple(LENGTHS)) -> tuple:
    """(objective, random parameters, example, keys) of rows of 16 places."""
    objective = tiny.objective(config, model, 16)
    rows, keys = tiny.reads(tiny.batch(lengths, 16), objective), rng.training(0, jnp.int32(4), len(lengths))
    example = jax.jit(jax.vmap(objective.corrupt, in_axes=(0, 0, None)))(keys.per_row("corrupt", "mask"), rows, keys.step)
    return objective, tiny.drawn(Run(objective=config, model=model)), jax.device_get(example), keys


def terms(setting: tuple, params: Any, train: bool) -> tuple[dict, dict]:
    objective, _, example, keys = setting
    return objective.terms(params, {}, example, keys, train)[:2]


@pytest.mark.parametrize(
    "config, model",
    [(RtdConfig(rate=0.4), UNTIED), (PUBLISHED, tiny.PAIR), (dataclasses.replace(PUBLISHED, detects="chosen"), tiny.PAIR)],
    ids=["clean", "published", "chosen"],
)
def test_loss_and_metrics_equal_a_slow_reference(config: RtdConfig, model: ElectraConfig) -> None:
    """float64, one token at a time, from the same masks and the same noise: <= 1e-5 of each sum. Counts are equal."""
    given = setting(config, model)
    objective, params, example, keys = given
    losses, metrics = jax.device_get(jax.jit(lambda params: terms(given, params, False))(params))
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
    objective, _, example, _ = setting(RtdConfig(rate=0.4))
    assert int(objective.weights(example)["rtd"]) == sum(LENGTHS)
    assert (example["tokens"] == tiny.VOCABULARY.mask).sum() == example["masked"].sum() > 0
    rows = tiny.batch(LENGTHS, 16)["tokens"]
    np.testing.assert_array_equal(example["original"], rows)
    assert not np.isin(
        rows[example["masked_at"] * 0 + np.arange(6)[:, None], example["masked_at"]][example["masked"] > 0], [0, 2, 3, 4]
    ).any()


def test_a_correct_guess_is_real() -> None:
    """A generator that is sure of one id, which stood at one of the masked places: that place is labelled as an original token."""
    given = setting(RtdConfig(rate=0.4))
    objective, params, example, keys = given
    params, chosen = jax.tree.map(np.copy, params), example["masked"] > 0
    sure = example["masked_ids"][0, 0]
    params["mlm"]["bias"][sure] = 1e3

    def run(params: Any) -> tuple[jax.Array, Any]:
        return objective.generator.sampled(objective.generator.logits(params, example, None), example, keys), terms(given, params, False)[1]

    fake, metrics = jax.device_get(jax.jit(run)(params))
    assert (np.take_along_axis(fake, example["masked_at"], axis=1)[chosen] == sure).all()
    wrong = int((example["masked_ids"][chosen] != sure).sum())
    assert wrong < chosen.sum() and metrics["replaced"][0] == wrong == (fake != example["original"]).sum()


@pytest.mark.parametrize("model", [tiny.PAIR, UNTIED], ids=["shared", "untied"])
def test_whose_gradient_reaches_what(model: ElectraConfig) -> None:
    """Exactly zero where a loss does not reach: no gradient passes through the samples. Every shared table learns from both."""
    given = setting(RtdConfig(rate=0.4), model)
    slope = lambda term: jax.jit(jax.grad(lambda params: terms(given, params, True)[0][term]))(given[1])
    of_mlm, of_rtd = ({path: bool(np.any(leaf)) for path, leaf in tree.leaves(slope(term))} for term in ("mlm", "rtd"))
    for path in of_mlm:
        part, shared = path.split("/")[0], model.sharing == "embeddings"
        assert of_mlm[path] == (part in ("generator", "mlm") or (part == "embeddings" and shared)), path
        assert of_rtd[path] == (part in ("discriminator", "rtd", "embeddings")), path


def test_both_networks_drop_out_in_training() -> None:
    """The generator's loss and the samples it gives change with dropout; an evaluation has none."""
    given = setting(RtdConfig(rate=0.4))
    objective, params, example, keys = given
    run = jax.jit(lambda params, train: terms(given, params, train), static_argnums=1)
    quiet, noisy = run(params, False)[0], run(params, True)[0]
    assert all(quiet[name] != noisy[name] for name in ("mlm", "rtd"))
    fixed = lambda noise: objective.detect(params, jnp.asarray(example["original"]), example, noise)[0]
    assert fixed(None) != fixed(keys)


@pytest.mark.parametrize("config", [RtdConfig(), PUBLISHED], ids=["clean", "published"])
@pytest.mark.parametrize("lengths", [(0, 0, 0), (1, 0, 1)], ids=["padding", "nothing to mask"])
def test_nothing_to_learn_is_zero_and_finite(config: RtdConfig, lengths: tuple[int, ...]) -> None:
    """No generator loss without a candidate, no loss at all without a token; gradients are finite, and zero where the loss is."""
    given = setting(config, tiny.PAIR, lengths)
    objective, params, example, _ = given
    assert not example["masked"].any()

    def loss(params: Any) -> tuple[jax.Array, dict]:
        sums, metrics = terms(given, params, True)
        return combine(objective, sums, objective.weights(example)), metrics

    (total, metrics), gradient = jax.jit(jax.value_and_grad(loss, has_aux=True))(params)
    leaves = jax.tree.leaves(gradient)
    assert np.isfinite(total) and all(np.isfinite(leaf).all() for leaf in leaves)
    if not any(lengths):
        assert total == 0 and not any(np.any(leaf) for leaf in leaves)
    summary = objective.summary(jax.device_get(metrics))
    assert all(np.isfinite(value) for value in summary.values())
    assert summary["rtd_auc"] == 0 or any(lengths)


def test_area_under_the_curve() -> None:
    """Against all pairs of scores: <= 1e-3, with scores past both edges. A perfect, a blind and a one-sided detector too."""
    random = np.random.default_rng(0)
    labels = (random.random((8, 100)) < 0.15).astype(np.int32)
    scores = random.normal(labels * 1.5 - 1, 1.2, labels.shape).astype(np.float32)
    scores[0, :5], real = [-40, 40, 1e9, -1e9, 16.0], (random.random(labels.shape) < 0.9).astype(np.int32)
    histogram = detection.metrics(jnp.asarray(scores), labels, real)["rtd_scores"][0]
    assert histogram.sum() == real.sum() and histogram[1].sum() == (labels * real).sum()
    on, off = scores[(labels * real) > 0], scores[((1 - labels) * real) > 0]
    exact = np.mean((on[:, None] > off) + 0.5 * (on[:, None] == off))
    assert abs(detection.area(histogram) - exact) <= 1e-3
    assert [detection.area(np.array(counts)) for counts in ([[5, 0], [0, 3]], [[5, 5], [3, 3]], [[0, 5], [3, 0]], [[5, 5], [0, 0]])] == [
        1,
        0.5,
        0,
        0,
    ]


def test_outputs_are_those_of_both_networks() -> None:
    """Of rows as they are, without masks or dropout: <= 2e-5 against the reference; the vocabulary without its padding."""
    objective, params, _, _ = setting(RtdConfig())
    rows = tiny.batch([9, 1, 13], 13)
    got = jax.jit(objective.outputs)(params, {name: rows[name] for name in ("tokens", "types", "positions", "segments")})
    wide, inputs = jax.tree.map(np.float64, params), (rows["tokens"], rows["types"], rows["positions"], rows["segments"].sum(1))
    states = reference.encode(wide, tiny.PAIR, "discriminator", *inputs)
    mlm = reference.mlm_logits(wide, tiny.PAIR, reference.encode(wide, tiny.PAIR, "generator", *inputs)[-1])
    for name, want in {"hidden": states, "rtd": reference.rtd_logits(wide, tiny.PAIR, states[-1]), "mlm": mlm}.items():
        assert got[name].shape == want.shape and got[name].dtype == jnp.float32
        np.testing.assert_allclose(got[name], want, rtol=0, atol=2e-5, err_msg=name)


@dataclasses.dataclass(frozen=True)
class Shown(tiny.Probe):
    """Also holds what the step drew for its samples, and the discriminator's rows, in slot order."""

    def terms(self, params: Any, carry: Any, example: Mapping[str, Any], keys: Any, train: bool) -> Any:
        sums, metrics, carry = super().terms(params, carry, example, keys, train)
        logits = self.inner.generator.logits(params, example, keys)
        seen = {"noise": sample.gumbel(keys.per_row("sample", "generator"), *logits.shape[1:])}
        seen["fake"] = self.inner.generator.sampled(logits, example, keys)
        seen = {name: jnp.zeros((self.rows, *a.shape[1:]), a.dtype).at[keys.rows].set(a) for name, a in seen.items()}
        return sums, {**metrics, **{f"seen_{name}": (a, jnp.int32(1)) for name, a in seen.items()}}, carry


@functools.cache
def stepped(preset: str, devices: int, parts: int) -> tuple:
    """State and report of the first step of the tiny pair on 32 ragged rows."""
    objective = tiny.objective(RtdConfig(), tiny.PAIR)
    config = TrainConfig(batch=tiny.ROWS, microbatches=parts, precision="float32")
    mesh = tiny.mesh(preset, devices)
    ready = tiny.compile_for(Shown(objective, tiny.ROWS), OptimConfig(clip=0.0), config, tiny.phase(), mesh, preset)
    return ready.run(tiny.reads(tiny.batch(tiny.RAGGED), objective))


@pytest.mark.slow
@pytest.mark.parametrize("preset, devices, parts", [("dp", 1, 4), *((preset, 8, parts) for preset, parts in tiny.MESHES)])
def test_the_step_is_that_of_one_device_and_one_part(preset: str, devices: int, parts: int) -> None:
    """Masks and noise bitwise; samples equal, no near tie among these; loss and gradient <= 1e-5, float32, dropout on."""
    (state, report), (one, want) = stepped(preset, devices, parts), stepped("dp", 1, 1)
    seen = lambda report: {name: total for name, (total, _) in report["metrics"].items() if name.startswith("seen_")}
    tiny.assert_bitwise(seen(report), seen(want))
    assert abs(report["loss"] - want["loss"]) <= 1e-5 * want["loss"]
    tiny.assert_close(tiny.gradient(state), tiny.gradient(one), 1e-5)
    scores, _ = report["metrics"]["rtd_scores"]
    assert scores.sum() == sum(tiny.RAGGED) and report["bad"] == 0


def test_the_first_loss_is_that_of_a_uniform_guess() -> None:
    """ln V for the generator and its entropy, ln 2 for the discriminator, within 0.1; the sum has the weights 1 and 50."""
    _, report = stepped("dp", 1, 1)
    means = {name: float(total) / float(weight) for name, (total, weight) in report["metrics"].items() if np.ndim(total) == 0}
    assert abs(means["mlm_loss"] - np.log(200)) <= 0.1 and abs(means["mlm_entropy"] - np.log(200)) <= 0.1
    assert abs(means["rtd_loss"] - np.log(2)) <= 0.1
    assert abs(report["loss"] - means["mlm_loss"] - 50 * means["rtd_loss"]) <= 1e-4
    fake, rows = report["metrics"]["seen_fake"][0], tiny.batch(tiny.RAGGED)
    assert fake.max() < 200 and ((fake != rows["tokens"]) <= rows["segments"]).all()


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"temperature": 0.0}, "objective.temperature is 0.0"),
        ({"temperature": -1.0}, "objective.temperature is -1.0"),
        ({"rtd_coef": -1.0}, "objective.rtd_coef"),
        ({"with_replacement": True, "random_share": 0.1, "mask_share": 0.8}, "objective.with_replacement draws no random ids"),
    ],
)
def test_refusals_name_the_field(changes: dict, message: str) -> None:
    with pytest.raises(UserError, match=message):
        RtdConfig(**changes)


def test_a_model_that_is_no_pair_is_refused() -> None:
    with pytest.raises(UserError, match="set model.kind to electra, not bert"):
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
