"""One training step: the same numbers on any number of devices, in any number of parts, with or without recomputation."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxenc import rng
from jaxenc.objectives.mlm import MlmConfig
from jaxenc.optim.optimizer import OptimConfig
from jaxenc.training.settings import TrainConfig
from jaxenc.training.step import corrupt, corruption_keys, fields
from tests import tiny

BATCH = tiny.reads(tiny.batch(tiny.RAGGED), tiny.objective())


def seen(report: dict) -> dict[str, np.ndarray]:
    """The corrupted batch that the step trained on."""
    return {name: total for name, (total, _) in report["metrics"].items() if name.startswith("seen_")}


@pytest.fixture(scope="module")
def one() -> tuple:
    """State and report after the first step on one device, in one part."""
    return tiny.compiled("dp", 1).run(BATCH)


def test_the_compiled_step_trains_on_the_masks_of_its_slots(one: tuple) -> None:
    """Row s of step t is corrupted with the key of (seed, t, s): computed here without the step."""
    keys, corrupted = rng.training(0, jnp.int32(0), tiny.ROWS).per_row("corrupt", "mask"), jax.jit(tiny.objective().corrupt)
    for slot in (0, 1, 31):
        row = {name: array[slot] for name, array in BATCH.items()}
        for name, leaf in corrupted(keys[slot], row, jnp.int32(0)).items():
            np.testing.assert_array_equal(seen(one[1])[f"seen_{name}"][slot], leaf, err_msg=name)


@pytest.mark.slow
@pytest.mark.parametrize("parts", [pytest.param(2, marks=pytest.mark.full), 4, pytest.param(8, marks=pytest.mark.full)])
def test_microbatches_add_up_to_the_batch(parts: int, one: tuple) -> None:
    """Rows of 1, 3, 10, 40 tokens, dropout on. Masks bitwise; gradient <= 1e-6 over the whole tree, loss too."""
    state, report = tiny.compiled("dp", 1, parts).run(BATCH)
    tiny.assert_bitwise(seen(report), seen(one[1]))
    assert abs(report["loss"] - one[1]["loss"]) <= 1e-6 * one[1]["loss"]
    got, want = (np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(tiny.gradient(s))]) for s in (state, one[0]))
    assert np.linalg.norm(got - want) <= 1e-6 * np.linalg.norm(want)


@pytest.mark.slow
@pytest.mark.parametrize(
    "remat, scan",
    [
        pytest.param("attention", False, marks=pytest.mark.full),
        ("block", True),
        pytest.param("block", False, marks=pytest.mark.full),
        pytest.param("none", True, marks=pytest.mark.full),
    ],
)
def test_recomputing_and_scanning_change_no_number(remat: str, scan: bool, one: tuple) -> None:
    """Through the whole step, dropout on: gradient <= 1e-6 over the tree and <= 1e-5 in each leaf."""
    state, report = tiny.compiled("dp", 1, 1, remat, scan).run(BATCH)
    assert abs(report["loss"] - one[1]["loss"]) <= 1e-6 * one[1]["loss"]
    tiny.assert_close(tiny.gradient(state), tiny.gradient(one[0]), 1e-5)


def test_the_first_loss_is_that_of_a_uniform_guess() -> None:
    """ln V over the true vocabulary, and ln 2 for the pair, within 0.1 each."""
    ready = tiny.compiled("dp", 1)
    with jax.set_mesh(ready.mesh):
        _, report = ready.run(BATCH, ready.layout.create(rng.init_key(0)))
    means = {name: total / weight for name, (total, weight) in report["metrics"].items() if name.endswith("_loss")}
    assert abs(means["mlm_loss"] - np.log(tiny.VOCABULARY.size)) <= 0.1
    assert abs(means["next_sentence_loss"] - np.log(2)) <= 0.1
    assert abs(report["loss"] - sum(means.values())) <= 1e-5


def test_dropout_draws_anew_at_every_step_and_row(one: tuple) -> None:
    """From the same parameters, another step number gives another loss on the same rows; the same number gives the same bits."""
    ready = tiny.compiled("dp", 1)
    with jax.set_mesh(ready.mesh):
        again, other = (ready.run(BATCH, dataclasses.replace(ready.start(), step=jnp.int32(step))) for step in (0, 1))
    tiny.assert_bitwise(again, one)
    assert other[1]["loss"] != one[1]["loss"]


def eight_rows(optim: OptimConfig, lr: float, layers: int = 1) -> tiny.Compiled:
    """Masked tokens only, one device."""
    config, model = TrainConfig(batch=8, precision="float32"), dataclasses.replace(tiny.MODEL, layers=layers)
    return tiny.compile_for(tiny.objective(MlmConfig(), model), optim, config, tiny.phase(8, lr=lr), tiny.mesh("dp", 1))


@pytest.fixture(scope="module")
def plain() -> tiny.Compiled:
    return eight_rows(OptimConfig(), 1e-3)


def test_static_masks_come_back_after_dupe_factor_epochs_in_any_slot() -> None:
    """dupe_factor 2, through the compiled step: epochs 0 and 2 have equal masks and epoch 1 others, whatever slot or step a row is in.

    Two epochs may stand in one batch, and a batch of another size has the same masks.
    """
    config = TrainConfig(batch=8, precision="float32", dupe_factor=2)
    nano = dataclasses.replace(tiny.MODEL, layers=1, width=8, heads=1, feed_forward=8)
    chosen, where = tiny.Probe(tiny.objective(MlmConfig(), nano), 8), tiny.mesh("dp", 1)
    ready = tiny.compile_for(chosen, OptimConfig(), config, tiny.phase(8), where)
    rows = {name: array for name, array in tiny.batch([48] * 8).items() if name in fields(chosen, config)}
    with jax.set_mesh(where):
        fresh = jax.device_get(ready.start())

    def masked(order: np.ndarray, epochs: np.ndarray, step: int = 0) -> np.ndarray:
        """Masked places of the rows, in the order of the rows, whatever slots they stood in."""
        with jax.set_mesh(where):
            state = dataclasses.replace(jax.tree.map(jnp.array, fresh), step=jnp.int32(step))
            batch = {name: array[order] for name, array in rows.items()} | {"epoch": epochs[order].astype(np.uint32)}
            return seen(ready.run(batch, state)[1])["seen_masked_at"][np.argsort(order)]

    inorder, mixed = np.arange(8), np.array([3, 1, 7, 0, 2, 6, 5, 4])
    assert not np.array_equal(mixed, np.argsort(mixed))
    zero, one, two = masked(inorder, np.zeros(8)), masked(inorder, np.ones(8)), masked(mixed, np.full(8, 2), step=5)
    np.testing.assert_array_equal(zero, two)
    assert (zero != one).any(1).all()
    half = np.arange(8) % 2
    np.testing.assert_array_equal(masked(mixed, half, step=3), np.where(half[:, None] == 1, one, zero))
    with jax.set_mesh(where):
        few = {name: array[5:7] for name, array in rows.items()}
        keys = lambda rows: corruption_keys(config, config.seed, rng.training(config.seed, jnp.int32(9), 2), rows)
        example = jax.jit(lambda rows: corrupt(chosen, keys(rows), rows, where))(few)
        np.testing.assert_array_equal(example["masked_at"], zero[5:7])


def test_a_batch_of_padding_has_loss_and_gradient_zero(plain: tiny.Compiled) -> None:
    """No prediction anywhere: the loss is 0, not 0 / 0, and the step is a good one."""
    rows = {name: np.zeros_like(array[:8]) for name, array in tiny.batch(tiny.RAGGED).items() if name in tiny.objective(MlmConfig()).reads}
    state, report = plain.run(rows)
    assert report["loss"] == 0 and report["gradient_norm"] == 0 and report["bad"] == 0 and report["skipped"] == 0
    assert not any(leaf.any() for leaf in jax.tree.leaves(state.moments["adam"].mu))


@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_a_step_that_is_not_finite_changes_only_the_counts(value: float, plain: tiny.Compiled) -> None:
    """Parameters, moments and the optimizer's count bitwise as they were; `step` and `skipped` advance; the next step goes on."""
    rows = {name: array[:8] for name, array in BATCH.items() if name != "is_random"}
    with jax.set_mesh(plain.mesh):
        before, _ = plain.run(rows)
        params = jax.tree.map(jnp.array, before.params)
        params["mlm"]["bias"] = params["mlm"]["bias"].at[7].set(value)
        broken = dataclasses.replace(jax.tree.map(jnp.array, before), params=params)
        held = jax.device_get(broken)
        after, report = plain.run(rows, broken)
    assert report["bad"] == 1 and report["skipped"] == 1 and not np.isfinite(report["loss"])
    assert (after.step, after.skipped) == (held.step + 1, held.skipped + 1)
    assert after.moments["adam"].count == 1
    tiny.assert_bitwise((after.params, after.moments, after.carry), (held.params, held.moments, held.carry))
    with jax.set_mesh(plain.mesh):
        mended, report = plain.run(rows, dataclasses.replace(jax.tree.map(jnp.array, after), params=jax.tree.map(jnp.array, before.params)))
    assert report["bad"] == 0 and mended.skipped == 1 and mended.moments["adam"].count == 2


def test_frozen_parameters_never_move_and_have_no_moments() -> None:
    optim = OptimConfig(lr=1e-2, freeze=("embeddings/.*", "encoder/layer_00/.*"))
    ready = eight_rows(optim, 1e-2, layers=2)
    rows = {name: array[:8] for name, array in BATCH.items() if name != "is_random"}
    with jax.set_mesh(ready.mesh):
        first = jax.device_get(ready.start())
    assert set(first.frozen) == {"embeddings", "encoder"} and set(first.params["encoder"]) == {"layer_01"}
    assert jax.tree.structure(first.moments["adam"].mu) == jax.tree.structure(first.params)
    state, _ = ready.run(rows)
    tiny.assert_bitwise(state.frozen, first.frozen)
    moved = jax.tree.map(lambda a, b: bool((a != b).any()), state.params, first.params)
    assert all(jax.tree.leaves(moved["encoder"]["layer_01"]["feed_forward"])), "what is trained moves, the weights behind frozen ones too"
