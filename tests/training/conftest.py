"""Small data folders for whole runs."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from jaxenc.data.build import build
from jaxenc.data.tokenizers import word_list, wordpiece
from jaxenc.data.tokenizers.sentencepiece import unigram
from tests import tiny

SYLLABLES = ("ba", "de", "ki", "lo", "mu", "sa", "te", "ro", "ni", "pa")


TRAINERS = {
    "wordpiece": lambda all_words: wordpiece.train([" ".join(all_words)] * 3, 150),
    "unigram": lambda all_words: unigram.train([" ".join(all_words)] * 50, 60),
    "characters": lambda all_words: word_list.train(all_words, 60),
}


def make_data(folder: Path, seed: int, kind: str = "wordpiece", held_out: float = 0.2) -> Path:
    """A data folder of 80 documents of made-up words, with one vocabulary of this kind whatever the seed. held_out: share of documents."""
    random = np.random.default_rng(seed)
    all_words = [a + b for a in SYLLABLES for b in SYLLABLES]
    line = lambda: " ".join(random.choice(all_words, random.integers(3, 12))) + "."
    folder.mkdir()
    (folder / "text.txt").write_text("\n\n".join("\n".join(line() for _ in range(random.integers(2, 8))) for _ in range(80)))
    TRAINERS[kind](all_words).save(folder / "tokenizer")
    build([str(folder / "text.txt")], folder / "tokenizer", folder / "data", held_out)
    return folder / "data"


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_data(tmp_path_factory.mktemp("runs") / "first", 1)


@pytest.fixture(scope="session")
def other_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_data(tmp_path_factory.mktemp("runs") / "second", 2)


@pytest.fixture
def one_device() -> Iterator[None]:
    with tiny.on_one_device():
        yield
