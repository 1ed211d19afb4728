"""The laws of words, n-grams and spans over a million tokens, against a simulation of the written rule with random numbers of its own."""

import functools
from fractions import Fraction

import numpy as np
import pytest

from jaxenc.objectives.corrupt import spans
from jaxenc.objectives.mlm import MlmConfig
from tests.objectives.corrupt.chosen import CONFIGS, LAWS, Row, V, corrupt, greedy, reference, rows_of_words, words_in
from tests.selection import thinned

ROWS, LENGTH, BUDGET = 8192, 128, 19
UNITS = pytest.mark.parametrize("unit", CONFIGS)


@pytest.mark.parametrize("unit, mean", [("ngrams", 18 / 11), ("spans", 3.797)])
def test_the_laws_are_the_published_ones(unit: str, mean: float) -> None:
    """Each threshold is the share of the shorter lengths, to 2^-32; the means are ALBERT's 18/11 and the 3.8 of SpanBERT, section 3.1."""
    got = spans.ngrams(3) if unit == "ngrams" else spans.geometric(0.2, 10)
    law = LAWS[unit]
    assert len(got) == len(law) - 1
    assert all(abs(Fraction(at, 2**32) - sum(law[: k + 1])) <= Fraction(1, 2**32) for k, at in enumerate(got))
    ends = [0, *(at / 2**32 for at in got), 1]
    assert np.dot(np.diff(ends), np.arange(1, len(law) + 1)) == pytest.approx(mean, abs=5e-4)


@functools.cache
def rows() -> Row:
    """1,048,576 tokens: words of 1 to 5 pieces, each [UNK], which no clean replacement draws."""
    return rows_of_words(ROWS, LENGTH, seed=4)


@functools.cache
def drawn(unit: str) -> tuple[dict, np.ndarray, dict[str, np.ndarray]]:
    """(draws, span of each prediction, example) of all rows."""
    return corrupt(CONFIGS[unit].masking(V, LENGTH, 0), rows(), seed=6)


def million(unit: str) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    return drawn(unit)[1:]


@functools.cache
def histograms(unit: str) -> np.ndarray:
    """i64 [rows, 17] of our masks: spans of 1 to 10 words, words of 1 to 5 pieces, spans, predictions."""
    span, got = million(unit)
    real, firsts = got["masked"] == 1, np.take_along_axis(rows()["word_starts"], got["masked_at"], 1)
    row, slot = np.nonzero(real)
    words = np.zeros((ROWS, BUDGET + 1), np.int64)
    np.add.at(words, (row, span[row, slot]), firsts[row, slot])
    word = np.cumsum(np.where(real, firsts, 0), 1) - 1
    pieces = np.zeros((ROWS, BUDGET + 1), np.int64)
    np.add.at(pieces, (row, word[row, slot]), 1)
    columns = [(words == n).sum(1) for n in range(1, 11)] + [(pieces == n).sum(1) for n in range(1, 6)]
    return np.stack([*columns, (words > 0).sum(1), real.sum(1)], 1)


def simulated(unit: str) -> tuple[np.ndarray, np.ndarray]:
    """(the same histograms, hits of each position) where starts come from shuffles, lengths from the law, both NumPy's."""
    random, rule = np.random.default_rng(0), CONFIGS[unit].masking(V, LENGTH, 0)
    law = np.array(LAWS[unit], np.float64)
    columns, hits = [], np.zeros((ROWS, LENGTH), np.int64)
    for i in range(ROWS):
        words = words_in(rule, {name: a[i] for name, a in rows().items()})
        lengths = random.choice(len(law), BUDGET, p=law) + 1 if len(law) > 1 else [1] * BUDGET
        taken = greedy(words, random.permutation(len(words)).tolist(), lengths, BUDGET)
        pieces = [len(words[word]) for one in taken for word in one]
        hits[i, [at for one in taken for word in one for at in words[word]]] = 1
        sizes = [len(one) for one in taken]
        columns.append([*np.bincount(sizes, minlength=11)[1:], *np.bincount(pieces, minlength=6)[1:], len(taken), sum(pieces)])
    return np.array(columns), hits


@pytest.mark.parametrize("unit", thinned(CONFIGS, "spans"))
def test_lengths_rates_and_places_are_those_of_the_written_rule(unit: str) -> None:
    """Means over rows of ours and of the simulation within 3 sigma of their difference, sigma² = (var + var) / rows: spans of each
    length, words of each size, spans, predictions. Places: the sum of squared differences as a chi-squared, within 3 sigma."""
    ours, (theirs, hits) = histograms(unit), simulated(unit)
    sigma = np.sqrt((ours.var(0) + theirs.var(0)) / ROWS)
    off = np.abs(ours.mean(0) - theirs.mean(0)) / np.maximum(sigma, 1e-9)
    assert (off <= 3).all(), np.round(off, 1)
    assert ours[:, -1].max() == BUDGET and ours[:, -1].mean() > 0.99 * BUDGET
    _, got = million(unit)
    mine = np.zeros((ROWS, LENGTH), np.int64)
    row, slot = np.nonzero(got["masked"])
    mine[row, got["masked_at"][row, slot]] = 1
    assert not mine[:, [0, -1]].any()
    p = (mine.mean(0) + hits.mean(0))[1:-1] / 2
    statistic = np.sum(np.square(mine.mean(0) - hits.mean(0))[1:-1] / (2 * p * (1 - p) / ROWS))
    # Positions of one span are hit together: the statistic spreads as a chi-squared of fewer independent parts.
    covariance = np.corrcoef(mine[:, 1:-1], rowvar=False)
    assert abs(statistic - p.size) <= 3 * np.sqrt(2 * np.square(covariance).sum())


