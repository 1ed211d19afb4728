"""Masked language modelling by RoBERTa's rule: where its masks come from, and rows that have none."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxenc import rng
from jaxenc.objectives.mlm import MlmConfig
from jaxenc.sharding import partition
from jaxenc.train.state import parameters
from tests import tiny

FAIRSEQ = MlmConfig(rounding="stochastic", candidates="all", replacements="all_but_control")
ROBERTA = dataclasses.replace(tiny.MODEL, types=1, first_position=1, activation="gelu_erf", norm_epsilon=1e-5, init="normal")


def corrupted(config: MlmConfig, rows: tiny.Batch, devices: int, parts: int) -> dict[str, np.ndarray]:
    """The examples of a batch laid over `devices`, drawn in `parts` as microbatches are: part m holds the rows m, m + parts, ..."""
    objective, mesh = tiny.objective(config, ROBERTA), tiny.mesh("dp", devices)
    keys = rng.training(3, jnp.int32(5), len(rows["tokens"])).per_row("corrupt", "mask")
    run = jax.jit(jax.vmap(objective.corrupt, in_axes=(0, 0, None)))
    out: dict[str, np.ndarray] = {}
    with jax.set_mesh(mesh):
        for part in range(parts):
            mine = partition.place({name: array[part::parts] for name, array in rows.items()}, mesh)
            for name, array in jax.device_get(run(keys[part::parts], mine, jnp.int32(5))).items():
                out.setdefault(name, np.zeros((len(keys), *array.shape[1:]), array.dtype))[part::parts] = array
    return out


@pytest.mark.parametrize("devices, parts", [(8, 1), (8, 4), (2, 2)])
def test_masks_depend_on_the_slot_alone(devices: int, parts: int) -> None:
    """Bitwise those of one device and one part, in every field; the counts are drawn, so they differ between equal rows."""
    units = MlmConfig(unit="spans", action="span")
    rows = tiny.reads(tiny.batch(tiny.RAGGED), tiny.objective(units, ROBERTA))
    tiny.assert_bitwise(corrupted(units, rows, devices, parts), corrupted(units, rows, 1, 1))
    one = corrupted(FAIRSEQ, rows, 1, 1)
    tiny.assert_bitwise(corrupted(FAIRSEQ, rows, devices, parts), one)
    counts = one["masked"].sum(1)
    assert len({int(counts[i]) for i, n in enumerate(tiny.RAGGED) if n == 10}) == 2


@pytest.mark.parametrize("rate", [0.15, 1e-9])
def test_rows_without_a_prediction_are_finite_and_weigh_nothing(rate: float) -> None:
    """Rows of three tokens, of which 55 % have none, and a batch where none has any: its loss and its gradient are zero."""
    config = dataclasses.replace(FAIRSEQ, rate=rate)
    objective, rows = tiny.objective(config, ROBERTA), tiny.batch([3] * 32)
    keys = rng.training(0, jnp.int32(0), 32)
    example = jax.vmap(objective.corrupt, in_axes=(0, 0, None))(keys.per_row("corrupt", "mask"), tiny.reads(rows, objective), jnp.int32(0))
    params = jax.tree.map(lambda leaf: np.random.default_rng(0).normal(0, 0.1, leaf.shape).astype(np.float32), parameters(objective)[0])

    def loss(params: dict) -> tuple[jax.Array, jax.Array]:
        terms, metrics, _ = objective.terms(params, {}, example, keys, True)
        return terms["mlm"], metrics["mask_rate"][0]

    (total, masked), gradient = jax.jit(jax.value_and_grad(loss, has_aux=True))(params)
    weight, counts = int(objective.weights(example)["mlm"]), np.asarray(example["masked"]).sum(1)
    assert weight == counts.sum() == masked and 0 in counts
    assert np.isfinite(total) and all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(gradient))
    moved = any(np.asarray(leaf).any() for leaf in jax.tree.leaves(gradient))
    assert (total > 0, moved) == ((True, True) if rate == 0.15 else (False, False)) and (weight > 0) == (rate == 0.15)


def test_only_a_unit_of_words_reads_where_they_start() -> None:
    assert "word_starts" not in tiny.objective(MlmConfig()).reads
    assert all(tiny.objective(MlmConfig(unit=unit)).reads["word_starts"] == 2 for unit in ("words", "ngrams", "spans"))


@pytest.mark.parametrize("longest", [0, 1])
def test_metrics_of_spans_and_a_batch_of_words_that_are_too_long(longest: int) -> None:
    """Of 32 rows of 48 tokens: the mean lengths, and what the budget of 7 a row holds. Rows of one long word: nothing, and no NaN."""
    objective, rows = tiny.objective(MlmConfig(unit="spans", longest=longest)), tiny.batch([48] * 32)
    keys = rng.training(0, jnp.int32(0), 32)
    params = jax.tree.map(lambda leaf: np.random.default_rng(0).normal(0, 0.1, leaf.shape).astype(np.float32), parameters(objective)[0])

    @jax.jit
    def run(rows: dict) -> tuple:
        example = jax.vmap(objective.corrupt, in_axes=(0, 0, None))(keys.per_row("corrupt", "mask"), rows, jnp.int32(0))
        loss = lambda params: (lambda terms, metrics, _: (terms["mlm"], metrics))(*objective.terms(params, {}, example, keys, True))
        return example, *jax.value_and_grad(loss, has_aux=True)(params)

    example, (_, metrics), _ = run(tiny.reads(rows, objective))
    means = objective.summary(jax.device_get(metrics))
    masked, spans = np.sum(example["masked"]), np.sum(example["masked_spans"])
    assert means["budget_used"] == pytest.approx(masked / (32 * 7)) and means["budget_used"] > 0.9
    assert means["span_tokens"] == pytest.approx(masked / spans) and means["span_tokens"] > means["span_words"] >= 1
    assert (means["span_words"] == 1) == (longest == 1)
    rows["word_starts"][:, 2:-1] = 0
    example, (total, _), gradient = run(tiny.reads(rows, objective))
    assert total == 0 and not any(np.asarray(leaf).any() for leaf in jax.tree.leaves(gradient)) and not example["masked_spans"].any()
