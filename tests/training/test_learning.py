"""The tiny model learns what it is shown, which no step that is wrong in sign, in label or in position does."""

import dataclasses

import jax
import numpy as np
import pytest

from jaxenc import rng
from jaxenc.objectives.mlm import MlmConfig
from jaxenc.optim.optimizer import OptimConfig
from jaxenc.sharding import partition
from jaxenc.training.evaluate import compile_evaluation, evaluate
from jaxenc.training.settings import TrainConfig
from jaxenc.training.state import layout
from jaxenc.training.step import compile_step
from tests import tiny

STEPS = 500


@pytest.mark.slow
def test_thirty_two_sentences_are_learnt_by_heart() -> None:
    """Masked accuracy >= 0.98 on masks it never saw, after 500 steps on 32 rows of 16 tokens, without dropout."""
    length = 16
    model = dataclasses.replace(tiny.MODEL, width=64, dropout=0.0, attention_dropout=0.0, positions=length)
    objective, where = tiny.objective(MlmConfig(), model, length), tiny.mesh("dp", 1)
    rows = tiny.reads(tiny.batch([length] * 32, length), objective)
    optim, phase = OptimConfig(lr=5e-3, weight_decay=0.0), dataclasses.replace(tiny.phase(32, length, STEPS, lr=5e-3), warmup=30)
    with jax.set_mesh(where):
        place = layout(objective, optim, 32, where, "dp")
        step = compile_step(objective, TrainConfig(batch=32, precision="float32"), optim, phase, place)
        state, batch = place.create(rng.init_key(0)), partition.place(rows, where)
        for _ in range(STEPS):
            state, report = step(state, batch, np.int32(0))
        assess = compile_evaluation(objective, place)
        shifts = [{**rows, "index": np.arange(32, dtype=np.uint32) + 1000 * k} for k in range(8)]
        numbers = evaluate(objective, assess, 1, state.all_params, shifts, where)
    assert np.isfinite(report["loss"]) and numbers["mlm_accuracy"] >= 0.98, numbers
