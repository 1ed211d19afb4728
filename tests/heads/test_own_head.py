"""A head that is defined outside of jaxenc, a regression: it trains, is saved, is opened again and predicts."""

import dataclasses
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as nn

import jaxenc
from jaxenc import heads, rng
from jaxenc.convert import hf
from jaxenc.errors import UserError
from jaxenc.heads.contract import Head, Label
from jaxenc.inference import load
from jaxenc.inference.load import Model
from jaxenc.objectives.heads import HeadsConfig
from jaxenc.optim.optimizer import OptimConfig
from jaxenc.training.run import Run
from jaxenc.training.settings import TrainConfig
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


def rows() -> dict[str, np.ndarray]:
    """Texts and their scores from -1 to 1; row 2 has none, and row 3 is padding."""
    batch = tiny.batch(LENGTHS, 12)
    score = np.linspace(-1, 1, len(LENGTHS), dtype=np.float32)
    score[2] = np.nan
    return {**{name: batch[name] for name in ("tokens", "types", "positions", "segments")}, "score": score}


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
    load.save(folder, Model(RUN, trained[1], None, OWN))
    return folder


def test_it_trains(trained: tuple[dict, dict, list[dict]]) -> None:
    """The first loss is the mean squared error over the six rows that have a score (<= 1e-5), and training takes it below a tenth."""
    before, _, reports = trained
    batch, params = rows(), jax.tree.map(jnp.asarray, before)
    pooled = np.float64(Model(RUN, params, None, OWN).apply(params, batch)["pooled"])
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
    found = np.asarray(SCORE.prediction(model.apply(model.params, batch)["score"]))
    known = [0, 1, 4, 5, 6, 7]
    assert found.shape == (8,) and found.dtype == np.float32
    assert abs(np.mean((found - rows()["score"])[known] ** 2) - trained[2][-1]["loss"]) <= 0.01
    assert "pooler, score" in repr(model)


def test_without_the_head_it_does_not_open(saved: Path) -> None:
    with pytest.raises(UserError) as error:
        jaxenc.load(saved)
    told = str(error.value)
    assert told.startswith("objective.heads holds 'score': it takes pooler, mlm,") and told.endswith("passed: load(DIR, heads=...)")


def test_transformers_has_no_such_head(saved: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="this model has the head score, and transformers has no such head: export a model without it"):
        hf.save(tmp_path / "out", jaxenc.load(saved, heads=OWN))
    assert not (tmp_path / "out").exists()
