"""What transformers computed at tiny size, in float64: committed arrays, made by tests/golden/hf/make.py, compared everywhere."""

import json

import pytest

from jaxenc.convert import hf
from jaxenc.inference.model import Model
from tests import tiny
from tests.parity import ours
from tests.parity.cases import CASES, PAIRS, PLAIN, Case, example, golden

# Heads that are one linear layer: those of a BERT are here, and those of the other families in test_live.py.
LINEAR = {name for name in PLAIN if not name.startswith("Bert")}
# A model without a head has the hidden states that it has with one.
BARE = {name for name in CASES if name.endswith("Model") and "HeadsModel" not in name and "HeadModel" not in name}
# The other form of GELU is chosen in one place (layers/activation.py) for all families but XLNet, and heads take that of the model.
OTHER_FORM = {"BertForPreTraining", "ElectraForPreTraining", "XLNetModel"}
COMPARED = {*((name, "gelu_new") for name in OTHER_FORM), *((name, "gelu") for name in CASES if name not in LINEAR | BARE)}
MODELS = [pytest.param(pair, id="-".join(pair), marks=[] if pair in COMPARED else pytest.mark.full) for pair in PAIRS]
# Gradients: every loss of a BERT, and of each other family what is its own. Through the other form of GELU those of one model.
REACHED = LINEAR | BARE | {"BertForMaskedLM", "RobertaForMaskedLM", "ElectraForSequenceClassification", "XLNetLMHeadModel"}
REACHED |= {"DistilBertForSequenceClassification"}
SHORT = {("BertForPreTraining", "gelu_new"), *((name, "gelu") for name in CASES if name not in REACHED)}
LEARNT = [pytest.param(pair, id="-".join(pair), marks=[] if pair in SHORT else pytest.mark.full) for pair in PAIRS]


@pytest.fixture(scope="module", params=MODELS)
def opened(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Case, Model, dict, dict]:
    """(case, the imported model, its inputs, the expected numbers) of one architecture with one form of GELU."""
    architecture, activation = request.param
    config = {**json.loads(str(golden(architecture)["config"])), "architectures": [architecture]}
    config[CASES[architecture].activation_field] = activation
    folder = ours.write_folder(tmp_path_factory.mktemp("hf"), config, golden(architecture, "weights/"))
    return CASES[architecture], hf.load(folder), golden(architecture, "inputs/"), golden(architecture, f"{activation}/")


def test_every_hidden_state_and_logit(opened: tuple[Case, Model, dict, dict]) -> None:
    case, model, inputs, expected = opened
    rows = example(case, inputs, model.config.model.positions_of(inputs["input_ids"]))
    found = model.apply(model.params, rows)
    wanted = {name: value for name, value in expected.items() if "gradients/" not in name}
    assert set(wanted) >= {"hidden", *case.logits}
    ours.assert_outputs(found, wanted)


@pytest.mark.parametrize("opened", LEARNT, indirect=True)
def test_the_loss_and_its_gradients(opened: tuple[Case, Model, dict, dict]) -> None:
    case, model, inputs, expected = opened
    if not case.labels:
        assert not model.objective.coef or {"lm", "choice"} & set(case.logits)
        return
    rows = example(case, inputs, model.config.model.positions_of(inputs["input_ids"]))
    loss, gradients = ours.slopes(model, rows)
    assert abs(loss - expected["loss"]) <= ours.BOUND
    theirs = {name.removeprefix("gradients/"): value for name, value in expected.items() if name.startswith("gradients/")}
    tiny.assert_close(gradients, ours.in_our_layout(model, theirs), ours.BOUND)
