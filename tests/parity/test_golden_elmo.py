"""A published ELMo against numbers that allenai's TensorFlow code computed (tests/golden/elmo)."""

import json
from pathlib import Path

import numpy as np
import pytest

from jaxenc.convert import allennlp
from jaxenc.formats import hdf5
from jaxenc.inference import words
from jaxenc.inference.model import Model

GOLDEN = Path(__file__).parents[1] / "golden" / "elmo"


@pytest.fixture(scope="module")
def model() -> Model:
    return allennlp.load(GOLDEN)


def read(name: str) -> dict[str, np.ndarray]:
    return {name: tensor.read() for name, tensor in hdf5.open_tensors(GOLDEN / name).items()}


def sentences() -> list[list[str]]:
    """Batch after batch: of each its three slots."""
    return [line.split() for batch in zip(*json.loads((GOLDEN / "sentences.json").read_text()), strict=True) for line in batch]


def published(number: int, k: int) -> np.ndarray:
    """[words, 32], the top layer of sentence `number` of list `k`, forward beside backward."""
    return np.concatenate(read(f"lm_embeddings_{k}.hdf5")[str(number)], axis=-1)


@pytest.mark.slow
def test_the_top_layer_with_the_state_that_goes_on(model: Model) -> None:
    """All ten batches of three (<= 1e-5)."""
    found = list(words.vectors(model, sentences(), 3, stateful=True))
    assert len(found) == 30
    for at, hidden in enumerate(found):
        np.testing.assert_allclose(hidden[-1], published(at // 3, at % 3), rtol=0, atol=1e-5)


def test_the_top_layer_without_a_state(model: Model) -> None:
    """The first batch begins with none, so its numbers are published (<= 1e-5); the second one's are others."""
    given = [sentences()[at] for at in (0, 1, 2, 5)]
    hidden = model.encode(words=given).hidden[-1]
    found = [hidden[at, 1 : len(sentence) + 1] for at, sentence in enumerate(given)]
    for k in range(3):
        np.testing.assert_allclose(found[k], published(0, k), rtol=0, atol=1e-5)
    assert np.abs(found[3] - published(1, 2)).max() > 1e-3


def test_the_vectors_of_words_without_context(model: Model) -> None:
    """<S> and </S> are markers, every other word its characters (<= 1e-5); layer 0 holds each twice."""
    listed = (GOLDEN / "vocab_test.txt").read_text().split("\n")
    wanted = dict(zip(listed, read("elmo_token_embeddings.hdf5")["embedding"], strict=True))
    text = [word for word in listed if word not in ("<S>", "</S>")]
    hidden = model.encode(words=[text[at : at + 14] for at in range(0, len(text), 14)])
    found = hidden.hidden[0][hidden.mask > 0]
    rows = [row for at in range(0, len(text), 14) for row in ("<S>", *text[at : at + 14], "</S>")]
    assert len(text) == 456
    np.testing.assert_allclose(found[:, :16], np.stack([wanted[row] for row in rows]), rtol=0, atol=1e-5)
    np.testing.assert_array_equal(found[:, :16], found[:, 16:])


def test_in_and_out_again_is_the_identity(model: Model, tmp_path: Path) -> None:
    allennlp.save(tmp_path / "out", model)
    tensors = hdf5.open_tensors(tmp_path / "out" / allennlp.WEIGHTS)
    wanted, found = read("lm_weights.hdf5"), {name: one.read() for name, one in tensors.items()}
    assert found.keys() == wanted.keys() and all(found[name].tobytes() == array.tobytes() for name, array in wanted.items())
    options = lambda place: json.loads((place / allennlp.OPTIONS).read_text())
    assert options(tmp_path / "out") == options(GOLDEN)
