"""Whole words, n-grams and spans against a plain loop over the same draws; what rows without words, and of odd words, become."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from jaxenc.errors import UserError
from jaxenc.objectives.mlm import MlmConfig
from tests import tiny
from tests.objectives.corrupt.chosen import CONFIGS, Row, V, assert_golden, corrupt, reference, words_in
from tests.selection import thinned

UNITS = pytest.mark.parametrize("unit", CONFIGS)


def mixed_rows(length: int) -> Row:
    """Rows full and short, with specials inside, of two packed texts without a special between, of one word, of nothing."""
    n = [length] * 24 + sorted({n for n in (1, 2, 3, 4, 5, length // 2, length - 1) if 0 < n <= length}) * 3 + [length] * 4 + [0] * 2
    rows = tiny.batch(n, length, seed=length)
    random = np.random.default_rng(length)
    rows["tokens"][:8] = np.where(random.random((8, length)) < 0.15, V.sep, rows["tokens"][:8])
    rows["segments"][8:16] += np.arange(length) >= length // 3
    rows["word_starts"][16:20] = 0
    rows["word_starts"][20:24] = 1
    rows["tokens"][-6:-2] = V.sep
    return rows


OTHER = {"rounding": "stochastic", "rate": 0.3, "action": "span", "mask_share": 0.5, "random_share": 0.5, "max_predictions": 30}


LOOPED = thinned([(3, {}), (20, {"rate": 1.0}), (127, {}), (127, OTHER)], 20, (127, OTHER))


@pytest.mark.parametrize("length, change", LOOPED, ids=["3", "20 all", "127", "127 other"])
@UNITS
def test_equals_a_loop_over_the_same_draws(unit: str, length: int, change: dict) -> None:
    """Bitwise, in every field of every row: as the recipes have it, with a budget of more than any row has candidates, all of which it
    takes, and RoBERTa's budget cut at fewer predictions, none kept, by span."""
    rows, rule = mixed_rows(length), dataclasses.replace(CONFIGS[unit], **change).masking(V, length, 0)
    draws, _, got = corrupt(rule, rows, seed=length)
    for i in range(len(rows["tokens"])):
        want = reference(rule, {name: a[i] for name, a in draws.items()}, {name: a[i] for name, a in rows.items()})
        assert {name: array[i].tolist() for name, array in got.items()} == want, f"row {i} of {length} tokens, {change}"
    if rule.rate == 1:
        text = (rows["segments"] > 0) & ~np.isin(rows["tokens"], (V.pad, V.cls, V.sep))
        assert (got["masked"].sum(1) == text.sum(1)).all()


@UNITS
def test_no_word_of_odd_rows_is_split(unit: str) -> None:
    """As over a million tokens (test_spans.py), of rows of all kinds: all pieces or none, within the budget, which a word that still fits
    leaves nothing of."""
    rows, rule = mixed_rows(127), CONFIGS[unit].masking(V, 127, 0)
    _, _, got = corrupt(rule, rows, seed=2)
    for i in range(len(rows["tokens"])):
        at = got["masked_at"][i][got["masked"][i] == 1].tolist()
        words = [word for word in words_in(rule, {name: a[i] for name, a in rows.items()}) if word]
        left = int(got["budget"][i]) - len(at)
        assert len(set(at)) == len(at) and left >= 0 and set(at) <= {p for word in words for p in word}
        assert all(set(word) <= set(at) or (not set(word) & set(at) and len(word) > left) for word in words), f"row {i}"


@UNITS
def test_no_span_has_a_special_or_a_gap_inside(unit: str) -> None:
    """The positions of one span follow each other, in one text."""
    rows = mixed_rows(127)
    _, spans, got = corrupt(CONFIGS[unit].masking(V, 127, 0), rows, seed=3)
    for i in range(len(spans)):
        real = got["masked"][i] == 1
        at, span = got["masked_at"][i][real], spans[i][real]
        joined = span[1:] == span[:-1]
        assert (np.diff(at)[joined] == 1).all() and (np.diff(span) >= 0).all()
        assert (np.diff(rows["segments"][i][at])[joined] == 0).all()


@UNITS
@pytest.mark.parametrize(
    "pieces, masked", [([], 0), ([1], 1), ([2], 0), ([1, 1], 1), ([12], 0), ([12, 1], 1)], ids=["none", "1", "2", "1-1", "12", "12-1"]
)
def test_rows_of_few_words(unit: str, pieces: list[int], masked: int) -> None:
    """A budget of 1 or 2 for 2 to 15 tokens: one word longer than that is passed over, 200 times, and a row of one piece is masked."""
    rows = {name: np.zeros((200, 20), np.int32) for name in ("tokens", "segments", "word_starts")}
    row = [V.cls, *(7 for size in pieces for _ in range(size)), V.sep]
    rows["tokens"][:, : len(row)] = row
    rows["segments"][:, : len(row)] = 1
    rows["word_starts"][:, : len(row)] = [1, *(int(k == 0) for size in pieces for k in range(size)), 1]
    _, _, got = corrupt(CONFIGS[unit].masking(V, 20, 0), rows)
    assert (got["masked"].sum(1) == masked).all() and (got["masked_spans"] == masked).all() and (got["masked_words"] == masked).all()
    if not masked:
        assert (got["tokens"] == rows["tokens"]).all() and not got["masked_at"].any()


def test_a_row_that_begins_inside_a_word_has_a_word_there() -> None:
    """Also after a special and at the start of the next text, where the token before is no part of it; 500 draws reach all of it."""
    row = {"tokens": [7, 7, 7, V.sep, 7, 7, 7, 7], "segments": [1, 1, 1, 1, 1, 1, 2, 2], "word_starts": [0, 0, 1, 1, 0, 0, 0, 0]}
    rows = {name: np.tile(np.array(values, np.int32), (500, 1)) for name, values in row.items()}
    _, _, got = corrupt(MlmConfig(unit="words", rate=0.25).masking(V, 8, 0), rows)
    chosen = {tuple(at[n == 1].tolist()) for at, n in zip(got["masked_at"], got["masked"], strict=True)}
    assert chosen == {(0, 1), (4, 5), (6, 7), (2,)}


@UNITS
def test_masks_are_the_golden_ones(tmp_path: Path, unit: str) -> None:
    """Rows of mixed lengths at seed 7, step 3: `positions -> what stands there` of each. Both supported jax lines draw the same bits.

    A change here changes every run that is resumed.
    """
    rows = tiny.batch([64, 64, 40, 17, 5, 3, 1, 64], 64, seed=11)
    _, _, got = corrupt(CONFIGS[unit].masking(V, 64, 0), rows, seed=7, step=3)
    assert_golden(got, f"masks_{unit}.txt", tmp_path)


@pytest.mark.parametrize(
    "fields, words",
    [
        ({"unit": "phrases"}, "objective.unit is 'phrases'; use tokens or words or ngrams or spans"),
        ({"action": "word"}, "objective.action is 'word'; use token or span"),
        ({"geometric": 1.0}, "objective.geometric is 1.0; it takes the chance"),
        ({"geometric": 1e-5}, "objective.geometric is 1e-05; it takes the chance that a span ends after a word, from 0.0001 on"),
        ({"longest": -1}, "objective.longest is -1"),
        ({"longest": 101}, "objective.longest is 101; a span has 100 words at most"),
        ({"unit": "spans", "candidates": "all"}, "objective.candidates=all predicts specials, .* use text with objective.unit=spans"),
    ],
)
def test_a_rule_that_is_not_one_is_one_line(fields: dict, words: str) -> None:
    with pytest.raises(UserError, match=words):
        MlmConfig(**fields)
