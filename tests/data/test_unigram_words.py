"""When words are joined for one call of a unigram model: only where adding up scores rounds nothing."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from jaxenc.data.tokenizers.sentencepiece.unigram_words import MARK, STEP, encoder


def _calls(score: float) -> list[str]:
    """Which function of the library encodes two words where one piece has `score`."""
    called: list[str] = []

    def tokenize(text: str) -> list[Any]:
        called.append("tokenize")
        return [SimpleNamespace(id=1 + (character != MARK)) for character in text]

    def encode_batch(words: list[str], add_special_tokens: bool) -> list[Any]:
        called.append("encode_batch")
        return [SimpleNamespace(ids=[1, 2], word_ids=[0, 0]) for _ in words]

    tool = SimpleNamespace(model=SimpleNamespace(tokenize=tokenize), encode_batch=encode_batch)
    found = encoder(tool, [("<unk>", 0.0), (MARK, -1.0), ("a", score)], str)(["a", " a"])
    assert np.array_equal(found.tokens, [1, 2, 1, 2]) and np.array_equal(found.lengths, [2, 2])
    return called


@pytest.mark.parametrize("score, exact", [(-2.5, True), (-3 * STEP, True), (-0.1, False), (-STEP / 2, False), (-250.0, False)])
def test_words_are_joined_where_sums_of_scores_are_exact(score: float, exact: bool) -> None:
    assert _calls(score) == ["tokenize" if exact else "encode_batch"]
