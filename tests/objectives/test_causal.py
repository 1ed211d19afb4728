"""Causal language modelling against a float64 loop, what it may see, and where it is refused."""

import dataclasses
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxenc
from jaxenc import rng, tree
from jaxenc.convert import hf
from jaxenc.data.vocabulary import padded
from jaxenc.errors import UserError
from jaxenc.families.elmo.model import ElmoConfig
from jaxenc.families.network_pair.model import NetworkPairConfig
from jaxenc.families.xlnet.model import XlnetConfig
from jaxenc.inference.model import Model
from jaxenc.objectives import encoder as encoders
from jaxenc.objectives import parts
from jaxenc.objectives.causal import CausalConfig
from jaxenc.objectives.heads import HeadsConfig
from jaxenc.objectives.mlm import MlmConfig
from jaxenc.objectives.pair import PairConfig
from jaxenc.optim.optimizer import OptimConfig
from jaxenc.training.run import Run, from_dict
from jaxenc.training.settings import TrainConfig
from tests import tiny
from tests.layers import reference_block as reference

QUIET = dataclasses.replace(tiny.MODEL, attention="causal", dropout=0.0, attention_dropout=0.0)
NOISY = dataclasses.replace(QUIET, dropout=0.1, attention_dropout=0.1)
SMALL = dataclasses.replace(QUIET, layers=1, width=8, heads=2, feed_forward=12)
RUN = Run(CausalConfig(), QUIET)
LENGTH = 12


def rows(lengths: tuple[int, ...] = (12, 1, 0, 7, 2)) -> dict[str, np.ndarray]:
    """Rows of these lengths; the first row holds two texts of five and seven tokens."""
    batch = tiny.reads(tiny.batch(lengths, LENGTH), tiny.objective(CausalConfig(), QUIET))
    batch["segments"][0] = [1] * 5 + [2] * 7
    return batch


def expected(params: Any, batch: dict[str, np.ndarray]) -> tuple[float, int, int]:
    """(sum of losses, predictions, right ones) in float64, a place at a time."""
    wide, spec, total, count, right = jax.tree.map(np.float64, params), SMALL.block, 0.0, 0, 0
    tables = wide["embeddings"]
    for tokens, types, segments in zip(batch["tokens"], batch["types"], batch["segments"], strict=True):
        real = int((segments > 0).sum())
        x = tables["token"]["table"][tokens] + tables["position"]["table"][batch["positions"][0]] + tables["type"]["table"][types]
        x = reference.layer_norm(x[:real], tables["norm"], spec.norm_epsilon)
        hidden = reference.stack(wide["encoder"], x, spec, (0,), lambda query, key: key <= query)[-1] if real else []
        for place in range(real - 1):
            if segments[place] == segments[place + 1]:
                logits = tables["token"]["table"][: SMALL.vocab_size] @ hidden[place]
                total += np.log(np.exp(logits).sum()) - logits[tokens[place + 1]]
                right, count = right + int(logits.argmax() == tokens[place + 1]), count + 1
    return total, count, right


def trained_on(objective: Any, batch: dict[str, np.ndarray]) -> Any:
    """Compiled: ((sum of losses, metrics), gradient) of parameters."""
    keys = rng.training(0, jnp.int32(0), len(batch["tokens"]))

    def loss(params: Any) -> Any:
        terms, metrics, _ = objective.terms(params, {}, batch, keys, True)
        return terms["causal"], metrics

    return jax.jit(jax.value_and_grad(loss, has_aux=True))


