"""Rows of several texts, of which one is right: scores against slow NumPy, draws by row and choice, parts of a batch, predictions."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxenc import rng
from jaxenc.data.batch import Batch, check_ranges, empty
from jaxenc.data.pipeline import Pass
from jaxenc.errors import UserError
from jaxenc.families.bert.model import BertConfig
from jaxenc.objectives import encoder as encoders
from jaxenc.objectives.heads import Heads, HeadsConfig
from jaxenc.optim.optimizer import OptimConfig
from jaxenc.training.evaluate import padded_batch
from jaxenc.training.predict import compile_predictions, predict
from jaxenc.training.run import Run
from jaxenc.training.settings import TrainConfig
from jaxenc.training.state import layout
from tests import tiny
from tests.families.reference_bert import dense
from tests.sent import sent

CHOICES, LENGTH, ROWS = 3, 12, 16
CONFIG = HeadsConfig(("pooler", "choice"), choices=CHOICES)
QUIET = dataclasses.replace(tiny.MODEL, layers=1, dropout=0.0, attention_dropout=0.0)
NOISY = dataclasses.replace(QUIET, dropout=0.5)
TEXT = ("tokens", "types", "positions", "segments")
# Of the texts; the last row is padding, and rows 2 and 7 have two choices: row 7 has no first one.
LENGTHS = np.random.default_rng(5).integers(3, LENGTH + 1, (ROWS, CHOICES)) * (np.arange(ROWS) < ROWS - 1)[:, None]
LENGTHS[2, 1] = LENGTHS[7, 0] = 0
# Row 4 has no right choice.
RIGHT = np.where(np.arange(ROWS) == 4, -1, np.random.default_rng(6).integers(0, CHOICES, ROWS) * (np.arange(ROWS) != 2)).astype(np.int32)
COUNTED = [row for row in range(ROWS - 1) if row != 4]


def texts() -> Batch:
    """All texts one after another."""
    return {name: array for name, array in tiny.batch(LENGTHS.reshape(-1).tolist(), LENGTH).items() if name in TEXT}


def rows() -> Batch:
    of_rows = {name: array.reshape(ROWS, CHOICES, LENGTH) for name, array in texts().items()}
    return {**of_rows, "choice": RIGHT, "index": np.arange(ROWS, dtype=np.uint32)}


@functools.cache
def built(model: BertConfig = QUIET) -> tuple[Heads, dict]:
    """(objective, parameters)"""
    drawn = tiny.drawn(Run(objective=CONFIG, model=model))
    return tiny.objective(CONFIG, model, LENGTH), jax.tree.map(jnp.asarray, drawn)


def expected(scores: np.ndarray) -> tuple[float, int]:
    """(sum of losses, right answers) of scores [rows, choices], one row and one choice at a time."""
    loss, correct = 0.0, 0
    for row in COUNTED:
        there = [choice for choice in range(CHOICES) if LENGTHS[row, choice]]
        own = scores[row, RIGHT[row]]
        loss += np.log(sum(np.exp(scores[row, choice]) for choice in there)) - own
        correct += all(own >= scores[row, choice] for choice in there)
    return loss, correct


def test_a_row_is_a_softmax_over_its_choices() -> None:
    """Loss, count and right answers from the hidden states of the texts alone (<= 1e-5): an empty choice is none, padding no row."""
    objective, params = built()
    hidden = np.float64(jax.jit(objective.outputs)(params, texts())["hidden"][-1])
    p = jax.device_get(params)
    scores = dense(np.tanh(dense(hidden[:, 0], p["pooler"]["dense"])), p["choice"]["dense"]).reshape(ROWS, CHOICES)
    terms, metrics, _ = jax.jit(lambda params: objective.terms(params, {}, rows(), rng.training(0, jnp.int32(0), ROWS), False))(params)
    loss, correct = expected(scores)
    assert int(objective.weights(rows())["choice"]) == len(COUNTED) == 14
    assert abs(float(terms["choice"]) - loss) <= 1e-5 * loss
    assert [float(value) for value in metrics["choice_accuracy"]] == [correct, len(COUNTED)] and 0 < correct < len(COUNTED)


def test_a_choice_draws_from_its_row_and_its_number() -> None:
    """With dropout the scores are those of the texts as rows slot * choices + choice (<= 1e-5), also of rows that are a part of a batch."""
    objective, params = built(NOISY)
    keys = rng.training(0, jnp.int32(3), ROWS)
    part = np.array([1, 5, 6, 12])
    own = dataclasses.replace(keys, rows=keys.rows[part])
    some = {name: array[part] for name, array in rows().items()}
    got = jax.jit(lambda params: objective.terms(params, {}, some, own, True)[0]["choice"])(params)

    def of_texts(params: dict) -> jax.Array:
        every = rng.training(0, jnp.int32(3), ROWS * CHOICES)
        states = encoders.read(objective.encoder, params, texts(), every)
        return encoders.logits(objective.heads, params, states, texts()["segments"], every)["choice"]

    scores = np.float64(jax.jit(of_texts)(params)).reshape(ROWS, CHOICES)[part]
    want = sum(np.log(np.exp(scores[i]).sum()) - scores[i, RIGHT[row]] for i, row in enumerate(part))
    assert abs(float(got) - want) <= 1e-5 * abs(want)


@functools.cache
def step(devices: int, microbatches: int) -> tiny.Compiled:
    objective = tiny.objective(CONFIG, dataclasses.replace(NOISY, dropout=0.1), LENGTH)
    config = TrainConfig(batch=ROWS, microbatches=microbatches, precision="float32")
    return tiny.compile_for(objective, OptimConfig(warmup=0), config, tiny.phase(ROWS, LENGTH, 30, lr=3e-3), tiny.mesh("dp", devices))


@pytest.mark.full
def test_parts_and_devices_are_the_whole_batch() -> None:
    """Loss and gradient of a step with dropout: one device, and eight in two parts (<= 1e-5); no row moves between devices.

    The bias of the scores is the same for all choices of a row: its gradient is zero."""
    whole, parts = step(1, 1), step(8, 2)
    (first, told), (second, said) = (one.run(tiny.reads(rows(), one.objective)) for one in (whole, parts))
    assert abs(told["loss"] - said["loss"]) <= 1e-6 * told["loss"]
    slopes = [tiny.gradient(state) for state in (second, first)]
    assert all(abs(one["choice"]["dense"].pop("bias").item()) <= 1e-6 for one in slopes)
    tiny.assert_close(*slopes, 1e-5)
    assert {one.kind for one in sent(parts.step.as_text())} == {"all-reduce"}


def test_it_learns_and_predicts() -> None:
    """Thirty steps take the loss below a fifth; predictions in batches of 5 are the softmax of the texts' scores, in order (<= 1e-5)."""
    ready = step(8, 2)
    state, reports = None, []
    for _ in range(30):
        state, report = ready.run(tiny.reads(rows(), ready.objective), state)
        reports.append(report["loss"])
    assert reports[-1] < reports[0] / 5, reports

    @dataclasses.dataclass(frozen=True)
    class Source:
        fields: tuple[str, ...] = (*TEXT, "choice", "index")

        def __len__(self) -> int:
            return ROWS

        def rows(self, epoch: int, indices: np.ndarray) -> Batch:
            return {name: array[indices] for name, array in rows().items()}

    objective, where = ready.objective, ready.mesh
    with jax.set_mesh(where):
        place = layout(objective, OptimConfig(), ROWS, where, "dp")
        once = Pass(Source(), padded_batch(5, where))
        batches = map(once.batch_at, range(len(once)))
        params = jax.device_put(state.all_params, place.shardings.all_params)
        all_rows = predict(objective, compile_predictions(objective, place), 0, params, batches, where)
    index, found = all_rows.index, all_rows.predictions
    assert index.tolist() == list(range(ROWS - 1)) and found["choice"].shape == (ROWS - 1, CHOICES)
    scores = np.float64(jax.jit(objective.outputs)(jax.device_get(state.all_params), texts())["choice"]).reshape(ROWS, CHOICES)
    odds = np.exp(scores) * (LENGTHS > 0)
    np.testing.assert_allclose(found["choice"], (odds[:-1] / odds[:-1].sum(1, keepdims=True)), rtol=0, atol=1e-5)
    assert found["choice"][2, 1] == found["choice"][7, 0] == 0
    assert (found["choice"].argmax(1)[COUNTED] == RIGHT[COUNTED]).mean() > 0.9


