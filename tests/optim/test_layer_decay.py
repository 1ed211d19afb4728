"""The share of each parameter of each family, against tables written out by hand for three layers and a decay of 1/2."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from jaxenc import tree
from jaxenc.errors import UserError
from jaxenc.families import MODELS
from jaxenc.families.contract import ModelConfig
from jaxenc.families.elmo.model import ElmoConfig
from jaxenc.objectives.base import ObjectiveConfig
from jaxenc.objectives.bilm import BilmConfig
from jaxenc.objectives.heads import HeadsConfig
from jaxenc.optim import layer_decay
from jaxenc.optim import optimizer as optimizers
from jaxenc.optim.optimizer import OptimConfig
from jaxenc.training.state import parameters
from tests import tiny

LAYERS = {"encoder/layer_00": 1 / 16, "encoder/layer_01": 1 / 8, "encoder/layer_02": 1 / 4}
# google-research/electra:model/optimization.py, _get_layer_lrs: decay^(5 - depth), with depth 0 for the embeddings and their projection,
# i + 1 for layer i and 5 for the task's head.
TOP_TWO: Mapping[str, Mapping[str, float]] = {
    "bert": {"embeddings": 1 / 32, **LAYERS, "pooler": 1, "classifier": 1, "tags": 1, "spans": 1, "rtd": 1},
    "electra": {
        "embeddings": 1 / 32,
        "discriminator/project": 1 / 32,
        **{f"discriminator/{layer}": share for layer, share in LAYERS.items()},
        "pooler": 1,
        "classifier": 1,
        "tags": 1,
        "spans": 1,
        "rtd": 1,
    },
    "xlnet": {"embeddings": 1 / 32, **LAYERS, "summary": 1, "classifier": 1, "tags": 1, "spans": 1},
    "albert": {"embeddings": 1 / 32, "project": 1 / 32, **LAYERS, "pooler": 1, "classifier": 1, "tags": 1, "spans": 1},
    "gpt": {"embeddings": 1 / 32, **LAYERS, "classifier": 1},
    "distilbert": {"embeddings": 1 / 32, **LAYERS, "pooler": 1, "classifier": 1, "tags": 1, "spans": 1},
    "elmo": {
        "char_cnn": 1 / 32,
        **{f"{way}/layer_0{i}": share for way in ("forward", "backward") for i, share in enumerate((1 / 16, 1 / 8, 1 / 4))},
        "softmax": 1,
    },
    # As its discriminator is used: the generator is left out.
    "pair": {
        "discriminator/embeddings": 1 / 32,
        **{f"discriminator/{layer}": share for layer, share in LAYERS.items()},
        "pooler": 1,
        "classifier": 1,
        "tags": 1,
        "spans": 1,
        "rtd": 1,
    },
}
# zihangdai/xlnet:model_utils.py, get_train_op: decay^(2 - layer) for names under model/transformer/layer_N/. The embeddings, r_w_bias,
# r_r_bias, r_s_bias and seg_embed are elsewhere (modeling.py, transformer_xl).
OWN = "encoder/layer_0{}/attention/"
XLNET = {
    "embeddings": 1,
    **{f"{OWN.format(i)}{name}": 1 for i in range(3) for name in ("content_bias", "position_bias", "segment_bias", "segment/table")},
    **{
        f"{OWN.format(i)}{name}": share
        for i, share in enumerate((1 / 4, 1 / 2, 1))
        for name in ("query", "key", "value", "output", "relative", "norm")
    },
    **{f"encoder/layer_0{i}/feed_forward": share for i, share in enumerate((1 / 4, 1 / 2, 1))},
    "summary": 1,
    "classifier": 1,
    "tags": 1,
    "spans": 1,
}
PUBLISHED_XLNET = ("embeddings/.*", "encoder/.*/attention/[a-z]+_bias", "encoder/.*/segment/table")
# Howard and Ruder 2018, section 3.2: the rate of layer l - 1 is that of layer l over 2.6, here over 2. The classifier is the last layer.
ULMFIT = {"embeddings": 1 / 16, "encoder/layer_00": 1 / 8, "encoder/layer_01": 1 / 4, "encoder/layer_02": 1 / 2}
HEADS = {"xlnet": ("summary", "classifier", "tags", "spans"), "gpt": ("last_token", "classifier", "next_token")}


def small(kind: str) -> tuple[ObjectiveConfig, ModelConfig]:
    """Three layers of a family, and an objective with its heads."""
    if kind == "elmo":
        sizes = {"width": 8, "cells": 12, "character_width": 4, "filter_widths": (1, 2), "filters": (4, 8), "highways": 1}
        return BilmConfig(negatives=20), ElmoConfig(layers=3, **sizes)
    names = {"width": 8, "heads": 2, "feed_forward": 16, "positions": 16, "embedding": 4, "groups": 3, "layers": 3}
    config = MODELS[kind]()
    if kind == "pair":
        own = dataclasses.replace(config.discriminator, width=8, heads=2, feed_forward=16, layers=3)
        config = dataclasses.replace(config, discriminator=own)
    else:
        known = {field.name for field in dataclasses.fields(config)}
        config = dataclasses.replace(config, **{name: value for name, value in names.items() if name in known})
    rtd = () if kind in ("albert", "distilbert") else ("rtd",)
    return HeadsConfig(heads=HEADS.get(kind, ("pooler", "classifier", "tags", "spans", *rtd)), labels=("a", "b")), config


def shapes(kind: str) -> Any:
    return parameters(tiny.objective(*small(kind)))[0]


def assert_shares(got: Any, table: Mapping[str, float]) -> None:
    """Every path has one entry of the table, every entry a path, and the shares are equal."""
    used = set()
    for path, share in tree.leaves(got):
        (entry,) = [name for name in table if path.startswith(f"{name}/") or path == name]
        used.add(entry)
        assert share == table[entry], path
    assert used == set(table)


@pytest.mark.parametrize("kind", TOP_TWO)
def test_the_top_layer_gets_the_decay_twice_and_the_embeddings_once_for_each_layer_more(kind: str) -> None:
    assert_shares(layer_decay.factors(0.5, 2, (), shapes(kind)), TOP_TWO[kind])


def test_xlnets_rule_leaves_the_top_layer_and_what_is_outside_the_layers_alone() -> None:
    assert_shares(layer_decay.factors(0.5, 0, PUBLISHED_XLNET, shapes("xlnet")), XLNET)


def test_ulmfits_rule_divides_from_the_head_down() -> None:
    heads = {"pooler": 1, "classifier": 1, "tags": 1, "spans": 1, "rtd": 1}
    assert_shares(layer_decay.factors(0.5, 1, (), shapes("bert")), {**ULMFIT, **heads})


def test_a_shared_layer_counts_once() -> None:
    """A published ALBERT: one set of parameters for all layers (Lan et al. 2019)."""
    objective, model = small("albert")
    got = layer_decay.factors(0.5, 2, (), parameters(tiny.objective(objective, dataclasses.replace(model, groups=1, layers=12)))[0])
    heads = {"pooler": 1, "classifier": 1, "tags": 1, "spans": 1}
    assert_shares(got, {"embeddings": 1 / 8, "project": 1 / 8, "encoder/layer_00": 1 / 4, **heads})


def test_a_norm_after_the_layers_counts_with_the_top_one_and_a_head_may_have_layers_of_its_own() -> None:
    expected = {"embeddings/table": 14, "encoder/layer_00/b": 13, "encoder/layer_11/b": 2, "encoder/final_norm/b": 2, "own/layer_00/b": 0}
    assert dict(tree.leaves(layer_decay.exponents(2, (), tree.from_leaves(expected.items())))) == expected


@pytest.mark.parametrize(
    "exclude, paths, words",
    [
        ((), ("head/kernel", "embeddings/token/table"), "optim.layer_decay: no parameter that it applies to is in a layer; set it to 1"),
        (("encoder/.*",), ("head/kernel", "encoder/layer_00/kernel"), "optim.layer_decay: no parameter"),
        (("embedings/.*",), ("encoder/layer_00/kernel",), "optim.layer_decay_exclude: no parameter's path matches 'embedings"),
        ((), ("generator/encoder/layer_00/b", "discriminator/encoder/layer_01/b"), "generator/encoder has 1; .*exclude=generator/"),
    ],
)
def test_what_has_no_layers_or_two_depths_is_one_line(exclude: tuple[str, ...], paths: tuple[str, ...], words: str) -> None:
    with pytest.raises(UserError, match=words) as error:
        layer_decay.exponents(2, exclude, tree.from_leaves((path, 0) for path in paths))
    assert "\n" not in str(error.value)


PATHS = ("embeddings/token/table", "encoder/layer_00/kernel", "encoder/layer_01/kernel", "classifier/dense/kernel")
PARAMS = tree.from_leaves((path, np.float32([1.0, -2.0])) for path in PATHS)
GRADS = tree.from_leaves((path, np.float32([2e-6, -0.5])) for path in PATHS)


def _direction(gradient: np.ndarray) -> np.ndarray:
    """Adam's first, with bias correction."""
    return gradient / (np.abs(gradient) + 1e-6)


