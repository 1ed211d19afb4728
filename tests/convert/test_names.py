"""Names of tensors as people's own training code leaves them: prefixes, heads of their own, buffers (R18)."""

import shlex
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from jaxenc.cli.main import main
from jaxenc.convert import hf, tf
from jaxenc.errors import UserError
from jaxenc.formats import tensorflow
from tests import tiny
from tests.convert import folders, tf1

CRF = {"crf.transitions": np.zeros((3, 3), np.float32), "crf.start": np.zeros(3, np.float32)}
PROPERTIES = {f"classifier.{i}.weight": np.zeros((8, 8), np.float32) for i in (0, 2)}


def make(folder: Path, architecture: str, change: Callable[[dict], dict] = dict) -> Path:
    return folders.write(folder, change(folders.tensors(architecture)), folders.config(architecture))


def with_prefix(prefix: str) -> Callable[[dict], dict]:
    return lambda arrays: {prefix + name: array for name, array in arrays.items()}


def encoder_named(prefix: str, own: str) -> Callable[[dict], dict]:
    """The encoder as an attribute of a user's class, whose head is beside it."""
    return lambda arrays: {prefix + name.removeprefix(own) if name.startswith(own) else name: array for name, array in arrays.items()}


@pytest.mark.parametrize(
    "architecture, prefix",
    [
        ("BertForMaskedLM", "module."),
        ("BertForMaskedLM", "bert."),
        ("BertModel", "bert."),
        ("BertModel", "encoder."),
        ("RobertaForTokenClassification", "_orig_mod.module."),
        ("ElectraForMaskedLM", "model."),
        ("XLNetLMHeadModel", "transformer_model."),
        ("XLNetModel", "module."),
    ],
)
def test_a_prefix_of_every_name_is_taken_off_and_reported(architecture: str, prefix: str, tmp_path: Path, capsys) -> None:
    """R18: as DataParallel, torch.compile, Lightning and a user's own class leave a state dict, with heads as without."""
    plain = hf.load(make(tmp_path / "plain", architecture))
    assert "the prefix " not in capsys.readouterr().err
    found = hf.load(make(tmp_path / "theirs", architecture, with_prefix(prefix)))
    tiny.assert_bitwise(found.params, plain.params)
    assert found.config == plain.config
    said = capsys.readouterr().err
    # An encoder alone, whose own prefix this is, has nothing to report.
    assert said.count("the prefix ") == (0 if (architecture, prefix) == ("BertModel", "bert.") else 1)
    assert "the prefix " not in said or f"the prefix '{prefix}' of its tensors' names is taken off" in said


def test_an_encoder_that_is_an_attribute_of_a_wrapped_model(tmp_path: Path, capsys) -> None:
    """R18: two prefixes, the longer one of the encoder's names alone; the head and a tensor of no model are beside it."""
    plain = hf.load(make(tmp_path / "plain", "BertForTokenClassification"))
    capsys.readouterr()
    names = lambda arrays: with_prefix("module.")({**encoder_named("my_bert.", "bert.")(arrays), **CRF})
    found = hf.load(make(tmp_path / "theirs", "BertForTokenClassification", names), leave_out=["module.crf.*"])
    tiny.assert_bitwise(found.params, plain.params)
    said = capsys.readouterr().err.splitlines()
    assert said[0].endswith("the prefix 'module.' and 'module.my_bert.' of its tensors' names is taken off")
    assert said[1].endswith("left out, as asked: module.crf.transitions, module.crf.start") and len(said) == 2


@pytest.mark.parametrize("extra", [CRF, PROPERTIES, {"step": np.zeros((), np.int64), "bert.head_scale": np.ones(2, np.float32)}])
@pytest.mark.parametrize("prefix", ["", "module."])
def test_the_command_that_the_refusal_offers_works(extra: dict, prefix: str, tmp_path: Path, capsys) -> None:
    """R18: what nothing needs is listed and left out only when the user says so, with the very words of the message."""
    folder = make(tmp_path / "theirs", "BertForTokenClassification", lambda arrays: with_prefix(prefix)({**arrays, **extra}))
    command = ["convert", "--from", f"hf:{folder}", "--to", str(tmp_path / "out")]
    assert main(command) == 2
    said = capsys.readouterr().err
    assert all(prefix + name in said for name in extra)
    offered = shlex.split(said.split("`")[1])
    assert main([*command, *offered]) == 0
    said = capsys.readouterr().err
    assert "left out, as asked: " in said and all(prefix + name in said for name in extra)
    plain = hf.load(make(tmp_path / "plain", "BertForTokenClassification"))
    tiny.assert_bitwise(hf.load(folder, leave_out=offered[1::2]).params, plain.params)


