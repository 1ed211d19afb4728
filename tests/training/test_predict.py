"""Predictions on held-out rows: one a row, in the order of the rows, whatever the batch and the mesh; without dropout or padding."""

import dataclasses
import functools
import sys
from collections.abc import Iterable
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxenc import heads
from jaxenc.data.batch import Batch, pad_rows
from jaxenc.data.pipeline import Pass
from jaxenc.data.sources import DataConfig
from jaxenc.execution import Execution
from jaxenc.objectives.base import ObjectiveConfig, PhaseSetting
from jaxenc.objectives.heads import HeadsConfig
from jaxenc.objectives.mlm import MlmConfig
from jaxenc.objectives.pair import PairConfig
from jaxenc.optim.optimizer import OptimConfig
from jaxenc.precision import policy
from jaxenc.sharding import partition
from jaxenc.training.evaluate import compile_evaluation, evaluate, padded_batch
from jaxenc.training.predict import compile_predictions, predict, predicted
from jaxenc.training.state import layout
from tests import tiny
from tests.faults.gang import Gang
from tests.heads.test_own_head import SCORE
from tests.training.test_evaluate import LENGTH, LENGTHS, MODEL, N, Rows

CONFIG = HeadsConfig(("pooler", "mlm", "next_sentence", "classifier", "tags", "spans"), labels=("a", "b", "c"))
# What is between two batches or meshes, which add in another order.
CLOSE = 1e-5


@dataclasses.dataclass(frozen=True)
class Labelled(Rows):
    """The rows of an evaluation, with labels that nothing is known of."""

    def rows(self, epoch: int, indices: np.ndarray) -> Batch:
        rows = super().rows(epoch, indices)
        one, each = np.full(len(indices), -1, np.int32), np.full((len(indices), LENGTH), -1, np.int32)
        return {**rows, "label": one, "start": one, "end": one, "tags": each}


@functools.cache
def ready(devices: int = 1, preset: str = "dp", dropout: float = 0.1, config: ObjectiveConfig = CONFIG):
    """(mesh, objective, parameters, what is compiled)"""
    where = tiny.mesh(preset, devices)
    objective = tiny.objective(config, dataclasses.replace(MODEL, dropout=dropout, attention_dropout=dropout), LENGTH)
    with jax.set_mesh(where):
        place = layout(objective, OptimConfig(), 8, where, preset)
        params = jax.device_put(tiny.filled(place.shapes.all_params, objective, MODEL.vocab_size), place.shardings.all_params)
        return where, objective, params, compile_predictions(objective, place)


def found(batches: Iterable[Batch], *which) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    where, objective, params, step = ready(*which)
    with jax.set_mesh(where):
        found = predict(objective, step, 0, params, batches, where)
        return found.index, found.predictions