def test_fields_have_an_axis_of_choices() -> None:
    objective, _ = built()
    batch = empty(objective.reads, 5, LENGTH, objective.fields)
    shapes = {name: array.shape for name, array in batch.items()}
    assert shapes == {**{name: (5, CHOICES, LENGTH) for name in TEXT}, "choice": (5,)}
    assert objective.flops(LENGTH) == CHOICES * (tiny.objective(HeadsConfig(("pooler",)), QUIET).flops(LENGTH) + 3 * 2 * 32)
    batch["choice"][1] = CHOICES
    with pytest.raises(UserError, match="the rows hold choice from 0 to 3, and the model takes -1 to 2"):
        check_ranges(batch, objective.reads, objective.fields)


@pytest.mark.parametrize(
    "config, told",
    [
        ({"choices": 1}, "objective.choices is 1, which leaves nothing to choose; set it to 0 for rows of one text, or to 2 or more"),
        ({"choices": -1}, "objective.choices is -1; it is at least 0"),
        ({"choices": 0}, "objective.choices is 0; set it to the number of texts of a row, between which choice chooses"),
        ({"heads": ("pooler", "classifier"), "labels": ("a", "b")}, "heads holds classifier, which does not choose between texts"),
        ({"heads": ("pooler", "choice", "rtd")}, "objective.heads holds rtd, which does not choose between texts"),
    ],
)
def test_what_does_not_go_together_is_one_line(config: dict, told: str) -> None:
    with pytest.raises(UserError) as error:
        tiny.objective(dataclasses.replace(CONFIG, **config), QUIET)
    assert told in str(error.value) and "\n" not in str(error.value)
