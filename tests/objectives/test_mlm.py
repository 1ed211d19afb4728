"""Masked language modelling by RoBERTa's rule: where its masks come from, and rows that have none."""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxenc import rng
from jaxenc.objectives.mlm import MlmConfig
from jaxenc.reports import words
from jaxenc.sharding import partition
from jaxenc.training.run import Run
from tests import tiny
from tests.selection import thinned

FAIRSEQ = MlmConfig(rounding="stochastic", candidates="all", replacements="all_but_control")
ROBERTA = dataclasses.replace(tiny.MODEL, layers=1, types=1, first_position=1, activation="gelu_erf", norm_epsilon=1e-5, init="normal")


@functools.cache
def corruption(config: MlmConfig) -> Any:
    """Compiled: the examples of (keys [rows], rows, step)."""
    return jax.jit(jax.vmap(tiny.objective(config, ROBERTA).corrupt, in_axes=(0, 0, None)))


@functools.cache
def differentiated(config: MlmConfig) -> Any:
    """Compiled: ((sum of losses, metrics), gradient) of (params, example, keys) in training."""
    objective = tiny.objective(config, ROBERTA)

    def loss(params: dict, example: dict, keys: rng.Keys) -> tuple[jax.Array, dict]:
        terms, metrics, _ = objective.terms(params, {}, example, keys, True)
        return terms["mlm"], metrics

    return jax.jit(jax.value_and_grad(loss, has_aux=True))


def drawn(config: MlmConfig) -> dict[str, Any]:
    return tiny.drawn(Run(objective=config, model=ROBERTA))


def corrupted(config: MlmConfig, rows: tiny.Batch, devices: int, parts: int) -> dict[str, np.ndarray]:
    """The examples of a batch laid over `devices`, drawn in `parts` as microbatches are: part m holds the rows m, m + parts, ..."""
    mesh, keys = tiny.mesh("dp", devices), rng.training(3, jnp.int32(5), len(rows["tokens"])).per_row("corrupt", "mask")
    out: dict[str, np.ndarray] = {}
    with jax.set_mesh(mesh):
        for part in range(parts):
            mine = partition.place({name: array[part::parts] for name, array in rows.items()}, mesh)
            for name, array in jax.device_get(corruption(config)(keys[part::parts], mine, jnp.int32(5))).items():
                out.setdefault(name, np.zeros((len(keys), *array.shape[1:]), array.dtype))[part::parts] = array
    return out


@pytest.mark.parametrize("devices, parts", thinned([(8, 1), (8, 4)], (8, 4)))
def test_masks_depend_on_the_slot_alone(devices: int, parts: int) -> None:
    """Bitwise those of one device and one part, in every field; the counts are drawn, so they differ between equal rows."""
    units = MlmConfig(unit="spans", action="span")
    rows = tiny.reads(tiny.batch(tiny.RAGGED), tiny.objective(units, ROBERTA))
    tiny.assert_bitwise(corrupted(units, rows, devices, parts), corrupted(units, rows, 1, 1))
    one = corrupted(FAIRSEQ, rows, 1, 1)
    tiny.assert_bitwise(corrupted(FAIRSEQ, rows, devices, parts), one)
    counts = one["masked"].sum(1)
    assert len({int(counts[i]) for i, n in enumerate(tiny.RAGGED) if n == 10}) == 2


@pytest.mark.parametrize("rate", thinned([0.15, 1e-9], 1e-9))
def test_rows_without_a_prediction_are_finite_and_weigh_nothing(rate: float) -> None:
    """Rows of three tokens, of which 55 % have none, and a batch where none has any: its loss and its gradient are zero."""
    usual = dataclasses.replace(FAIRSEQ, max_predictions=8)
    objective, keys = tiny.objective(usual, ROBERTA), rng.training(0, jnp.int32(0), 32)
    rows = tiny.reads(tiny.batch([3] * 32), objective)
    example = corruption(dataclasses.replace(usual, rate=rate))(keys.per_row("corrupt", "mask"), rows, keys.step)
    (total, metrics), gradient = differentiated(usual)(drawn(usual), example, keys)
    weight, counts = int(objective.weights(example)["mlm"]), np.asarray(example["masked"]).sum(1)
    assert weight == counts.sum() == metrics["mask_rate"][0] and 0 in counts
    assert np.isfinite(total) and all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(gradient))
    moved = any(np.asarray(leaf).any() for leaf in jax.tree.leaves(gradient))
    assert (total > 0, moved) == ((True, True) if rate == 0.15 else (False, False)) and (weight > 0) == (rate == 0.15)


def test_only_a_unit_of_words_reads_where_they_start() -> None:
    assert "word_starts" not in tiny.objective(MlmConfig()).reads
    assert all(tiny.objective(MlmConfig(unit=unit)).reads["word_starts"] == 2 for unit in ("words", "ngrams", "spans"))


@pytest.mark.parametrize("longest", thinned([0, 1], 0))
def test_metrics_of_spans_and_a_batch_of_words_that_are_too_long(longest: int) -> None:
    """Of 32 rows of 48 tokens: the mean lengths, and what the budget of 7 a row holds. Rows of one long word: nothing, and no NaN."""
    config = MlmConfig(unit="spans", longest=longest)
    objective, rows, keys = tiny.objective(config, ROBERTA), tiny.batch([48] * 32), rng.training(0, jnp.int32(0), 32)

    def run() -> tuple:
        example = corruption(config)(keys.per_row("corrupt", "mask"), tiny.reads(rows, objective), keys.step)
        (total, metrics), gradient = differentiated(MlmConfig(unit="spans"))(drawn(config), example, keys)
        return example, total, objective.summary(jax.device_get(metrics)), gradient

    example, _, means, _ = run()
    masked, spans = np.sum(example["masked"]), np.sum(example["masked_spans"])
    assert means["budget_used"] == pytest.approx(masked / (32 * 7)) and means["budget_used"] > 0.9
    assert means["span_tokens"] == pytest.approx(masked / spans) and means["span_tokens"] > means["span_words"] >= 1
    assert (means["span_words"] == 1) == (longest == 1)
    assert {"span_tokens", "span_words", "budget_used"} <= dict(words.explained([means])).keys()
    rows["word_starts"][:, 2:-1] = 0
    example, total, _, gradient = run()
    assert total == 0 and not any(np.asarray(leaf).any() for leaf in jax.tree.leaves(gradient)) and not example["masked_spans"].any()
