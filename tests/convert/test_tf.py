"""google-research checkpoints: the numbers, the tokenizer beside them, and what goes wrong."""

import json
from pathlib import Path

import numpy as np
import pytest

from jaxenc.convert import tf
from jaxenc.errors import UserError
from jaxenc.families import BUILT_IN
from jaxenc.families.family import Family
from jaxenc.inference.model import Model
from tests.convert import tf1
from tests.parity import ours
from tests.parity.cases import CASES, GOLDEN, example, golden


def check(model: Model, architecture: str) -> None:
    """Every hidden state and logit is that of transformers with the tanh form of GELU."""
    case, inputs, arrays = CASES[architecture], golden(architecture, "inputs/"), golden(architecture, "gelu_new/")
    rows = example(case, inputs, model.config.model.positions_of(inputs["input_ids"]))
    ours.assert_outputs(model.apply(model.params, rows), {name: arrays[name] for name in ("hidden", *case.logits)})


@pytest.mark.parametrize("architecture", ["BertForPreTraining", "BertForSequenceClassification", "BertForQuestionAnswering"])
def test_the_same_numbers(architecture: str, tmp_path: Path) -> None:
    """As run_pretraining.py, run_classifier.py and run_squad.py leave their checkpoints, Adam's slots and the step with them."""
    found = tf.load(tf1.archive(tmp_path, architecture))
    check(found, architecture)
    assert found.config.model.activation == "gelu_tanh" and found.config.model.norm_epsilon == 1e-12 and found.tokenizer is None


@pytest.mark.parametrize("architecture", ["AlbertForPreTraining", "AlbertForSequenceClassification"])
def test_the_same_numbers_of_an_albert(architecture: str, tmp_path: Path) -> None:
    """As google-research/albert's run_pretraining.py and classifier_utils.py leave theirs, whose names begin as BERT's do."""
    found = tf.load(tf1.albert(tmp_path, architecture))
    check(found, architecture)
    assert found.config.model.kind == "albert" and found.config.model.activation == "gelu_tanh"


def test_a_checkpoint_that_tensorflow_wrote(tmp_path: Path) -> None:
    tf1.archive(tmp_path)
    for path in (GOLDEN.parent / "tf").glob("model.ckpt.*"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    check(tf.load(tmp_path / "model.ckpt"), "BertForPreTraining")


def test_weights_are_told_from_what_an_optimizer_left(tmp_path: Path) -> None:
    """Slots of Adam, LAMB and TensorFlow's own optimizers; a weight whose name only looks like one stays."""
    kept = ("bert/pooler/dense/kernel", "madam_m")
    left = ("global_step", "beta1_power", "bert/pooler/dense/kernel/adam_v", "bert/pooler/dense/kernel/lamb_m", "x/Adam", "x/Adam_1")
    tf1.write(tmp_path / "model", {name: np.zeros(1, np.float32) for name in (*kept, *left)})
    assert set(tf.open_tensors(tmp_path / "model")) == set(kept)


@pytest.mark.parametrize("pieces, cased", [(("Hello", "hello"), True), (("hello",), False)])
def test_the_vocabulary_tells_whether_texts_are_lower_cased(pieces: tuple[str, ...], cased: bool, tmp_path: Path, capsys) -> None:
    tokenizer = tf.load(tf1.archive(tmp_path, pieces=pieces)).tokenizer
    assert tokenizer.token(tokenizer.encode(["Hello"])[0][0]) == ("Hello" if cased else "hello")
    assert ("kept as they are" if cased else "lower-cased") in capsys.readouterr().err


def test_r14_pieces_that_no_text_gives_are_told_and_the_advice_works(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """Of a Japanese vocabulary, whose words BERT's rule cuts at every character. The capital letter is why texts keep their case."""
    prefix = tf1.archive(tmp_path, pieces=("Tokyo", "日本", "世界"))
    tf.load(prefix)
    said = capsys.readouterr().err
    advice = '{"do_lower_case": false, "strip_accents": false, "tokenize_chinese_chars": false}'
    assert "no text gives" in said and f"put {advice} in {tmp_path / 'tokenizer_config.json'}" in said
    (tmp_path / "tokenizer_config.json").write_text(advice)
    tokenizer = tf.load(prefix).tokenizer
    assert [tokenizer.token(index) for index in tokenizer.encode(["Tokyo 日本"])[0]] == ["Tokyo", "日本"]
    assert "no text gives" not in capsys.readouterr().err


def test_what_is_written_beside_the_vocabulary_wins(tmp_path: Path) -> None:
    prefix = tf1.archive(tmp_path, pieces=("hello", "Hello"))
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": true}')
    tokenizer = tf.load(prefix).tokenizer
    assert tokenizer.token(tokenizer.encode(["Hello"])[0][0]) == "hello"
    assert tf.load(prefix, "none").tokenizer is None


def test_input_that_goes_wrong_is_one_line(tmp_path: Path) -> None:
    prefix = tf1.archive(tmp_path)
    (tmp_path / "empty").mkdir()
    for wrong, words in (
        (Path(f"{prefix}.index"), f"one file of a checkpoint; name the prefix {prefix}"),
        (Path(f"{prefix}.data-00000-of-00001"), f"one file of a checkpoint; name the prefix {prefix}"),
        (tmp_path, f"a folder; name the prefix of the checkpoint, such as {prefix}"),
        (tmp_path / "empty", "a folder; name the prefix of the checkpoint, PREFIX of PREFIX.index, which no file here is"),
        (tmp_path / "other.ckpt", "other.ckpt.index: No such file"),
    ):
        with pytest.raises(UserError) as error:
            tf.load(wrong)
        assert words in str(error.value) and "\n" not in str(error.value)
    (tmp_path / "vocab.txt").write_text("\n".join((*tf1.SPECIALS, *(f"word{n}" for n in range(127)))) + "\n")
    with pytest.raises(UserError, match="the tokenizer has 132 tokens and the model 131"):
        tf.load(prefix)
    # R22: the config is wrong, and not the tokenizer.
    config = tmp_path / "bert_config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"vocab_size": 30522}))
    with pytest.raises(
        UserError, match=r"bert_config\.json: vocab_size is 30,522 and bert/embeddings/word_embeddings has 131 rows; set vo"
    ):
        tf.load(prefix)
    config.unlink()
    with pytest.raises(UserError, match=r"holds no bert_config\.json; put the one"):
        tf.load(prefix)


def test_a_family_without_such_checkpoints_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bert = BUILT_IN["bert"]
    monkeypatch.setattr(tf, "BUILT_IN", {"other": Family(bert.config), "bert": bert})
    assert tf.load(tf1.archive(tmp_path)).config.model.kind == "bert"
