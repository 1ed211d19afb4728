"""A small corpus, its tokenizer and its data folder, made once a session."""

from pathlib import Path

import numpy as np
import pytest

from jaxenc.data.build import build
from jaxenc.data.tokenizers import wordpiece

WORDS = [a + b for a in ("ba", "de", "ki", "lo", "mu", "sa", "te") for b in ("n", "r", "st", "lo", "mi", "da")]


def _write(path: Path, documents: int, seed: int = 0) -> Path:
    """`documents` of 1 to 12 sentences of 1 to 30 words, a line for up to three sentences, a blank line between documents."""
    rng = np.random.default_rng(seed)
    texts = []
    for _ in range(documents):
        made = [" ".join(rng.choice(WORDS, rng.integers(1, 31))).capitalize() + "." for _ in range(rng.integers(1, 13))]
        texts.append("\n".join(" ".join(made[i : i + 3]) for i in range(0, len(made), 3)))
    path.write_text("\n\n".join(texts) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def write_documents():
    """(path, documents, seed=0) -> path, of a file of made-up English."""
    return _write


@pytest.fixture(scope="session")
def corpus(tmp_path_factory) -> Path:
    return _write(tmp_path_factory.mktemp("corpus") / "corpus.txt", 120)


@pytest.fixture(scope="session")
def tokenizer(corpus, tmp_path_factory) -> Path:
    """A folder with a vocabulary of single letters and a few longer pieces, so that words take several tokens."""
    folder = tmp_path_factory.mktemp("tokenizer")
    wordpiece.train(corpus.read_text().split("\n"), 60).save(folder)
    return folder


@pytest.fixture(scope="session")
def data(corpus, tokenizer, tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("data") / "store"
    build([str(corpus)], tokenizer, out, held_out=0.2)
    return out
