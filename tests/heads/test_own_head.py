"""A head defined outside of jaxenc, a regression: it trains, is evaluated with predictions, is saved, loads and predicts."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as nn

import jaxenc
from jaxenc import heads, rng, tree
from jaxenc.convert import hf
from jaxenc.data.pipeline import Pass
from jaxenc.errors import UserError
from jaxenc.formats import safetensors
from jaxenc.heads.contract import Head, Label
from jaxenc.heads.lm import LM
from jaxenc.inference.model import Model
from jaxenc.objectives.heads import HeadsConfig
from jaxenc.optim.optimizer import OptimConfig
from jaxenc.training.evaluate import compile_evaluation, evaluate, padded_batch
from jaxenc.training.predict import compile_predictions, predict
from jaxenc.training.run import Run
from jaxenc.training.settings import TrainConfig
from jaxenc.training.state import layout
from tests import tiny
from tests.families.reference_bert import dense


class Regressor(nn.Module):
    """One number for a text."""

    @nn.compact
    def __call__(self, pooled: jax.Array) -> jax.Array:
        return nn.Dense(1, name="dense")(pooled)[..., 0]


def squared_error(logits: jax.Array, labels: dict, counted: jax.Array) -> tuple[jax.Array, dict]:
    errors = (logits - labels["score"]) * counted
    return jnp.sum(errors**2), {"absolute_error": jnp.sum(jnp.abs(errors))}


SCORE = Head(
    name="score",
    role="text",
    site=rng.FIRST_OWN_SITE,
    module=lambda setting: Regressor(),
    labels=(Label("score", "float32"),),
    loss=squared_error,
)
OWN = heads.with_built_in(SCORE)
RUN = Run(HeadsConfig(("pooler", "score")), dataclasses.replace(tiny.MODEL, layers=1, dropout=0.0, attention_dropout=0.0))
LENGTHS = (12, 9, 5, 0, 12, 7, 12, 3)
STEPS = 30


# Of held-out rows, each another text: 11 fill no batch of 3 or 8. Row 4 has no token.
HELD_OUT = (9, 12, 4, 7, 0, 12, 3, 10, 12, 5, 8)


def rows(lengths: Sequence[int] = LENGTHS, seed: int = 0) -> dict[str, np.ndarray]:
    """Texts and their scores from -1 to 1; row 2 has none, and a row of length 0 is padding."""
    batch = tiny.batch(lengths, 12, seed)
    score = np.linspace(-1, 1, len(lengths), dtype=np.float32)
    score[2] = np.nan
    return {**{name: batch[name] for name in ("tokens", "types", "positions", "segments")}, "score": score}


@dataclasses.dataclass(frozen=True)
class HeldOut:
    """A source of the held-out rows."""

    fields: tuple[str, ...] = ("tokens", "types", "positions", "segments", "score", "index")

    def __len__(self) -> int:
        return len(HELD_OUT)

    def rows(self, epoch: int, indices: np.ndarray) -> dict[str, np.ndarray]:
        everything = rows(HELD_OUT, seed=1) | {"index": np.arange(len(HELD_OUT), dtype=np.uint32)}
        return {name: array[indices] for name, array in everything.items()}


@pytest.fixture(scope="module")
def trained() -> tuple[dict, dict, list[dict]]:
    """(parameters before, after, the report of each step), in two microbatches."""
    objective = tiny.objective(RUN.objective, RUN.model, 12, heads=OWN)
    train, phase = TrainConfig(batch=8, microbatches=2), tiny.phase(8, 12, STEPS, lr=1e-2)
    ready = tiny.compile_for(objective, OptimConfig(warmup=0), train, phase, tiny.mesh("dp", 1))
    with jax.set_mesh(ready.mesh):
        state = ready.layout.create(rng.init_key(0))
    before, reports = jax.device_get(state.all_params), []
    for _ in range(STEPS):
        state, report = ready.run(rows(), state)
        reports.append(report)
    return before, jax.device_get(state.all_params), reports


@pytest.fixture(scope="module")
def saved(trained: tuple[dict, dict, list[dict]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("own") / "model"
    Model(RUN, trained[1], None, OWN).save(folder)
    return folder


def test_it_trains(trained: tuple[dict, dict, list[dict]]) -> None:
    """The first loss is the mean squared error over the six rows that have a score (<= 1e-5), and training takes it below a tenth."""
    before, _, reports = trained
    batch, params = rows(), jax.tree.map(jnp.asarray, before)
    pooled = np.float64(jax.jit(Model(RUN, params, None, OWN).apply)(params, batch)["pooled"])
    errors = (dense(pooled, before["score"]["dense"])[:, 0] - batch["score"])[[0, 1, 4, 5, 6, 7]]
    want = np.mean(errors**2)
    assert abs(reports[0]["loss"] - want) <= 1e-5 * want
    for name, of in (("loss", errors**2), ("absolute_error", np.abs(errors))):
        total, count = reports[0]["metrics"][f"score_{name}"]
        assert count == 6 and abs(total - of.sum()) <= 1e-5 * of.sum()
    assert reports[-1]["loss"] < reports[0]["loss"] / 10 and reports[-1]["skipped"] == 0


def test_it_is_saved_and_opened_and_predicts(trained: tuple[dict, dict, list[dict]], saved: Path) -> None:
    model = jaxenc.load(saved, heads=OWN)
    tiny.assert_bitwise(jax.device_get(model.params), trained[1])
    batch = {name: array for name, array in rows().items() if name != "score"}
    found = np.asarray(SCORE.prediction(jax.jit(model.apply)(model.params, batch)["score"]))
    known = [0, 1, 4, 5, 6, 7]
    assert found.shape == (8,) and found.dtype == np.float32
    assert abs(np.mean((found - rows()["score"])[known] ** 2) - trained[2][-1]["loss"]) <= 0.01
    assert "pooler, score" in repr(model)


SPLITS = [(3, 1, "dp"), (8, 8, "fsdp_tp"), *(pytest.param(*one, marks=pytest.mark.full) for one in [(8, 1, "dp"), (3, 8, "dp")])]


@pytest.mark.parametrize("batch, devices, preset", SPLITS)
def test_it_is_evaluated_with_predictions(batch: int, devices: int, preset: str, trained: tuple, saved: Path) -> None:
    """Those that the loaded model makes of the same rows, in the rows' order (<= 1e-5); the numbers are those of the predictions."""
    where = tiny.mesh(preset, devices)
    objective = tiny.objective(RUN.objective, RUN.model, 12, heads=OWN)
    with jax.set_mesh(where):
        place = layout(objective, OptimConfig(), 8, where, preset)
        params = jax.device_put(trained[1], place.shardings.all_params)
        once = Pass(HeldOut(), padded_batch(batch, where))
        batches = lambda: map(once.batch_at, range(len(once)))
        numbers = evaluate(objective, compile_evaluation(objective, place), 0, params, batches(), where)
        found = predict(objective, compile_predictions(objective, place), 0, params, batches(), where)
    index, predictions = found.index, found.predictions
    known = [row for row, length in enumerate(HELD_OUT) if length]
    assert index.tolist() == known and predictions.keys() == {"score"}
    model, held_out = jaxenc.load(saved, heads=OWN), rows(HELD_OUT, seed=1)
    texts = {name: array for name, array in held_out.items() if name != "score"}
    want = np.asarray(jax.jit(model.apply)(model.params, texts)["score"])[known]
    assert predictions["score"].dtype == np.float32 and np.diff(np.sort(want)).min() > 1e-3
    np.testing.assert_allclose(predictions["score"], want, rtol=0, atol=1e-5)
    errors = np.abs(predictions["score"] - held_out["score"][known])
    assert numbers["score_predictions"] == len(known) - 1
    np.testing.assert_allclose(numbers["score_absolute_error"], np.nanmean(errors), rtol=1e-5)


