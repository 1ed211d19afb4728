"""Heads of fine-tuned models against transformers itself: the loss of a first step and every gradient, and folders in and out.

Collected where torch and transformers are installed (tests/run.sh --live; tests/conftest.py says what is missing).
"""

import copy
import dataclasses
from collections.abc import Mapping
from pathlib import Path

import jax
import numpy as np
import pytest
import torch
import transformers

from jaxenc.convert import hf, parity
from jaxenc.inference.load import Model
from jaxenc.objectives.heads import HeadsConfig
from jaxenc.training.run import Run
from tests import tiny
from tests.parity import ours, peer, tuned
from tests.parity.cases import LABELS, Case

# Every head once, and every family once.
SHORT = {"Bert-multilabel", "XLNet-regressor", "Roberta-choice", "Albert-multilabel", "Electra-choice", "DistilBert-regressor"}
SHORT |= {"OpenAIGPT-double"}
NAMES = [pytest.param(name, marks=[] if name in SHORT else pytest.mark.full) for name in tuned.TUNED]


def total(out: Mapping[str, torch.Tensor]) -> torch.Tensor:
    """The loss of a step. Of a model with two heads transformers returns each loss, and whoever trains it weighs them."""
    return out["loss"] if out.get("mc_loss") is None else out["mc_loss"] + tuned.LANGUAGE * out["loss"]


def step(model: torch.nn.Module, arguments: Mapping[str, np.ndarray]) -> tuple[float, dict[str, np.ndarray]]:
    """(loss, {name: gradient}) in float64, for ours to be the only rounding."""
    model = copy.deepcopy(model).double()
    given = {name: torch.tensor(value) for name, value in arguments.items()}
    loss = total(model(**{name: value.double() if value.is_floating_point() else value for name, value in given.items()}))
    loss.backward()
    return loss.item(), {name: (torch.zeros_like(p) if p.grad is None else p.grad).numpy() for name, p in model.named_parameters()}


@pytest.fixture(scope="module", params=NAMES)
def both(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Case, transformers.PreTrainedModel, Path, Model]:
    """(case, a random model of transformers, the folder it saved, our import of it with the choices and weights of the rows)."""
    case, folder = tuned.TUNED[request.param], tmp_path_factory.mktemp("theirs")
    theirs = peer.build(case, "gelu", seed=sum(map(ord, request.param)))
    theirs.save_pretrained(folder)
    model = hf.load(folder)
    objective = model.config.objective
    if objective.choices:
        weights = tuple(tuned.LANGUAGE if head == "next_token" else 1.0 for head in objective.heads)
        objective = dataclasses.replace(objective, choices=tuned.CHOICES, weights=weights)
    return case, theirs, folder, dataclasses.replace(model, config=dataclasses.replace(model.config, objective=objective))


def test_the_first_step(both: tuple[Case, transformers.PreTrainedModel, Path, Model]) -> None:
    """Loss and every gradient (<= 1e-5), of rows of one text and of two, in one program."""
    case, theirs, _, model = both
    assert set(model.objective.coef) == set(case.logits)
    slopes = jax.jit(jax.value_and_grad(lambda params, rows: ours.loss(model, params, rows)))
    for pair in (False, True) if case.typed else (False,):
        arguments = tuned.inputs(case, 5, pair)
        tokens = arguments["input_ids"]
        positions = model.config.model.positions_of(tokens.reshape(-1, tokens.shape[-1])).reshape(tokens.shape)
        loss, gradients = slopes(model.params, tuned.example(case, arguments, positions))
        wanted, theirs_ = step(theirs, arguments)
        assert abs(loss - wanted) <= ours.BOUND * max(1, wanted)
        tiny.assert_close(gradients, ours.in_our_layout(model, theirs_), ours.BOUND)


def test_out_again(both: tuple[Case, transformers.PreTrainedModel, Path, Model], tmp_path: Path) -> None:
    """An export has the class, the problem and the classes of the folder that came in, its numbers are ours (<= 1e-5 of the scale), and it
    imports to the same parameters and heads."""
    case, theirs, folder, model = both
    hf.save(tmp_path / "out", model)
    data, first = (transformers.AutoConfig.from_pretrained(path) for path in (tmp_path / "out", folder))
    assert data.architectures == [type(theirs).__name__]
    if case.architecture.endswith("Classification"):
        assert data.id2label == first.id2label and data.num_labels == first.num_labels
        assert data.problem_type == first.problem_type or first.problem_type is None
    assert all(one.within for one in parity.compare(model, tmp_path / "out"))
    back = hf.load(tmp_path / "out")
    tiny.assert_bitwise(back.params, model.params)
    assert back.config == hf.load(folder).config
