"""Held-out numbers: every example once, masks that never change, no dropout."""

import dataclasses
import functools
from collections.abc import Callable

import jax
import numpy as np
import pytest

from jaxenc import rng
from jaxenc.data.batch import Batch
from jaxenc.data.pipeline import Pass
from jaxenc.objectives.mlm import MlmConfig
from jaxenc.objectives.pair import PairConfig
from jaxenc.optim.optimizer import OptimConfig
from jaxenc.training.evaluate import compile_evaluation, evaluate, padded_batch
from jaxenc.training.state import layout
from jaxenc.training.step import corrupt
from tests import tiny
from tests.selection import thinned

N, LENGTH = 103, 24
MODEL = dataclasses.replace(tiny.MODEL, layers=1, positions=LENGTH)
LENGTHS = np.random.default_rng(2).integers(3, LENGTH + 1, N)


@dataclasses.dataclass(frozen=True)
class Rows:
    """103 rows of unequal lengths; the first labels are the rarer ones, so that a lost tail changes every number."""

    fingerprint: str = "rows"
    length: int = LENGTH
    fields: tuple[str, ...] = ()

    def __len__(self) -> int:
        return N

    def rows(self, epoch: int, indices: np.ndarray) -> Batch:
        everything = tiny.batch(LENGTHS.tolist(), LENGTH, seed=4)
        everything["index"] = np.arange(N, dtype=np.uint32)
        return {name: array[indices] for name, array in everything.items()}


# (rows in a batch, devices, preset): the last rows of 7 on one device, and 7 where some devices have none.
SPLITS = [
    (7, 1, "dp"),
    (7, 8, "dp"),
    *(pytest.param(*one, marks=pytest.mark.full) for one in [(1, 1, "dp"), (64, 1, "dp"), (64, 8, "fsdp_tp")]),
]


@functools.cache
def ready(devices: int, dropout: float, preset: str = "dp", kind: Callable[[], MlmConfig] = PairConfig):
    where = tiny.mesh(preset, devices)
    objective = tiny.objective(kind(), model=dataclasses.replace(MODEL, dropout=dropout, attention_dropout=dropout), length=LENGTH)
    with jax.set_mesh(where):
        place = layout(objective, OptimConfig(), 8, where, preset)
        return where, objective, tiny.start(objective, place), compile_evaluation(objective, place)


def numbers(
    batch: int, devices: int = 1, dropout: float = 0.1, preset: str = "dp", kind: Callable[[], MlmConfig] = PairConfig
) -> dict[str, float]:
    where, objective, state, step = ready(devices, dropout, preset, kind)
    with jax.set_mesh(where):
        once = Pass(Rows(), padded_batch(batch, where))
        return evaluate(objective, step, 0, state.all_params, map(once.batch_at, range(len(once))), where)


@pytest.fixture(scope="module")
def expected() -> dict[str, float]:
    return numbers(N)


@pytest.mark.parametrize("batch, devices, preset", SPLITS)
def test_the_batch_and_the_devices_change_no_number(batch: int, devices: int, preset: str, expected: dict[str, float]) -> None:
    """<= 1e-6 relative, not bitwise, because a batch's float32 sum runs over other rows in another order. Counts, and so
    accuracies and rates, are exact."""
    got = numbers(batch, devices, preset=preset)
    assert got.keys() == expected.keys()
    for name, value in expected.items():
        exact = name.endswith(("accuracy", "rate", "predictions")) or name == "padding"
        assert abs(got[name] - value) <= (0 if exact else 1e-6 * value), name


def test_every_row_counts_once() -> None:
    """The rates by hand: of 103 rows, real positions of all of their positions; 15 % of each row's tokens, at least one, rounded."""
    got = numbers(7)
    masks = sum(min(4, max(1, round(int(n) * 0.15))) for n in LENGTHS)
    assert got["mask_rate"] == masks / LENGTHS.sum()
    assert (got["mlm_predictions"], got["next_sentence_predictions"]) == (masks, N)
    assert abs(got["padding"] - (1 - LENGTHS.sum() / (N * LENGTH))) < 1e-12


def test_a_rate_that_moves_is_at_its_end() -> None:
    """Whatever the step that is evaluated: the rate by hand of a run that went from 0.5 to 0.15."""
    moved = numbers(N, kind=functools.partial(MlmConfig, rate=0.5, final_rate=0.15, rate_steps=1000))
    assert moved["mask_rate"] == sum(max(1, round(int(n) * 0.15)) for n in LENGTHS) / LENGTHS.sum()


def test_twice_is_the_same_bitwise(expected: dict[str, float]) -> None:
    assert numbers(N) == expected


@pytest.mark.parametrize("kind", thinned([MlmConfig, PairConfig], MlmConfig))
def test_dropout_is_off(kind: type[MlmConfig]) -> None:
    """A model with half of everything dropped evaluates as one without dropout, bitwise, and the same twice."""
    dropped, kept, again = (numbers(64, dropout=rate, kind=kind) for rate in (0.5, 0.0, 0.5))
    assert dropped == kept == again


def test_masks_come_from_the_seed_and_the_index_alone() -> None:
    """A row is masked as itself wherever it stands: rows in reverse give the same numbers within rounding."""
    where, objective, state, step = ready(1, 0.1)
    with jax.set_mesh(where):
        rows = Rows().rows(0, np.arange(64))
        backwards = {name: array[::-1] for name, array in rows.items()}
        one, other = (evaluate(objective, step, 0, state.all_params, [batch], where) for batch in (rows, backwards))
    for name, value in one.items():
        assert abs(other[name] - value) <= 1e-6 * max(value, 1e-9), name


def test_pairs_are_scored_by_their_labels() -> None:
    """Against NumPy on the model's own logits: label 1 is column 1, and the accuracy counts the larger column (<= 1e-5)."""
    where, objective, state, step = ready(1, 0.1)
    rows = Rows().rows(0, np.arange(N))
    with jax.set_mesh(where):
        params = jax.device_get(state.params)
        params["next_sentence"]["dense"]["bias"] = np.array([0.7, -0.4], np.float32)
        got = evaluate(objective, step, 0, params, [rows], where)
        masked = lambda rows: corrupt(objective, rng.evaluation(0, rows["index"]), rows, where)
        hidden = jax.jit(lambda params, rows: objective.outputs(params, masked(rows))["hidden"][-1])(params, rows)
    pooled = np.tanh(np.float64(hidden[:, 0]) @ params["pooler"]["dense"]["kernel"] + params["pooler"]["dense"]["bias"])
    logits = pooled @ params["next_sentence"]["dense"]["kernel"] + params["next_sentence"]["dense"]["bias"]
    losses = np.log(np.exp(logits).sum(1)) - np.where(rows["is_random"] == 1, logits[:, 1], logits[:, 0])
    assert abs(got["next_sentence_loss"] - losses.mean()) <= 1e-5
    assert got["next_sentence_accuracy"] == ((logits[:, 1] > logits[:, 0]) == (rows["is_random"] == 1)).mean()
