"""Probes of all layers that are trained together."""

import dataclasses
import math

import jax
import numpy as np
import pytest

from jaxenc.errors import UserError
from jaxenc.tasks import probe
from jaxenc.tasks.probe import ProbeSettings, Units

COUNT, STATES, WIDTH, CLASSES, KNOWS = 600, 4, 6, 3, 2
SETTINGS = ProbeSettings(epochs=10, batch=50, lr=0.1)


def units(seed: int = 0) -> Units:
    """Layer 2 knows the labels, the others are noise; layers have other means and sizes, and one feature of layer 0 is constant."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, CLASSES, COUNT).astype(np.int32)
    features = random.normal(0, 1, (COUNT, STATES, WIDTH)) * np.array([1, 100, 0.1, 5])[:, None] + np.arange(STATES)[:, None]
    features[:, KNOWS, 0] += 0.5 * labels
    features[:, 0, 3] = 0.3
    return Units(features.astype(np.float32), labels)


def test_all_at_once_are_as_each_alone() -> None:
    """The parameters of every probe, and of the mix, after training (<= 1e-6); the same seed gives the same bits, another one does not."""
    given = units()
    scale = probe.scale_of(given.features)
    together = jax.device_get(probe.fit(given, scale, CLASSES, SETTINGS, 0))
    again, other = (jax.device_get(probe.fit(given, scale, CLASSES, SETTINGS, seed)) for seed in (0, 1))
    same = lambda left, right: all(jax.tree.leaves(jax.tree.map(lambda a, b: bool(np.array_equal(a, b)), left, right)))
    assert same(together, again) and not same(together, other)
    for layer in range(STATES):
        alone = jax.device_get(probe.fit(given, scale, CLASSES, dataclasses.replace(SETTINGS, layers=(layer,)), 0))
        for name in ("kernel", "bias"):
            np.testing.assert_allclose(alone[name][0], together[name][layer], rtol=0, atol=1e-6)
            np.testing.assert_allclose(alone[name][1], together[name][-1], rtol=0, atol=1e-6)
        np.testing.assert_allclose(alone["mix"]["weights"], together["mix"]["weights"], rtol=0, atol=1e-6)


def test_the_layer_that_knows_is_found() -> None:
    """On new units its probe and the mix are right, the others guess; the mix gives that layer the largest share."""
    given, new = units(), units(1)
    scale = probe.scale_of(given.features)
    params = probe.fit(given, scale, CLASSES, SETTINGS, 0)
    right = (probe.predict(tuple(range(STATES)), params, new.features, scale) == new.labels).mean(axis=1)
    assert right[KNOWS] > 0.9 and right[-1] > 0.85 and max(np.delete(right[:-1], KNOWS)) < 0.45
    assert np.argmax(params["mix"]["weights"]) == KNOWS


def test_a_small_separable_set_is_learned_by_default() -> None:
    """300 vectors of 384 numbers and four classes: on new ones, the layer that knows and the mix score more than 0.95. After 11 steps, 10
    passes in batches of 256, they score 0.84 and 0.76."""
    random = np.random.default_rng(0)
    planes = random.normal(0, 1, (384, 4)).astype(np.float32)

    def drawn(count: int) -> Units:
        labels = random.integers(0, 4, count).astype(np.int32)
        known = 0.25 * planes.T[labels] + random.normal(0, 1, (count, 384))
        return Units(np.stack([random.normal(0, 1, (count, 384)), known], axis=1).astype(np.float32), labels)

    given, new = drawn(300), drawn(500)
    scale = probe.scale_of(given.features)
    params = probe.fit(given, scale, 4, ProbeSettings(), 0)
    right = (probe.predict((0, 1), params, new.features, scale) == new.labels).mean(axis=1)
    assert right[1] > 0.95 and right[2] > 0.95 and right[0] < 0.4, right


@pytest.mark.parametrize("units, training", [(300, (1000, 16)), (5, (1000, 16)), (1000, (1000, 32)), (39_802, (1554, 256))])
def test_how_long_probes_train(units: int, training: tuple[int, int]) -> None:
    """At least 1,000 steps, at least 10 passes; what is set is kept."""
    assert ProbeSettings().training(units) == training
    assert ProbeSettings(epochs=10, batch=256).training(units) == (max(1, 10 * units // 256), 256)
    assert ProbeSettings(batch=8).training(300) == (1000, 8)


def test_predictions_are_those_of_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Part by part, with a last part that is not full; gamma and weights of the mix count."""
    monkeypatch.setattr(probe, "ROWS", 256)
    given, random = units(), np.random.default_rng(3)
    scale, layers = probe.scale_of(given.features), (3, 1)
    draw = lambda *shape: random.normal(0, 1, shape).astype(np.float32)
    params = {"kernel": draw(3, WIDTH, CLASSES), "bias": draw(3, CLASSES), "mix": {"weights": draw(STATES), "gamma": np.float32(-2)}}
    features = given.features.astype(np.float64)
    deviation = np.where(np.arange(STATES * WIDTH).reshape(STATES, WIDTH) == 3, 1, features.std(axis=0))  # the constant feature
    hidden = (features - features.mean(axis=0)) / deviation
    shares = np.exp(params["mix"]["weights"]) / np.exp(params["mix"]["weights"]).sum()
    read = [hidden[:, 3], hidden[:, 1], -2 * np.einsum("ulw,l->uw", hidden, shares)]
    wanted = [(x @ kernel + bias).argmax(axis=-1) for x, kernel, bias in zip(read, params["kernel"], params["bias"], strict=True)]
    np.testing.assert_array_equal(probe.predict(layers, params, given.features, scale), wanted)


def test_baselines() -> None:
    assert probe.majority(["b", "a", "b", "a", "c"]) == "a"
    assert dict(probe.by_word(["x", "y", "x", "x"], ["b", "a", "a", "b"])) == {"x": "b", "y": "a"}


@pytest.mark.parametrize(
    "settings, words",
    [
        (lambda: ProbeSettings(seeds=0), "probe.seeds is 0"),
        (lambda: ProbeSettings(lr=0.0), "the rate is 0.0"),
        (lambda: ProbeSettings(lr=math.inf), "the rate is inf; it takes a positive number"),
        (lambda: ProbeSettings(layers=(0, 2, 0)).chosen(STATES), "layer 0 was requested twice; name each layer once"),
        (lambda: ProbeSettings(layers=(0, 4)).chosen(STATES), "layer 4 was requested, but the model has 3 layers"),
    ],
)
def test_settings_that_cannot_be_are_one_line(settings, words: str) -> None:
    with pytest.raises(UserError, match=words):
        settings()