@pytest.mark.parametrize("at_once", [LENGTH, 5])
def test_equals_the_reference(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Loss within 1e-5, and the slope along a random direction of each parameter within 1e-5 of the largest; with the logits of all places
    at once, and of five. Neither padding nor the first token of a text is predicted."""
    monkeypatch.setattr(parts, "LOGITS", at_once * 5 * padded(SMALL.vocab_size))
    batch, objective = rows(), tiny.objective(CausalConfig(), SMALL)
    params, random, slopes = tiny.drawn(Run(CausalConfig(), SMALL)), np.random.default_rng(2), {}
    want, count, right = expected(params, batch)
    with jax.default_matmul_precision("highest"):
        (loss, metrics), gradient = trained_on(objective, batch)(params)
    assert count == (5 - 1) + (7 - 1) + 0 + 0 + 6 + 1 == objective.weights(batch)["causal"]
    assert abs(loss - want) <= 1e-5 * want
    assert metrics == {"causal_loss": (loss, count), "causal_accuracy": (right, count)}
    leaves = dict(tree.leaves(params))
    for path, of_leaf in tree.leaves(gradient) if at_once == LENGTH else ():
        direction = random.normal(size=of_leaf.shape)
        if path == "embeddings/token/table":
            direction[SMALL.vocab_size :] = 0
            assert not np.asarray(of_leaf)[SMALL.vocab_size :].any()
        moved = (tree.from_leaves({**leaves, path: leaves[path] + step * direction}.items()) for step in (1e-5, -1e-5))
        ahead, behind = (expected(params, batch)[0] for params in moved)
        slopes[path] = float(np.sum(of_leaf * direction)), (ahead - behind) / 2e-5
    largest = max((abs(slope) for _, slope in slopes.values()), default=0)
    for path, (got, slope) in slopes.items():
        assert abs(got - slope) <= 1e-5 * largest, path


def changed_after(batch: dict[str, np.ndarray], place: int) -> dict[str, np.ndarray]:
    """Other tokens and types after `place`, which in half of the rows are padding too."""
    after, padding = np.arange(LENGTH) > place, np.arange(len(batch["tokens"]))[:, None] % 2
    tokens, types, segments = (batch[name] for name in ("tokens", "types", "segments"))
    changed = {"tokens": np.where(after, (tokens + 7) % 200, tokens), "types": np.where(after, 1 - types, types)}
    return {**batch, **changed, "segments": np.where(after & padding, 0, segments).astype(np.int32)}


@pytest.mark.parametrize("objective", [CausalConfig(), MlmConfig()], ids=["causal", "mlm"])
def test_nothing_before_a_change_moves(objective: Any) -> None:
    """Bitwise, in training with dropout, in an evaluation and in `outputs`; and what comes after it does move."""
    model = dataclasses.replace(NOISY, layers=1)
    chosen, params = tiny.objective(objective, model, LENGTH), tiny.drawn(Run(objective, model))
    batch, keys = tiny.batch([LENGTH] * 4, LENGTH), rng.training(0, jnp.int32(0), 4)

    @jax.jit
    def given(batch: Any) -> dict[str, jax.Array]:
        seen = {name: encoders.read(chosen.encoder, params, batch, noise).last for name, noise in (("train", keys), ("evaluation", None))}
        outputs = chosen.outputs(params, batch)
        logits = outputs["next_token" if objective.kind == "causal" else "mlm"]
        return {**seen, "hidden": jnp.moveaxis(outputs["hidden"], 0, -1), "logits": logits}

    before = jax.device_get(given(batch))
    for place in (0, 5, 10):
        for name, after in jax.device_get(given(changed_after(batch, place))).items():
            np.testing.assert_array_equal(after[:, : place + 1], before[name][:, : place + 1], name)
            assert (after[:, place + 1] != before[name][:, place + 1]).reshape(4, -1).any(axis=1).all()


def test_a_loaded_model_sees_the_past_alone(tmp_path: Path) -> None:
    """`encode` of two rows that part at place 4, without padding and with it on either side: bitwise equal before that place. Left
    padding comes before all that a causal query may see, and stays finite."""
    Model(RUN, tiny.drawn(RUN), None).save(tmp_path / "model")
    model = jaxenc.load(tmp_path / "model")
    assert model.config.model.attention == "causal" and set(model.params) == {"embeddings", "encoder"}
    tokens = np.random.default_rng(0).integers(5, 200, (2, 8))
    tokens[1, :4] = tokens[0, :4]
    for mask in (np.ones((2, 8), int), np.arange(8) < [[8], [6]], np.arange(8) >= [[2], [2]]):
        hidden = model.encode(tokens=tokens, mask=mask.astype(int)).hidden
        assert np.isfinite(hidden).all()
        np.testing.assert_array_equal(hidden[:, 0, :4], hidden[:, 1, :4])
        assert (hidden[1:, 0, 4] != hidden[1:, 1, 4]).any(axis=-1).all()


@pytest.mark.full
@pytest.mark.slow
def test_microbatches_and_devices_change_nothing() -> None:
    """Eight devices and two microbatches against one and one: loss and gradient within 1e-5, with dropout, on rows of unequal counts."""
    objective, found = tiny.objective(CausalConfig(), dataclasses.replace(NOISY, layers=1), LENGTH), []
    batch = tiny.reads(tiny.batch([12, 1, 5, 12, 2, 0, 9, 3] * 2, LENGTH), objective)
    for devices, microbatches in ((1, 1), (8, 2)):
        config = TrainConfig(batch=16, microbatches=microbatches, precision="float32")
        ready = tiny.compile_for(objective, OptimConfig(clip=0.0), config, tiny.phase(16, LENGTH), tiny.mesh("dp", devices))
        found.append(ready.run(batch))
    (one, report), (other, others) = found
    assert report["metrics"]["causal_loss"][1] == 2 * (11 + 4 + 11 + 1 + 8 + 2) and report["loss"] > 1
    assert abs(report["loss"] - others["loss"]) <= 1e-5 * report["loss"]
    tiny.assert_close(tiny.gradient(other), tiny.gradient(one), 1e-5)


def test_flops_are_those_of_all_products() -> None:
    """Forward and twice that backward: every place meets each kernel, every key twice in each layer, and the true rows of the table."""
    objective = tiny.objective(CausalConfig(), SMALL)
    kernels = sum(leaf.size for path, leaf in tree.leaves(tiny.drawn(Run(CausalConfig(), SMALL))) if path.endswith("kernel"))
    assert objective.flops(LENGTH) == 3 * (2 * LENGTH * (kernels + 200 * 8) + 4 * LENGTH * LENGTH * 8)


@pytest.mark.parametrize(
    "build, told",
    [
        (
            lambda: tiny.objective(CausalConfig(), tiny.MODEL),
            "^model.attention is full; .* causal needs model.attention=causal$",
        ),
        (
            lambda: tiny.objective(CausalConfig(), NetworkPairConfig(tiny.MODEL, tiny.MODEL)),
            "^model.discriminator.attention is full; .* needs model.discriminator.attention=causal$",
        ),
        (
            lambda: tiny.objective(CausalConfig(), ElmoConfig()),
            "which a model of kind elmo does not have; set model.kind to bert or ",
        ),
        (
            lambda: tiny.objective(CausalConfig(), XlnetConfig()),
            "which a model of kind xlnet does not have; set model.kind to bert or ",
        ),
        (lambda: XlnetConfig(attention="causal"), "model.attention is 'causal'; model.kind xlnet takes full$"),
        (lambda: dataclasses.replace(tiny.MODEL, attention="past"), "model.attention is 'past'; model.kind bert takes full or causal$"),
        (lambda: tiny.objective(CausalConfig(), dataclasses.replace(tiny.PAIR, attention="causal")), "32 wide and the token table 24; "),
    ],
)
def test_refusals(build: Any, told: str) -> None:
    with pytest.raises(UserError, match=told):
        build()


@pytest.mark.parametrize("objective", [PairConfig(), HeadsConfig(("pooler", "classifier"), ("a", "b"))], ids=lambda one: one.kind)
def test_a_head_that_reads_the_first_token_is_refused(objective: Any) -> None:
    """That token sees nothing but itself, so the head would say the same of every text."""
    with pytest.raises(UserError, match="is causal and the head pooler reads the first token.*; set model.attention to full"):
        tiny.objective(objective, dataclasses.replace(tiny.MODEL, attention="causal"))


def test_transformers_would_attend_both_ways() -> None:
    one = dataclasses.replace(tiny.PAIR, attention="causal")
    for run in (RUN, Run(MlmConfig(), QUIET), Run(MlmConfig(), one), Run(CausalConfig(), dataclasses.replace(one, embedding=one.width))):
        with pytest.raises(UserError, match="model.attention is causal; transformers' classes for model.kind .* attend both ways"):
            hf.export(Model(run, tiny.drawn(run), None))


def test_a_config_without_the_field_is_of_a_model_that_sees_everything() -> None:
    for kind in ("bert", "electra", "xlnet"):
        assert from_dict({"model": {"kind": kind}}).model.attention == "full"