def moved(**settings: Any) -> tuple[dict[str, np.ndarray], Any]:
    """What one update at the rate 1 takes off each parameter, and the moments."""
    config = OptimConfig(decay_exclude=(), weight_decay=0.0, schedule="constant", **{"clip": 0.0, **settings})
    optimizer = optimizers.build(config, PARAMS, lr=1.0, warmup=0, steps=10)
    norm = jnp.float32(np.sqrt(sum(np.square(leaf).sum() for _, leaf in tree.leaves(GRADS))))
    after, moments, _ = optimizer.update(GRADS, norm, optimizer.init(PARAMS), PARAMS, jnp.int32(0))
    return {path: dict(tree.leaves(PARAMS))[path] - np.asarray(leaf) for path, leaf in tree.leaves(after)}, moments


def test_the_rate_is_multiplied_and_combines_with_rates_by_path() -> None:
    plain, moments = moved()
    decayed, same = moved(layer_decay=0.5, rates=("embeddings/.*=0.25", "classifier/.*=3"))
    for path, share in zip(PATHS, (1 / 64, 1 / 8, 1 / 4, 3), strict=True):
        np.testing.assert_allclose(decayed[path], share * plain[path], rtol=1e-6, atol=3e-7, err_msg=path)
    tiny.assert_bitwise(same, moments)