@pytest.mark.parametrize(
    "pattern, words",
    [
        ("rf.*", "--leave-out: no tensor is called 'rf.*'; name one of bert."),
        ("*", "--leave-out: matches every tensor; give a pattern that matches only what the model does not need"),
        ("bert.*", "--leave-out: matches bert.embeddings."),
        ("*.query.*", "--leave-out: matches bert.encoder.layer.0.attention.self.query.weight, bert"),
        ("classifier.bias", "--leave-out: matches classifier.bias, which the model needs; give a pattern"),
    ],
)
def test_a_pattern_that_is_wrong_is_one_line(pattern: str, words: str, tmp_path: Path) -> None:
    """R18: one that matches nothing, everything, the encoder, or a part of a head."""
    folder = make(tmp_path, "BertForTokenClassification", lambda arrays: {**arrays, **CRF})
    with pytest.raises(UserError) as error:
        hf.load(folder, leave_out=["crf.*", pattern])
    assert str(error.value).startswith(f"{folder}: ") and words in str(error.value) and "\n" not in str(error.value)


def test_a_whole_head_can_be_left_out(tmp_path: Path, capsys) -> None:
    """R18: a head whose name is one of transformers' and whose shape is a user's own."""
    wide = {"classifier.weight": np.zeros((3, 20), np.float32)}
    folder = make(tmp_path, "BertForTokenClassification", lambda arrays: arrays | wide)
    with pytest.raises(UserError, match=r"of another shape: classifier.weight \(3, 20\), expected \(3, 8\)"):
        hf.load(folder)
    assert hf.load(folder, leave_out=["classifier.*"]).config.objective.heads == ()
    assert "left out, as asked: classifier.weight, classifier.bias" in capsys.readouterr().err


def test_a_pattern_for_one_network_of_a_pair(tmp_path: Path) -> None:
    """R18: it matches in the folder of one of the two; one that matches in neither is an error."""
    for name, architecture in (("generator", "ElectraForMaskedLM"), ("discriminator", "ElectraForPreTraining")):
        make(tmp_path / name, architecture, lambda arrays, name=name: arrays | (CRF if name == "discriminator" else {}))
    assert {"mlm", "rtd"} <= hf.load(tmp_path, leave_out=["crf.*"]).params.keys()
    with pytest.raises(UserError, match=r"no tensor is called 'rf\.\*'"):
        hf.load(tmp_path, leave_out=["crf.*", "rf.*"])


def test_a_layer_that_the_config_does_not_count_is_not_offered(tmp_path: Path) -> None:
    """Left out, it would be missed."""
    folder = folders.write(tmp_path, folders.tensors("BertModel"), folders.config("BertModel") | {"num_hidden_layers": 1})
    with pytest.raises(UserError, match="num_hidden_layers is 1, which the shapes of the tensors contradict; set num_hidden_layers to 2"):
        hf.load(folder)


def test_what_training_leaves_in_a_tensorflow_checkpoint(tmp_path: Path, capsys) -> None:
    """R19: loss scaling, counters, and the slots of any optimizer are skipped; a head of one's own is offered for --leave-out."""
    scalars = ("loss_scale", "current_loss_scale", "good_steps", "bad_steps", "num_good_steps", "a/learning_rate", "any_number")
    left = {name: np.zeros((), np.float32) for name in scalars}
    left |= {"loss_scale_1d/good_steps": np.zeros(1, np.int64)}
    left |= {f"bert/pooler/dense/bias/{slot}": np.zeros(4, np.float32) for slot in ("Momentum", "LAMBOptimizer", "vr")}
    own = {"crf_loss/transitions": np.zeros((3, 3), np.float32)}
    prefix = tf1.archive(tmp_path, more=left)
    plain = tf.load(prefix)
    prefix = tf1.archive(tmp_path, more=left | own)
    with pytest.raises(UserError, match=r"needs no crf_loss/transitions; `--leave-out 'crf_loss/\*'` converts without it"):
        tf.load(prefix)
    tiny.assert_bitwise(tf.load(prefix, leave_out=["crf_loss/*"]).params, plain.params)


def test_a_scope_around_every_name_of_a_tensorflow_checkpoint(tmp_path: Path, capsys) -> None:
    """R18, R19: as code that calls the model under a scope of its own leaves it, with the optimizer's slots."""
    plain = tf.load(tf1.archive(tmp_path))
    variables = {name: tensor.read() for name, tensor in tensorflow.open_tensors(tmp_path / "bert_model.ckpt").items()}
    tf1.write(tmp_path / "scoped", {f"my/scope/{name}": array for name, array in variables.items()})
    tiny.assert_bitwise(tf.load(tmp_path / "scoped").params, plain.params)
    assert "the prefix 'my/scope/' of its tensors' names is taken off" in capsys.readouterr().err
