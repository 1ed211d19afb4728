"""A model with a vocabulary of another family's frame, from its first step to its predictions: the files of the run have the model's own
frame, and directories of runs that were made without it are read with it."""

import json
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

import jaxenc
from jaxenc.data import tokenizers
from jaxenc.data.tokenizers import Tokenizer
from jaxenc.errors import UserError
from jaxenc.families.contract import ModelConfig
from jaxenc.inference.model import Model
from jaxenc.optim.optimizer import OptimConfig
from jaxenc.tasks.classify import Classify
from jaxenc.tasks.files import FilesConfig
from jaxenc.tasks.tuning import FineTune, TuneConfig
from jaxenc.training.run import Run
from jaxenc.training.settings import LogConfig, TrainConfig
from tests.training.conftest import SYLLABLES, make_data
from tests.training.test_loop import assert_same_run, recipe, run_until

pytestmark = pytest.mark.usefixtures("one_device")
# Before tokenizers followed the family of the model.
UNFRAMED = mock.patch.object(Tokenizer, "framed_as", lambda self, frame: self)
COUNTED_DOWN = mock.patch.object(ModelConfig, "row_types", lambda self, types: np.minimum(types, max(self.types - 1, 0)))


@pytest.fixture(scope="module")
def pieces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with a unigram vocabulary."""
    return make_data(tmp_path_factory.mktemp("frames") / "text", 3, "unigram")


def nano(data: Path, steps: int) -> Run:
    return recipe(data, train=TrainConfig(steps=steps, batch=8, precision="float32"))


def task(folder: Path) -> FineTune:
    """Sentences whose first word gives their label, all of the syllables of the data."""
    random = np.random.default_rng(0)
    folder.mkdir(exist_ok=True)
    for name, rows in (("train", 48), ("dev", 24)):
        firsts = random.choice(["baba", "dede"], rows)
        texts = ["".join([first, *(f" {a}ki" for a in random.choice(SYLLABLES, 3))]) for first in firsts]
        lines = [f"{text}\t{first}\n" for text, first in zip(texts, firsts, strict=True)]
        (folder / f"{name}.tsv").write_text("text\tlabel\n" + "".join(lines))
    data = FilesConfig(str(folder), "train.tsv", "dev.tsv")
    train = TuneConfig(batch=16, length=24, lengths=(24,), epochs=40.0, warmup=0.0)
    return FineTune(Classify(), data=data, train=train, optim=OptimConfig(lr=1e-2, warmup=0), log=LogConfig(tensorboard=False))


def first_id(model: Model) -> int:
    return int(model.encode(["baba"]).tokens[0, 0])


def test_a_bert_with_unigram_pieces_is_trained_tuned_and_asked(pieces: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    jaxenc.pretrain(nano(pieces, 4), run)
    saved = tokenizers.load(run / "checkpoints" / "4" / "tokenizer")
    vocabulary = saved.vocabulary
    assert saved.frame(2) == ((vocabulary.cls, 0), (-1, 0), (vocabulary.sep, 0), (-2, 1), (vocabulary.sep, 1))
    assert vocabulary == tokenizers.load(pieces / "tokenizer").vocabulary
    model = jaxenc.load(run)
    assert first_id(model) == vocabulary.cls
    guesses = [model.fill_mask(f"baba {mask} kide", 3) for mask in ("<mask>", "[MASK]")]
    assert guesses[0] == guesses[1] and len(guesses[0]) == 1
    tune = task(tmp_path / "task")
    (outcome,) = jaxenc.finetune(tune, str(run), tmp_path / "tuned").seeds
    assert outcome.scores["accuracy"] > 0.9  # by the first token of a row, CLS
    tuned = jaxenc.load(tmp_path / "tuned")
    assert first_id(tuned) == vocabulary.cls and tuned.tokenizer.files == saved.files
    assert tuned.predict(["baba loki", "dede loki"]) == ["baba", "dede"]
    # A run from its parameters takes the data's vocabulary for the same one.
    jaxenc.pretrain(nano(pieces, 1), tmp_path / "more", init_from=str(run))


def test_a_vocabulary_that_agrees_is_copied_byte_for_byte(data: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    jaxenc.pretrain(nano(data, 1), run)
    files = lambda folder: {path.name: path.read_bytes() for path in folder.iterdir()}
    assert files(run / "checkpoints" / "1" / "tokenizer") == files(data / "tokenizer")


def test_an_older_run_goes_on_bit_for_bit_and_is_read_with_the_frame(pieces: Path, tmp_path: Path) -> None:
    """Its checkpoints hold the files of the vocabulary. The rows of pretraining are the same, so the run is that of today."""
    run, old = nano(pieces, 20), tmp_path / "old"
    with UNFRAMED:
        step = run_until(5, run, old)
    assert tokenizers.load(old / "checkpoints" / str(step) / "tokenizer").ends_in_cls
    model = jaxenc.load(old)
    assert first_id(model) == model.tokenizer.vocabulary.cls and not model.tokenizer.ends_in_cls
    for workdir in (old, tmp_path / "new"):
        jaxenc.pretrain(run, workdir)
    assert_same_run(run, old, tmp_path / "new", 20)
    assert not tokenizers.load(old / "checkpoints" / "20" / "tokenizer").ends_in_cls


def test_an_older_tuned_model_answers_as_it_did(pieces: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """It learned rows with CLS at the end, of its last type: with another frame its answers would be others. A line says so, and one
    refuses to go on with it."""
    tune = task(tmp_path / "task")
    with UNFRAMED, COUNTED_DOWN:
        jaxenc.pretrain(nano(pieces, 1), tmp_path / "run")
        jaxenc.finetune(tune, str(tmp_path / "run"), tmp_path / "tuned")
    lines = (tmp_path / "tuned" / "seed_0" / "dev.jsonl").read_text().splitlines()
    texts = [line.split("\t")[0] for line in (tmp_path / "task" / "dev.tsv").read_text().splitlines()[1:]]
    with pytest.raises(UserError, match="framed texts with CLS last, and this one has CLS first; choose another --workdir$"):
        jaxenc.finetune(tune, str(tmp_path / "run"), tmp_path / "tuned")
    capsys.readouterr()
    tuned = jaxenc.load(tmp_path / "tuned")
    assert "fine-tuned with CLS last, and bert has it first: fine-tune it again" in capsys.readouterr().err
    found = tuned.predict(texts, details=True)
    assert tuned.tokenizer.frame(1)[-1] == (tuned.tokenizer.vocabulary.cls, 1)
    said = [json.loads(line) for line in lines]
    for one, other in zip(said, found, strict=True):
        assert one["answer"] == other["answer"] and one["probabilities"] == pytest.approx(other["probabilities"], abs=1e-5)
