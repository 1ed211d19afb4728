"""Distillation against torch's own losses, and what was distilled in transformers."""

import logging
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
import transformers

from jaxenc import losses
from jaxenc.convert import hf, parity
from jaxenc.data import tokenizers
from jaxenc.inference.model import Model
from jaxenc.objectives.distillation import DistillationConfig
from jaxenc.training.run import Run
from tests import tiny
from tests.objectives import reference_distillation as reference
from tests.training.conftest import make_data
from tests.training.test_teacher import recipe

COEF = {"soft": 5.0, "mlm": 2.0, "cosine": 1.0}
SHAPE, VOCAB, WIDTH, T = (3, 7), 31, 8, 2.0


@pytest.mark.parametrize("everywhere", [False, True])
def test_the_reference_and_our_sums_are_torchs_losses(everywhere: bool) -> None:
    """The reference of tests/objectives within 1e-12 in float64, slopes too; our sums and their slopes within 1e-5 in float32. As
    distiller.py of transformers' distillation example: KLDivLoss(batchmean) · T², CrossEntropyLoss, CosineEmbeddingLoss with target 1."""
    random = np.random.default_rng(1)
    real = np.arange(SHAPE[1]) < np.array([7, 4, 2])[:, None]
    said = [{"mlm": random.normal(0, 3, (*SHAPE, VOCAB)), "last": random.normal(0, 2, (*SHAPE, WIDTH))} for _ in range(2)]
    chosen = np.argwhere(real & (random.random(SHAPE) < 0.5))
    predicted = [(row, place, int(random.integers(VOCAB))) for row, place in chosen]
    rows, places, ids = (torch.tensor(column) for column in zip(*predicted, strict=True))

    student, teacher = ({name: torch.tensor(value, requires_grad=True) for name, value in one.items()} for one in said)
    mask = torch.tensor(real)
    compared = (student["mlm"][mask], teacher["mlm"][mask]) if everywhere else (student["mlm"][rows, places], teacher["mlm"][rows, places])
    log_q, p = torch.log_softmax(compared[0] / T, -1), torch.softmax(compared[1].detach() / T, -1)
    ones = torch.ones(int(real.sum()), dtype=torch.float64)
    parts = {
        "soft": torch.nn.KLDivLoss(reduction="batchmean")(log_q, p) * T**2,
        "mlm": torch.nn.CrossEntropyLoss()(student["mlm"][rows, places], ids),
        "cosine": torch.nn.CosineEmbeddingLoss()(student["last"][mask], teacher["last"][mask].detach(), ones),
    }
    sum(COEF[name] * part for name, part in parts.items()).backward()

    want = reference.loss(*said, real, predicted, everywhere, T, COEF)
    for name, part in parts.items():
        assert abs(want.parts[name] - part.item()) <= 1e-12 * part.item(), name
    for name, slope in want.slopes.items():
        assert np.abs(slope - student[name].grad.numpy()).max() <= 1e-12 * np.abs(slope).max(), name

    at = real if everywhere else np.zeros(SHAPE, bool)
    at[tuple(chosen.T)] = True
    ours, theirs = ({name: jnp.float32(value) for name, value in one.items()} for one in said)

    def loss(ours: dict) -> jax.Array:
        soft = losses.divergence(ours["mlm"], theirs["mlm"], jnp.asarray(at), T) / at.sum()
        mlm, _ = losses.cross_entropy(ours["mlm"][rows.numpy(), places.numpy()], jnp.asarray(ids.numpy()), jnp.ones(len(ids)))
        cosine = losses.cosine_distance(ours["last"], theirs["last"], jnp.asarray(real)) / real.sum()
        return COEF["soft"] * soft + COEF["mlm"] * mlm / len(ids) + COEF["cosine"] * cosine

    total, slopes = jax.jit(jax.value_and_grad(loss))(ours)
    wanted = sum(COEF[name] * part.item() for name, part in parts.items())
    assert abs(total - wanted) <= 1e-5 * wanted
    tiny.assert_close(slopes, {name: student[name].grad.numpy() for name in slopes}, 1e-5)


def test_what_was_distilled_opens_in_transformers(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """As DistilBertForMaskedLM without a missing or unexpected name; hidden states and logits within 1e-5 of the scale."""
    data = make_data(tmp_path / "made", 1)
    run = recipe(data, "T")
    assert isinstance(run.objective, DistillationConfig)
    tokenizer = tokenizers.load(data / "tokenizer")
    own: Run = run.with_vocabulary(tokenizer.vocabulary)
    model = Model(own, tiny.drawn(own), tokenizer)
    with caplog.at_level(logging.WARNING):
        hf.save(tmp_path / "out", model)
        opened, told = transformers.AutoModelForMaskedLM.from_pretrained(tmp_path / "out", output_loading_info=True, local_files_only=True)
    assert type(opened).__name__ == "DistilBertForMaskedLM" and not any(told.values()), told
    differences = parity.compare(model, tmp_path / "out")
    assert [one.name for one in differences] == ["hidden states", "mlm"] and all(one.within for one in differences), differences
