"""Replace MLM and All-Tokens MLM: the paper's formulas in NumPy, whose gradient reaches what."""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxenc import rng, tree
from jaxenc.errors import UserError
from jaxenc.families.electra.model import ElectraConfig
from jaxenc.families.states import States
from jaxenc.objectives.replaced_mlm import ReplacedMlmConfig
from jaxenc.optim.optimizer import OptimConfig
from jaxenc.sharding import partition
from jaxenc.training.accumulate import combine
from jaxenc.training.run import Run
from jaxenc.training.state import layout, parameters
from tests import tiny
from tests.families import reference_bert, reference_electra

LENGTHS = (16, 9, 3, 1, 0, 12)
CHOSEN = ReplacedMlmConfig(rate=0.4, mask_share=0.85, with_replacement=True)
ALL = ReplacedMlmConfig(rate=0.4, predicts="all")
# One layer each, which is half the time to compile.
TIED = dataclasses.replace(tiny.PAIR, layers=1)
UNTIED = dataclasses.replace(TIED, sharing="none")


@functools.cache
def setting(config: ReplacedMlmConfig, model: ElectraConfig = TIED, lengths: tuple[int, ...] = LENGTHS) -> tuple:
    """(objective, random parameters, example, keys) of rows of 16 places."""
    objective = tiny.objective(config, model, 16)
    rows, keys = tiny.reads(tiny.batch(lengths, 16), objective), rng.training(0, jnp.int32(4), len(lengths))
    example = jax.jit(jax.vmap(objective.corrupt, in_axes=(0, 0, None)))(keys.per_row("corrupt", "mask"), rows, keys.step)
    return objective, tiny.drawn(Run(objective=config, model=model)), jax.device_get(example), keys


@functools.cache
def compiled(config: ReplacedMlmConfig, model: ElectraConfig) -> Any:
    """(params, example, keys) to sums, metrics, the rows with the generator's samples and the new term's gradient, without dropout."""
    objective = setting(config, model)[0]

    def both(params: Any, example: Any, keys: rng.Keys) -> Any:
        def loss(params: Any) -> Any:
            sums, metrics, _ = objective.terms(params, {}, example, keys, False)
            return sums["replaced_mlm"], (sums, metrics)

        slope, (sums, metrics) = jax.grad(loss, has_aux=True)(params)
        fake = objective.generator.sampled(objective.generator.logits(params, example, None), example, keys)
        return sums, metrics, fake, slope

    return jax.jit(both)


BOTH = pytest.mark.parametrize("config, model", [(CHOSEN, UNTIED), (ALL, TIED)], ids=["replace", "all tokens"])


@BOTH
def test_the_loss_is_the_formula_and_no_gradient_reaches_the_generator(config: ReplacedMlmConfig, model: ElectraConfig) -> None:
    """float64, one token at a time, from the same samples: <= 1e-5 of each sum. Places of all kinds are among those counted."""
    given = setting(config, model)
    objective, params, example, keys = given
    params = jax.tree.map(np.copy, params)
    params["mlm"]["bias"][example["masked_ids"][0, 0]] += 6  # Samples of this id hit where it stood.
    sums, metrics, fake, slope = jax.device_get(compiled(config, model)(params, example, keys))
    wide, lengths, original = jax.tree.map(np.float64, params), example["segments"].sum(1), example["original"]
    inputs = (example["types"], example["positions"], np.maximum(lengths, 1))
    hidden = reference_electra.encode(wide, model, "discriminator", fake, *inputs)[-1]

    chosen = {(row, int(example["masked_at"][row, slot])) for row, slot in np.argwhere(example["masked"])}
    assert config.predicts == "all" or len(chosen) < example["masked"].sum(), "no place was drawn twice"
    counted = sorted(chosen) if config.predicts == "chosen" else [tuple(place) for place in np.argwhere(example["segments"])]
    loss, hits, wrong = 0.0, 0, 0
    for row, at in counted:
        scores = reference_bert.mlm_logits(wide["replaced_mlm"], wide["embeddings"]["token"]["table"], model, hidden[row, at])
        p = np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum()
        if config.predicts == "all":
            copied = reference_electra.rtd_logits({"rtd": wide["copy"]}, model, hidden[row, at])
            d = 1 / (1 + np.exp(-copied))
            p = (1 - d) * p
            p[fake[row, at]] += d
        loss, hits = loss - np.log(p[original[row, at]]), hits + (p.argmax() == original[row, at])
        wrong += fake[row, at] != original[row, at]
    assert wrong > 0 and any(fake[place] == original[place] for place in chosen)

    np.testing.assert_allclose(sums["replaced_mlm"], loss, rtol=1e-5)
    weights = {name: int(n) for name, n in objective.weights(example).items()}
    assert weights == {"mlm": int(example["masked"].sum()), "replaced_mlm": len(counted)}
    for name, pair in {"replaced_mlm_loss": (loss, len(counted)), "replaced_mlm_accuracy": (hits, len(counted))}.items():
        np.testing.assert_allclose(metrics[name], pair, rtol=1e-5, err_msg=name)
    np.testing.assert_array_equal(metrics["replaced"], [wrong, len(counted)])
    total = combine(objective, sums, objective.weights(example))
    np.testing.assert_allclose(total, sums["mlm"] / weights["mlm"] + loss / len(counted), rtol=1e-5)

    assert ("copy" in params) == (config.predicts == "all")
    for path, leaf in tree.leaves(slope):
        assert np.any(leaf) == (path.split("/")[0] in ("discriminator", "replaced_mlm", "copy", "embeddings")), path


