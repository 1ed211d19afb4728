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
from jaxenc.errors import UserError
from jaxenc.inference.model import Model
from jaxenc.objectives.heads import HeadsConfig
from jaxenc.training.run import Run
from tests import tiny
from tests.parity import ours, peer, tuned
from tests.parity.cases import CASES, LABELS
from tests.parity.family import WIDTH, Case

# Every head once; test_live.py has the others.
SHORT = {"Bert-multilabel", "XLNet-regressor", "Electra-choice", "OpenAIGPT-double"}
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
    """Loss and every gradient (<= 1e-5), of rows of one text and of two, in one program.

    The bias of the scores of choices, or of places, is the same for all of them: its gradient is zero, with nothing to be relative to.
    """
    case, theirs, _, model = both
    assert set(model.objective.coef) == set(case.logits)
    slopes = jax.jit(jax.value_and_grad(lambda params, rows: ours.loss(model, params, rows)))
    for pair in (False, True) if case.family.typed else (False,):
        arguments = tuned.inputs(case, 5, pair)
        tokens = arguments["input_ids"]
        positions = model.config.model.positions_of(tokens.reshape(-1, tokens.shape[-1])).reshape(tokens.shape)
        loss, gradients = slopes(model.params, tuned.example(case, arguments, positions))
        wanted, slopes_ = step(theirs, arguments)
        assert abs(loss - wanted) <= ours.BOUND * max(1, wanted)
        pairs = [jax.device_get(one) for one in (gradients, ours.in_our_layout(model, slopes_))]
        for head in {"choice", "spans"} & set(case.logits):
            assert all(np.abs(one[head]["dense"].pop("bias")).max() <= 1e-6 for one in pairs)
        tiny.assert_close(*pairs, ours.BOUND)


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


@pytest.mark.parametrize("head", ["classifier", "regressor"])
def test_electras_own_head_reads_the_first_token_itself(head: str, tmp_path: Path) -> None:
    """google-research/electra has one dense layer on [CLS], which no class of transformers has: here it is torch's, on transformers'
    encoder. Loss and every gradient (<= 1e-5)."""
    case = tuned.TUNED[f"Electra-{head}"]
    encoder = peer.build(CASES["ElectraModel"], "gelu", seed=9)
    encoder.save_pretrained(tmp_path)
    bare = hf.load(tmp_path)
    classes = LABELS if head == "classifier" else 1
    kernel = np.random.default_rng(4).normal(0, 0.3, (WIDTH, classes)).astype(np.float32)
    bias = np.linspace(-0.5, 0.5, classes, dtype=np.float32)
    objective = HeadsConfig(("first_token", head), ("no", "maybe", "yes") if head == "classifier" else ())
    model = Model(Run(objective, bare.config.model), {**bare.params, head: {"dense": {"kernel": kernel, "bias": bias}}}, None)
    arguments = tuned.inputs(case, 5, True)
    loss, gradients = ours.slopes(model, tuned.example(case, arguments, bare.config.model.positions_of(arguments["input_ids"])))

    theirs, layer = copy.deepcopy(encoder).double(), torch.nn.Linear(WIDTH, classes).double()
    layer.weight.data, layer.bias.data = torch.tensor(kernel.T).double(), torch.tensor(bias).double()
    labels = torch.tensor(arguments.pop("labels"))
    first = theirs(**{name: torch.tensor(value) for name, value in arguments.items()}).last_hidden_state[:, 0]
    of_rows = torch.nn.functional.cross_entropy if head == "classifier" else torch.nn.functional.mse_loss
    wanted = of_rows(layer(first), labels) if head == "classifier" else of_rows(layer(first)[:, 0], labels.double())
    wanted.backward()
    assert abs(loss - wanted.item()) <= ours.BOUND * max(1, wanted.item())
    slopes = {name: p.grad.numpy() for name, p in theirs.named_parameters()}
    dense = {"kernel": layer.weight.grad.numpy().T, "bias": layer.bias.grad.numpy()}
    tiny.assert_close(gradients, {**ours.in_our_layout(bare, slopes), head: {"dense": dense}}, ours.BOUND)
    with pytest.raises(UserError, match="reads the first token itself, .* train the head pooler with objective.pooler_activation=gelu_erf"):
        hf.save(tmp_path / "out", model)