def test_without_the_head_it_does_not_open(saved: Path) -> None:
    with pytest.raises(UserError) as error:
        jaxenc.load(saved)
    told = str(error.value)
    assert told.startswith("objective.heads holds 'score'; it takes pooler, mlm,") and told.endswith("passed: load(DIR, heads=...)")


def test_it_is_exported_beside_the_model_of_transformers(trained: tuple, saved: Path, tmp_path: Path) -> None:
    """The encoder as BertModel, which opens alone, and the head by its paths, every bit of both."""
    out = tmp_path / "out"
    assert hf.save(out, jaxenc.load(saved, heads=OWN)) == {out: "BertModel"}
    back, own = hf.load(out), {path: tensor.read() for path, tensor in safetensors.open_tensors(out / hf.OWN_HEADS).items()}
    tiny.assert_bitwise(tree.merge(jax.device_get(back.params), tree.from_leaves(own.items())), trained[1])


def test_rows_that_pad_the_vocabulary_are_not_exported() -> None:
    """A head of one's own with a bias for each token: the file holds those of the 200 tokens, and not the 56 rows up to the padded 256."""
    own = heads.with_built_in(dataclasses.replace(LM, name="words", site=rng.FIRST_OWN_SITE))
    run = Run(HeadsConfig(("words",)), RUN.model)
    params = tiny.drawn(run, heads=own)
    assert params["words"]["bias"].shape == (256,)
    tiny.assert_bitwise(hf.own_heads(Model(run, params, None, own)), {"words/bias": params["words"]["bias"][:200]})