@BOTH
def test_nothing_to_learn_is_zero_and_finite(config: ReplacedMlmConfig, model: ElectraConfig) -> None:
    """Rows of padding alone: no loss, no gradient, and every metric a number."""
    objective, params, example, keys = setting(config, model, (0,) * 6)
    sums, metrics, _, slope = jax.device_get(compiled(config, model)(params, example, keys))
    assert not any(sums.values()) and not any(objective.weights(example).values())
    assert not any(objective.summary(metrics).values()) and all(np.all(leaf == 0) for leaf in jax.tree.leaves(slope))


def states(params: dict, hidden: jax.Array) -> States:
    return States(hidden, params["embeddings"]["token"]["table"])


@pytest.mark.full
def test_all_tokens_on_eight_devices_are_those_of_one() -> None:
    """Rows over all devices, every table split: sums and gradients <= 1e-5. The rest of the step is that of replaced-token detection."""
    objective, params, _, _ = setting(ALL)
    random, rows = np.random.default_rng(0), tiny.batch(tiny.RAGGED)
    rows = {**rows, "original": rows["tokens"], "tokens": np.roll(rows["tokens"], 1, 0), "hidden": random.normal(size=(32, 48, 32))}

    def on(preset: str, devices: int) -> Any:
        mesh = tiny.mesh(preset, devices)
        with jax.set_mesh(mesh):
            place = layout(objective, OptimConfig(), tiny.ROWS, mesh, preset)
            given = partition.place({**rows, "hidden": rows["hidden"].astype(np.float32)}, mesh)
            loss = lambda params, hidden: objective.of_all(whole := place.whole(params), states(whole, hidden), given["tokens"], given)
            run = jax.jit(jax.value_and_grad(loss, (0, 1), has_aux=True))
            return jax.device_get(run(jax.device_put(params, place.shardings.params), given["hidden"]))

    (loss, hits), slopes = on("fsdp_tp", 8)
    (want, right), one = on("dp", 1)
    assert abs(loss - want) <= 1e-5 * want and hits == right > 0
    tiny.assert_close(slopes, one, 1e-5)


def test_the_softmax_of_all_tokens_is_never_whole_in_memory() -> None:
    """Forward and backward take less than the logits of all tokens alone; whole, they take four times as much."""
    objective = tiny.objective(ReplacedMlmConfig(predicts="all"), dataclasses.replace(TIED, vocab_size=8000), 64)
    shapes, ids = parameters(objective)[0], jax.ShapeDtypeStruct((8, 64), jnp.int32)
    loss = lambda params, hidden, *given: objective.of_all(params, states(params, hidden), *given)[0]
    given = (shapes, jax.ShapeDtypeStruct((8, 64, 32), jnp.float32), ids, {"segments": ids, "original": ids})
    taken = jax.jit(jax.grad(loss, (0, 1))).lower(*given).compile().memory_analysis().temp_size_in_bytes
    assert taken < 8 * 64 * 8064 * 4


@pytest.mark.parametrize("config", [CHOSEN, ALL], ids=["replace", "all tokens"])
def test_flops_are_those_of_all_products(config: ReplacedMlmConfig) -> None:
    """Counted by hand from the shapes of the kernels, as for replaced-token detection; the second softmax is over what is predicted."""
    objective = tiny.objective(config, tiny.PAIR)
    predictions = objective.generator.masking.predictions
    own = predictions if config.predicts == "chosen" else tiny.LENGTH
    total = 6 * (predictions + own) * 200 * tiny.PAIR.embedding
    for path, leaf in tree.leaves(tiny.drawn(Run(objective=config, model=tiny.PAIR))):
        if path.endswith("kernel"):
            total += 6 * np.prod(leaf.shape) * {"mlm": predictions, "replaced_mlm": own}.get(path.split("/")[0], tiny.LENGTH)
    assert objective.flops(tiny.LENGTH) == total + 12 * tiny.LENGTH**2 * (2 * 32 + 1 * 16)


def test_outputs_are_those_of_both_networks() -> None:
    """<= 2e-5 against the reference; the vocabularies without their padding."""
    objective, params, _, _ = setting(ALL)
    rows = tiny.batch([9, 1, 13], 13)
    got = jax.jit(objective.outputs)(params, {name: rows[name] for name in ("tokens", "types", "positions", "segments")})
    wide, inputs = jax.tree.map(np.float64, params), (rows["tokens"], rows["types"], rows["positions"], rows["segments"].sum(1))
    states = reference_electra.encode(wide, TIED, "discriminator", *inputs)
    generated = reference_electra.encode(wide, TIED, "generator", *inputs)[-1]
    want = {
        "hidden": states,
        "replaced_mlm": reference_bert.mlm_logits(wide["replaced_mlm"], wide["embeddings"]["token"]["table"], TIED, states[-1]),
        "copy": reference_electra.rtd_logits({"rtd": wide["copy"]}, TIED, states[-1]),
        "mlm": reference_electra.mlm_logits(wide, TIED, generated),
    }
    assert got.keys() == want.keys()
    for name, value in want.items():
        assert got[name].shape == value.shape and got[name].dtype == jnp.float32
        np.testing.assert_allclose(got[name], value, rtol=0, atol=2e-5, err_msg=name)


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"predicts": "some"}, "objective.predicts is 'some'; use chosen or all"),
        ({"replaced_mlm_coef": -1.0}, "objective.replaced_mlm_coef"),
    ],
)
def test_refusals_name_the_field(changes: dict, message: str) -> None:
    with pytest.raises(UserError, match=message):
        ReplacedMlmConfig(**changes)


def test_a_model_that_is_no_pair_is_refused() -> None:
    with pytest.raises(UserError, match="objective.kind replaced_mlm .* set model.kind to electra or .*, not bert"):
        tiny.objective(ReplacedMlmConfig(), tiny.MODEL)
