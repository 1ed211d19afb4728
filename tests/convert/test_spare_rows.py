"""R13: published models with more rows in their token table than their tokenizer has pieces, from one format to the other and back."""

from pathlib import Path

import numpy as np
import pytest

from jaxenc.convert import hf, parity
from jaxenc.convert.resize import extended
from jaxenc.data.tokenizers import Tokenizer, wordpiece
from jaxenc.data.tokenizers.sentencepiece import unigram
from jaxenc.errors import UserError
from jaxenc.families.count import parameter_count
from jaxenc.inference import load
from tests import tiny
from tests.convert import folders
from tests.selection import thinned

TEXT = "the quick brown fox jumps over the lazy dog"
ROWS = folders.VOCAB


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return wordpiece.train([TEXT] * 3, 60)


def published(folder: Path, architecture: str, tokenizer: Tokenizer) -> Path:
    """A folder of transformers with a tokenizer of fewer pieces than rows, of which those without a piece have the largest biases."""
    tensors, size = folders.tensors(architecture), tokenizer.vocabulary.size
    for array in tensors.values():
        if array.shape == (ROWS,):
            array[size:] = 1000
    folders.write(folder, tensors, folders.config(architecture) | {"pad_token_id": tokenizer.vocabulary.pad})
    tokenizer.save(folder)
    return folder


ARCHITECTURES = ["BertForMaskedLM", "RobertaForMaskedLM", "ElectraForMaskedLM", "XLNetLMHeadModel"]


@pytest.mark.parametrize("architecture", thinned(ARCHITECTURES, "BertForMaskedLM", "XLNetLMHeadModel"))
def test_every_row_comes_and_leaves_again(architecture: str, tokenizer: Tokenizer, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """Every tensor bitwise, from a run directory; a line on stderr has both numbers. Counts are of true rows, and `outputs` has the
    published logits of all of them, which `--check` compares."""
    if architecture.startswith("XLNet"):
        tokenizer = unigram.train([TEXT] * 3, 60)
    size = tokenizer.vocabulary.size
    theirs = published(tmp_path / "theirs", architecture, tokenizer)
    model = hf.load(theirs)
    said, config = capsys.readouterr().err, model.config.model
    assert f"131 rows of the token table and {size} pieces: the last {ROWS - size} rows are kept and never predicted" in said
    assert (config.vocab_size, config.pieces, config.spare_rows) == (ROWS, size, ROWS - size)
    model.save(tmp_path / "run")
    again = load.load(tmp_path / "run")
    tiny.assert_bitwise(again.params, model.params)
    hf.save(tmp_path / "out", again)
    wanted, found = (folders.read(folder / "model.safetensors") for folder in (theirs, tmp_path / "out"))
    assert found.keys() == wanted.keys() and all(found[name].tobytes() == wanted[name].tobytes() for name in wanted)
    assert parameter_count(again.params, ROWS, again.objective.vocabulary) == sum(array.size for array in wanted.values())
    (head,) = (name for name in again.objective.heads if name in ("mlm", "lm"))
    logits = np.asarray(again.apply(again.params, {"tokens": np.array([[5, ROWS - 1, 6]])})[head])
    assert logits.shape == (1, 3, ROWS) and logits[..., size:].min() > 900 and logits[..., size:].max() < 1100
    assert parity.probe(again.config, 0, "right")["tokens"].max() >= size


def test_they_are_never_proposed(tokenizer: Tokenizer, tmp_path: Path) -> None:
    """Although their biases are the largest; the probabilities of the pieces add up to 1."""
    model, size = hf.load(published(tmp_path / "theirs", "BertForMaskedLM", tokenizer)), tokenizer.vocabulary.size
    (guesses,) = model.fill_mask("the [MASK] fox", k=size)
    assert sorted(guess.token for guess in guesses) == sorted(map(tokenizer.token, range(size)))
    assert abs(sum(guess.probability for guess in guesses) - 1) <= 1e-6
    with pytest.raises(UserError, match=f"k is {size + 1}; it takes 1 to {size}"):
        model.fill_mask("the [MASK] fox", k=size + 1)
    assert model.encode(["the fox"]).tokens.max() < size


@pytest.mark.parametrize("count", [1, 2, 200])
def test_new_pieces_take_spare_rows_first(count: int, tokenizer: Tokenizer, tmp_path: Path) -> None:
    """One piece, all but one row and more pieces than rows: the ids after the last piece, with the mean of the old rows. A row that is left
    keeps its values, and the export has the larger number of rows."""
    size = tokenizer.vocabulary.size
    pieces = [
        f"zz{'abcdefghijklmnopqrst'[n // 20]}{'abcdefghijklmnopqrst'[n % 20]}" for n in range({1: 1, 2: ROWS - size - 1, 200: 200}[count])
    ]
    model = hf.load(published(tmp_path / "theirs", "BertForMaskedLM", tokenizer))
    larger = extended(model, pieces)
    new, rows = size + len(pieces), max(ROWS, size + len(pieces))
    assert (larger.config.model.pieces, larger.config.model.vocab_size) == (new, rows)
    assert larger.tokenizer.encode([" ".join(pieces)])[0] == list(range(size, new))
    hf.save(tmp_path / "out", larger)
    before, after = (folders.read(folder / "model.safetensors") for folder in (tmp_path / "theirs", tmp_path / "out"))
    for name in ("bert.embeddings.word_embeddings.weight", "cls.predictions.bias"):
        old, found = before[name], after[name]
        assert len(found) == rows and found[:size].tobytes() == old[:size].tobytes() and found[new:].tobytes() == old[new:].tobytes()
        assert np.abs(found[size:new] - old[:size].mean(axis=0, dtype=np.float64)).max() <= 1e-5


@pytest.mark.parametrize("pieces, likely", [(60, True), (120, False)])
def test_far_fewer_pieces_than_rows_are_a_warning(pieces: int, likely: bool, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """R13: more than half of the rows without a piece is no reserve; the vocabulary was cut short, or is another model's."""
    folder = folders.write(tmp_path, folders.tensors("BertForMaskedLM"), folders.config("BertForMaskedLM"))
    (folder / "vocab.txt").write_text("".join(f"{piece}\n" for piece in (*wordpiece.SPECIALS, *(f"w{n}" for n in range(pieces - 5)))))
    assert hf.load(folder).config.model.spare_rows == ROWS - pieces
    said = capsys.readouterr().err
    assert ("warning: 131 rows" in said and "probably truncated or another model's" in said) == likely