@UNITS
def test_no_word_of_a_million_tokens_is_split(unit: str) -> None:
    """Of each word all pieces or none, no special, no position twice, and no word left that the rest of the budget would hold. In each
    200th row every field is that of the plain loop."""
    draws, _, got = drawn(unit)
    row, slot = np.nonzero(got["masked"])
    chosen = np.zeros((ROWS, LENGTH), np.int64)
    np.add.at(chosen, (row, got["masked_at"][row, slot]), 1)
    assert chosen.max() == 1 and not chosen[:, [0, -1]].any()
    word = (np.arange(ROWS)[:, None] * LENGTH + np.cumsum(rows()["word_starts"], 1) - 1).ravel()
    size, hits = (np.bincount(word, weights, ROWS * LENGTH).reshape(ROWS, LENGTH) for weights in (None, chosen.ravel()))
    assert ((hits == 0) | (hits == size)).all()
    specials = (np.arange(LENGTH) == 0) | (np.arange(LENGTH) == rows()["word_starts"].sum(1)[:, None] - 1)
    left = got["budget"] - chosen.sum(1)
    assert (left >= 0).all() and (size > left[:, None])[(size > 0) & (hits == 0) & ~specials].all()

    rule = CONFIGS[unit].masking(V, LENGTH, 0)
    for i in range(0, ROWS, 200):
        want = reference(rule, {name: a[i] for name, a in draws.items()}, {name: a[i] for name, a in rows().items()})
        assert {name: array[i].tolist() for name, array in got.items()} == want, f"row {i}"


@UNITS
def test_first_starts_are_uniform_over_words_and_first_lengths_follow_the_law(unit: str) -> None:
    """Words of one piece: the start of each row's first span over the 126 words, and its length where the row has 10 words from there
    on, by Pearson's chi-squared within 3 sigma of its mean."""
    flat = {**rows(), "word_starts": np.ones((ROWS, LENGTH), np.int32)}
    _, span, got = corrupt(CONFIGS[unit].masking(V, LENGTH, 0), flat, seed=8)
    start = got["masked_at"][:, 0]
    assert (got["masked"].sum(1) == BUDGET).all()
    _chi_squared(np.bincount(start, minlength=LENGTH)[1:-1], np.full(126, 1 / 126))
    size = ((span == 0) & (got["masked"] == 1)).sum(1)[start <= LENGTH - 11]
    law = np.array(LAWS[unit], np.float64)
    assert size.min() == 1 and size.max() == law.size
    if law.size > 1:
        _chi_squared(np.bincount(size, minlength=law.size + 1)[1:], law)
    else:
        hits = np.bincount(got["masked_at"].ravel(), minlength=LENGTH)[1:-1]
        statistic = np.square(hits - hits.mean()).sum() / (hits.mean() * (126 - BUDGET) / 125)
        assert abs(statistic - 125) <= 3 * np.sqrt(250)


def _chi_squared(counts: np.ndarray, law: np.ndarray) -> None:
    expected, df = counts.sum() * law, counts.size - 1
    assert abs(np.sum(np.square(counts - expected) / expected) - df) <= 3 * np.sqrt(2 * df), counts


@pytest.mark.parametrize("unit", ["words", "spans"])
def test_shares_and_whose_fate_is_drawn(unit: str) -> None:
    """0.8, 0.1, 0.1 within 3 sigma, of predictions where each piece draws (words), of spans where a span does: all its tokens are
    [MASK], all random or all themselves, and the random ids of one differ."""
    span, got = million(unit)
    real = got["masked"] == 1
    now = np.take_along_axis(got["tokens"], got["masked_at"], 1)
    fate = np.where(now == V.mask, 0, np.where(now == V.unk, 2, 1))
    same = real[:, 1:] & real[:, :-1] & (span[:, 1:] == span[:, :-1])
    differ = (fate[:, 1:] != fate[:, :-1])[same]
    if unit == "spans":
        assert not differ.any() and (now[:, 1:] != now[:, :-1])[same & (fate[:, 1:] == 1)].any()
        real = real & np.concatenate([np.ones((ROWS, 1), bool), ~same], 1)
    else:
        p = 1 - (0.64 + 0.01 + 0.01)
        assert abs(differ.mean() - p) <= 3 * np.sqrt(2 * p * (1 - p) / differ.size)
    for k, p in enumerate((0.8, 0.1, 0.1)):
        assert abs((fate[real] == k).mean() - p) <= 3 * np.sqrt(p * (1 - p) / real.sum())


@pytest.mark.parametrize("p, longest", [(1e-4, 100), (0.2, 100), (0.999999999, 10)])
def test_the_rarest_length_is_a_number_of_32_bits(p: float, longest: int) -> None:
    """Shares that end within 2^-33 of 1 round to 2^32, which the bits cannot be compared with."""
    got = spans.geometric(p, longest)
    assert len(got) == longest - 1 and got[-1] < 2**32 and list(got) == sorted(got)
    assert got[0] == pytest.approx(p / (1 - (1 - p) ** longest) * 2**32, rel=1e-6)


def test_a_longest_of_one_word_masks_words() -> None:
    """n-grams and spans of one word at most are whole words, draw for draw."""
    for unit in ("ngrams", "spans"):
        some = {name: a[:256] for name, a in rows().items()}
        got, want = (corrupt(config.masking(V, LENGTH, 0), some)[2] for config in (MlmConfig(unit=unit, longest=1), CONFIGS["words"]))
        assert all(np.array_equal(got[name], array) for name, array in want.items()) and got["masked_spans"].min() > 1
