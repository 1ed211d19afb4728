"""More words for a trained model: the command, and training on from what it writes."""

import dataclasses
import shlex
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import jaxenc
from jaxenc.cli.main import main
from jaxenc.data.build import build
from jaxenc.data.tokenizers import bpe, wordpiece
from jaxenc.families.bert.model import BertConfig
from jaxenc.families.distilbert.model import DistilbertConfig
from jaxenc.inference.model import Model
from jaxenc.objectives.distillation import DistillationConfig
from jaxenc.objectives.pair import PairConfig
from jaxenc.training.run import Run
from jaxenc.training.settings import TrainConfig
from tests import tiny

pytestmark = pytest.mark.usefixtures("one_device")

NEW = ["zebra", "##fish", "quagga"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a small model and its tokenizer; PairConfig: heads beside the tied one stay as they are."""
    out = tmp_path_factory.mktemp("model") / "run"
    tokenizer = wordpiece.train(["the quick brown fox jumps over the lazy dog"] * 3, 60)
    model = BertConfig(width=16, layers=1, heads=2, feed_forward=32, positions=24)
    config = Run(objective=PairConfig(), model=model, train=TrainConfig(steps=2)).with_vocabulary(tokenizer.vocabulary)
    Model(config, tiny.drawn(config), tokenizer).save(out)
    return out


@pytest.fixture(scope="module")
def grown(trained: Path) -> Path:
    out = trained.with_name("grown")
    assert main(["resize-vocab", "--model", str(trained), "--tokens", *NEW, "--out", str(out)]) == 0
    return out


def test_old_texts_read_and_mean_what_they_did(trained: Path, grown: Path) -> None:
    """Hidden states bitwise, logits of the old tokens bitwise; a new word is one token whose vector is the mean."""
    old, new = jaxenc.load(trained), jaxenc.load(grown)
    size = old.tokenizer.vocabulary.size
    assert new.config.model.vocab_size == new.tokenizer.vocabulary.size == size + 3
    one, other = old.encode(["the fox"]), new.encode(["the fox"])
    assert (one.hidden == other.hidden).all() and (one.tokens == other.tokens).all()
    logits = [np.asarray(model.apply(model.params, {"tokens": one.tokens})["mlm"]) for model in (old, new)]
    assert logits[1].shape[-1] == size + 3 and np.abs(logits[1][..., :size] - logits[0]).max() <= 1e-6
    assert new.encode(["zebra zebrafish"]).tokens.tolist() == [[2, size, size, size + 1, 3]]
    table = np.asarray(new.params["embeddings"]["token"]["table"])
    assert np.abs(table[size : size + 3] - table[:size].mean(axis=0, dtype=np.float64)).max() <= 1e-6 and not table[size + 3 :].any()


def test_pieces_of_a_file(trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """Line ends of any kind, blank lines; the output says what new rows are and how to train on."""
    (tmp_path / "words").write_bytes(b"zebra\r\n\r\n##fish\r\n \nquagga\n\n")
    assert main(["resize-vocab", "--model", str(trained), "--add", str(tmp_path / "words"), "--out", str(tmp_path / "out")]) == 0
    said, advice = capsys.readouterr()
    assert "3 of them new" in said and "the mean of all old rows, equal to one another until" in said and not advice
    assert f"--init-from {tmp_path / 'out'} " in said and f"--tokenizer {tmp_path / 'out' / 'tokenizer'} " in said
    assert jaxenc.load(tmp_path / "out").tokenizer.token(jaxenc.load(trained).tokenizer.vocabulary.size + 1) == "##fish"


def test_a_student_is_trained_on_with_a_teacher_of_its_vocabulary(trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """Its own teacher has the smaller vocabulary, so the command names another one, and how to make it."""
    before = jaxenc.load(trained)
    student = DistilbertConfig(width=16, layers=1, heads=2, feed_forward=32, positions=24)
    config = Run(DistillationConfig(teacher=str(trained)), student).with_vocabulary(before.tokenizer.vocabulary)
    Model(config, tiny.drawn(config), before.tokenizer).save(tmp_path / "run")
    assert main(["resize-vocab", "--model", str(tmp_path / "run"), "--tokens", *NEW, "--out", str(tmp_path / "out")]) == 0
    said = capsys.readouterr().out
    assert " --config.objective.teacher=TEACHER --init-from " in said and "`jaxenc resize-vocab` adds them to it too" in said


def test_a_word_without_its_blank_is_advised_upon(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """In a byte-level vocabulary: a blank and the word are two tokens, the word with its blank is one."""
    tokenizer = bpe.train(["the quick brown fox"] * 3, 300)
    config = Run(model=BertConfig(width=16, layers=1, heads=2, feed_forward=32, positions=24, first_position=2))
    config = config.with_vocabulary(tokenizer.vocabulary)
    Model(config, tiny.drawn(config), tokenizer).save(tmp_path / "run")
    command = ["resize-vocab", "--model", str(tmp_path / "run"), "--out"]
    for number, (pieces, words) in enumerate(((["zebra", " vixen"], "'zebra' inside a sentence is two tokens"), ([" zebra"], ""))):
        assert main([*command, str(tmp_path / str(number)), "--tokens", *pieces]) == 0
        err = capsys.readouterr().err
        assert words in err and err.count("\n") == len(words[:1])
    size = tokenizer.vocabulary.size
    bare, whole = (jaxenc.load(tmp_path / name).tokenizer.encode(["the zebra"])[0] for name in "01")
    assert bare[-2:] == [*tokenizer.encode([" "])[0], size] and whole[-1] == size and len(whole) == len(bare) - 1


@pytest.mark.full
def test_a_grown_model_trains_on_data_of_its_tokenizer(trained: Path, grown: Path, tmp_path: Path, fails: Callable[..., str]) -> None:
    """--init-from takes it, and refuses the model without the new pieces in one line that names both sizes."""
    (tmp_path / "text.txt").write_text("the zebra jumps\nover the quagga\nthe fox\n\nthe dog\nthe lazy dog\n" * 4)
    build([str(tmp_path / "text.txt")], grown / "tokenizer", tmp_path / "data", held_out=0.0)
    size = jaxenc.load(grown).config.model.vocab_size
    config = str(grown / "config.json")
    fields = {"data.path": tmp_path / "data", "data.rows": "pairs", "data.length": 24, "train.batch": 8, "optim.warmup": 0}
    flags = ["--config", config, *(f"--config.{name}={value}" for name, value in fields.items())]
    said = fails("pretrain", *flags, "--workdir", tmp_path / "run", "--init-from", trained)
    assert f"({size} pieces)" in said and f"({size - 3})" in said and "start with --init-from LARGER" in said
    # The command that it prints works, with names in place of WORDS and LARGER.
    (tmp_path / "words").write_text("\n".join(NEW))
    _, *command = shlex.split(said.split("`")[1].replace("WORDS", str(tmp_path / "words")).replace("LARGER", str(tmp_path / "larger")))
    assert main(command) == 0 and jaxenc.load(tmp_path / "larger").config.model.vocab_size == size
    whole = fails("pretrain", *flags, "--workdir", tmp_path / "run", "--continue-from", grown)
    assert "holds parameters only; use --init-from" in whole and len(whole) < 400
    assert main(["pretrain", *flags, "--workdir", str(tmp_path / "run"), "--init-from", str(grown)]) == 0
    assert jaxenc.load(tmp_path / "run").config.model.vocab_size == size


@pytest.mark.parametrize(
    "content, said",
    [
        (b"zebra\n\xff", "words:2: not UTF-8"),
        ("ze\u0301bra".encode(), "is never found in a text: it is read as 'zébra'"),
        (b"zebra\nzebra", "'zebra' is given twice"),
        (b"", "words: holds no piece"),
        (b"\n \r\n", "words: holds no piece"),
        (b"two words", "it holds 2 words"),
    ],
)
def test_pieces_that_cannot_be_added_are_one_line(
    content: bytes, said: str, trained: Path, tmp_path: Path, fails: Callable[..., str]
) -> None:
    (tmp_path / "words").write_bytes(content)
    got = fails("resize-vocab", "--model", trained, "--add", tmp_path / "words", "--out", tmp_path / "out")
    assert said in got and sorted(path.name for path in tmp_path.iterdir()) == ["words"]


def test_what_else_cannot_be(trained: Path, tmp_path: Path, fails: Callable[..., str]) -> None:
    """A folder that is not empty, a model without a tokenizer."""
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").touch()
    assert "exists already" in fails("resize-vocab", "--model", trained, "--tokens", "zebra", "--out", tmp_path / "full")
    dataclasses.replace(jaxenc.load(trained), tokenizer=None).save(tmp_path / "mute")
    assert "no tokenizer" in fails("resize-vocab", "--model", tmp_path / "mute", "--tokens", "zebra", "--out", tmp_path / "out")
