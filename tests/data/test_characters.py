"""Character ids of words against a loop over bytes, written from bilm/data.py's rules."""

import numpy as np
import pytest

from jaxenc.data import characters


def slow(word: str) -> list[int]:
    ids = [258]
    for byte in word.encode("utf-8"):
        if len(ids) == 49:
            break
        ids.append(byte)
    ids.append(259)
    while len(ids) < 50:
        ids.append(260)
    return ids


LONG = ["x" * 47, "x" * 48, "x" * 49, "x" * 60, "x" * 46 + "\U0001f600", "ÿ" * 24, "ÿ" * 25]
WORDS = ["", "a", "cat", "über", "\U0001f600", "nul\0nul", *LONG]


def test_words_are_framed_as_published() -> None:
    rows = characters.of_words(WORDS)
    assert rows.dtype == np.uint16 and rows.shape == (len(WORDS), characters.WIDTH)
    for word, row in zip(WORDS, rows.tolist(), strict=True):
        assert row == slow(word), word


def test_a_long_word_is_cut_within_a_character() -> None:
    row = characters.of_words(["x" * 46 + "\U0001f600"])[0].tolist()
    assert row[46:] == [ord("x"), 0xF0, 0x9F, 259], "two of the four bytes stay"


@pytest.mark.parametrize("word", ["a\ud800b", "\udfffab", "ab\ud83d"])
def test_a_lone_surrogate_is_left_out(word: str) -> None:
    np.testing.assert_array_equal(characters.of_words([word]), characters.of_words(["ab"]))


def test_markers_differ_from_every_word() -> None:
    assert characters.begin().tolist() == [258, 256, 259] + [260] * 47
    assert characters.end().tolist() == [258, 257, 259] + [260] * 47
    assert characters.of_words(["<S>"])[0, :5].tolist() == [258, *b"<S>", 259]


def test_no_words() -> None:
    assert characters.of_words([]).shape == (0, 50)