def test_the_clipped_gradient_is_multiplied_and_adam_cancels_it_but_for_epsilon() -> None:
    """Clipped to a norm of 0.1 before it is scaled, so the scaled gradients of all layers have a smaller one; 2e-7 is below epsilon."""
    published = {"layer_decay_top": 0, "layer_decay_of": "gradient", "layer_decay_exclude": ("embeddings/.*",)}
    decayed, moments = moved(layer_decay=0.5, clip=0.1, **published)
    scale = 0.1 / np.sqrt(4 * (4e-12 + 0.25))
    for path, share in (("encoder/layer_00/kernel", 0.5), ("encoder/layer_01/kernel", 1.0), ("embeddings/token/table", 1.0)):
        scaled = share * scale * np.float64([2e-6, -0.5])
        mu, nu = (dict(tree.leaves(getattr(moments["adam"], name)))[path] for name in ("mu", "nu"))
        np.testing.assert_allclose(mu, 0.1 * scaled, rtol=1e-6)
        np.testing.assert_allclose(nu, 0.001 * scaled**2, rtol=1e-5)
        np.testing.assert_allclose(decayed[path], _direction(scaled), rtol=1e-5, atol=3e-7)
    assert decayed["encoder/layer_00/kernel"][1] == pytest.approx(-1, rel=1e-4)  # not half of it
    assert decayed["encoder/layer_00/kernel"][0] < 0.6 * decayed["encoder/layer_01/kernel"][0]  # where epsilon is as large