def in_batches(batch: int, *which) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Of all rows in batches of `batch`, of which each process reads its own rows."""
    once = Pass(Labelled(), padded_batch(batch, ready(*which)[0]))
    slots = partition.process_slots(once.batch, jax.process_count(), jax.process_index())
    return found((once.batch_at(number, slots) for number in range(len(once))), *which)


def softmax(logits: np.ndarray) -> np.ndarray:
    odds = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return odds / odds.sum(axis=-1, keepdims=True)


# (rows in a batch, devices, preset), as in test_evaluate.py.
SPLITS = [(7, 1, "dp"), (7, 8, "dp"), *(pytest.param(*one, marks=pytest.mark.full) for one in [(64, 1, "dp"), (64, 8, "fsdp_tp")])]


@pytest.fixture(scope="module")
def outputs() -> dict[str, np.ndarray]:
    """What the model says of all rows at once, in their order, float64."""
    _, objective, params, _ = ready()
    return jax.tree.map(np.float64, jax.device_get(jax.jit(objective.outputs)(params, Labelled().rows(0, np.arange(N)))))


@pytest.mark.parametrize("batch, devices, preset", SPLITS)
def test_every_row_once_and_in_order(batch: int, devices: int, preset: str, outputs: dict[str, np.ndarray]) -> None:
    """Against the logits of all rows (<= 1e-5); the tag of a token may be another where two logits are as close as that."""
    index, got = in_batches(batch, devices, preset)
    assert index.dtype == np.uint32 and index.tolist() == list(range(N))
    assert {name: (a.shape, a.dtype.name) for name, a in got.items()} == {
        "next_sentence": ((N, 2), "float32"),
        "classifier": ((N, 3), "float32"),
        "tags": ((N, LENGTH), "int32"),
        "spans": ((N, LENGTH, 2), "float32"),
    }
    real = np.arange(LENGTH) < LENGTHS[:, None]
    np.testing.assert_allclose(got["next_sentence"], softmax(outputs["next_sentence"]), rtol=0, atol=CLOSE)
    np.testing.assert_allclose(got["classifier"], softmax(outputs["classifier"]), rtol=0, atol=CLOSE)
    np.testing.assert_allclose(got["spans"][real], outputs["spans"][real], rtol=0, atol=CLOSE)
    low, high = np.moveaxis(np.sort(outputs["tags"], axis=-1)[..., -2:], -1, 0)
    clear = real & (high - low > CLOSE)
    assert clear.sum() > 0.99 * real.sum()
    np.testing.assert_array_equal(got["tags"][clear], outputs["tags"].argmax(-1)[clear])


@pytest.mark.full
@pytest.mark.slow
def test_every_process_has_all_rows(tmp_path: Path) -> None:
    """Two processes of four devices each, with half of every batch: both have, bitwise, the same of all rows, in order, and it is what one
    process has (<= 1e-5)."""
    with Gang(2, 4, (sys.executable, "-m", "tests.training.predicting", 7, tmp_path)) as gang:
        assert gang.end() == 0, gang.said
    first, second = (dict(np.load(tmp_path / f"{rank}.npz")) for rank in range(2))
    tiny.assert_bitwise(first, second)
    index, want = in_batches(7, 8, "dp")
    np.testing.assert_array_equal(first.pop("index"), index)
    assert first.keys() == want.keys()
    for name in ("classifier", "next_sentence"):
        np.testing.assert_allclose(first[name], want[name], rtol=0, atol=CLOSE)


def test_the_rows_of_streams_come_out_in_order() -> None:
    """Batches that hold rows in any order, with padding among them: each row has its own prediction (<= 1e-5)."""
    _, want = in_batches(N)
    order = np.random.default_rng(0).permutation(N)
    source = Labelled()
    part = lambda rows: pad_rows(source.rows(0, rows), 16)
    flipped = lambda batch: {name: array[::-1] for name, array in batch.items()}
    index, got = found(flipped(part(order[i : i + 13])) for i in range(0, N, 13))
    assert index.tolist() == list(range(N))
    for name in ("classifier", "next_sentence"):
        np.testing.assert_allclose(got[name], want[name], rtol=0, atol=CLOSE)


def test_dropout_is_off() -> None:
    """A model with half of everything dropped predicts as one without dropout, bitwise."""
    dropped, kept = (in_batches(64, 1, "dp", rate) for rate in (0.5, 0.0))
    tiny.assert_bitwise(dropped, kept)


def test_labels_are_not_read() -> None:
    """Rows with labels have the predictions of rows without, bitwise."""
    rows = Labelled().rows(0, np.arange(16))
    known = {name: np.maximum(array, 0) for name, array in rows.items()}
    tiny.assert_bitwise(found([rows]), found([known]))


def test_masked_rows_are_those_that_are_scored() -> None:
    """A row is masked as itself in any batch and slot: the same prediction (<= 1e-5), and exactly the accuracy of an evaluation."""
    which = (1, "dp", 0.1, PairConfig())
    index, want = in_batches(N, *which)
    _, got = in_batches(7, *which)
    np.testing.assert_allclose(got["next_sentence"], want["next_sentence"], rtol=0, atol=CLOSE)
    where, objective, params, _ = ready(*which)
    rows = Labelled().rows(0, np.arange(N))
    with jax.set_mesh(where):
        scored = compile_evaluation(objective, layout(objective, OptimConfig(), 8, where, "dp"))
        numbers = evaluate(objective, scored, 0, params, [rows], where)
    right = want["next_sentence"].argmax(axis=1) == rows["is_random"][index]
    assert 0.2 < right.mean() < 0.8 and numbers["next_sentence_accuracy"] == right.mean()


def test_predictions_are_float32_in_any_precision() -> None:
    """Even those that a head of one's own gives in bfloat16, which NumPy lacks."""
    how = Execution(policy("bfloat16"), "xla", "none", False)
    half = heads.with_built_in(dataclasses.replace(SCORE, prediction=lambda logits: logits.astype(jnp.bfloat16)))
    objective = HeadsConfig(("pooler", "score")).build(MODEL, PhaseSetting(tiny.VOCABULARY, how, DataConfig(length=LENGTH), 0, half))
    where = tiny.mesh("dp", 1)
    with jax.set_mesh(where):
        place = layout(objective, OptimConfig(), 8, where, "dp")
        rows = {**Labelled().rows(0, np.arange(4)), "score": np.zeros(4, np.float32), "real": np.ones(4, bool)}
        shapes, _ = jax.eval_shape(compile_predictions(objective, place), place.shapes.all_params, rows, np.int32(0))
    assert (shapes["score"].shape, shapes["score"].dtype) == ((4,), jnp.float32)


@pytest.mark.parametrize("config, names", [(MlmConfig(), ()), (PairConfig(), ("next_sentence",)), (HeadsConfig(("pooler", "mlm")), ())])
def test_an_objective_says_what_it_predicts(config, names: tuple[str, ...]) -> None:
    objective, where = tiny.objective(config, MODEL, LENGTH), tiny.mesh("dp", 8)
    with jax.set_mesh(where):
        assert predicted(objective, layout(objective, OptimConfig(), 8, where, "dp"), tiny.phase(8, LENGTH)) == names
