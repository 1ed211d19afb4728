"""What transformers computed at tiny size, in float64: committed arrays, made by tests/golden/hf/make.py, compared everywhere."""

import json

import pytest

from jaxenc.convert import hf
from jaxenc.families import BUILT_IN
from jaxenc.inference.model import Model
from tests import tiny
from tests.parity import ours
from tests.parity.cases import CASES, FAMILIES, example, golden, pairs
from tests.parity.family import Case

# The other form of GELU is chosen in one place (layers/activation.py) for all families but XLNet, and heads take that of the model.
NUMBERS = pairs("numbers", ("BertForPreTraining", "ElectraForPreTraining", "XLNetModel"))
GRADIENTS = pairs("gradients", ("BertForPreTraining",))


def test_every_family_that_is_converted_has_cases() -> None:
    compared = {json.loads(str(golden(name)["config"]))["model_type"] for name in CASES}
    without = [kind for kind, one in BUILT_IN.items() if one.transformers and not compared & set(one.transformers.model_types)]
    assert not without, "a family has a file in tests/parity/families"


@pytest.mark.parametrize("name", FAMILIES)
def test_the_short_suite_compares_every_family(name: str) -> None:
    compared = {what for case in CASES.values() if case.family.name == name for what in case.short}
    assert compared >= {"numbers", "gradients", "live numbers"}


@pytest.fixture(scope="module", params=NUMBERS)
def opened(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Case, Model, dict, dict]:
    """(case, the imported model, its inputs, the expected numbers) of one architecture with one form of GELU."""
    architecture, activation = request.param
    config = {**json.loads(str(golden(architecture)["config"])), "architectures": [architecture]}
    config[CASES[architecture].family.activation] = activation
    folder = ours.write_folder(tmp_path_factory.mktemp("hf"), config, golden(architecture, "weights/"))
    return CASES[architecture], hf.load(folder), golden(architecture, "inputs/"), golden(architecture, f"{activation}/")


def test_every_hidden_state_and_logit(opened: tuple[Case, Model, dict, dict]) -> None:
    case, model, inputs, expected = opened
    rows = example(case, inputs, model.config.model.positions_of(inputs["input_ids"]))
    found = model.apply(model.params, rows)
    wanted = {name: value for name, value in expected.items() if "gradients/" not in name}
    assert set(wanted) >= {"hidden", *case.logits}
    ours.assert_outputs(found, wanted)


def test_a_case_without_labels_has_no_loss_of_its_own(opened: tuple[Case, Model, dict, dict]) -> None:
    """A bare encoder has no head. The loss of GPT's two heads is that of a task (test_live_heads.py)."""
    case, model, _, _ = opened
    assert bool(case.labels) or not model.objective.coef or {"lm", "choice"} & set(case.logits)


@pytest.mark.parametrize("opened", GRADIENTS, indirect=True)
def test_the_loss_and_its_gradients(opened: tuple[Case, Model, dict, dict]) -> None:
    case, model, inputs, expected = opened
    rows = example(case, inputs, model.config.model.positions_of(inputs["input_ids"]))
    loss, gradients = ours.slopes(model, rows)
    assert abs(loss - expected["loss"]) <= ours.BOUND
    theirs = {name.removeprefix("gradients/"): value for name, value in expected.items() if name.startswith("gradients/")}
    tiny.assert_close(gradients, ours.in_our_layout(model, theirs), ours.BOUND)
