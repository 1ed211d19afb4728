"""Masking against a plain loop over the same draws, and its distribution against the published one."""

import dataclasses
import functools
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxenc.data.vocabulary import Vocabulary
from jaxenc.errors import UserError
from jaxenc.families.bert.vocabulary import published_roberta
from jaxenc.objectives.corrupt import masking as maskings
from jaxenc.objectives.corrupt import rule as rules
from jaxenc.objectives.corrupt.rule import Masking
from jaxenc.objectives.mlm import MlmConfig
from tests import tiny
from tests.objectives.corrupt import chosen
from tests.selection import thinned

V = tiny.VOCABULARY
SPECIALS = (V.pad, V.cls, V.sep)


R = published_roberta(64)
FAIRSEQ = MlmConfig(rounding="stochastic", candidates="all", replacements="all_but_control")


def masking(length: int, replacements: str = "text", vocabulary: Vocabulary = V, **fields) -> Masking:
    return MlmConfig(replacements=replacements, **fields).masking(vocabulary, length, 0)


def corrupt(rule: Masking, rows: np.ndarray, segments: np.ndarray, seed: int = 0, step: int = 0) -> tuple[tuple, dict]:
    """(the draws, the example) of rows that stand in slots 0, 1, ... of training step `step`."""
    drawn, _, example = chosen.corrupt(rule, {"tokens": rows, "segments": segments, "word_starts": segments}, seed, step)
    return tuple(drawn[name] for name in ("selection", "action", "replacement", "rounding")), example


def reference(rule: Masking, draws: Sequence[np.ndarray], row: np.ndarray, segments: np.ndarray) -> dict[str, list[int]]:
    """One row, written from google-research/bert:create_pretraining_data.py, fairseq's mask_tokens_dataset.py and the meaning of the
    draws, in plain Python.

    Positions go by the upper bits of their draw, as many as 31 less those that number the positions, the later position first where
    they are equal. An action below 0.8 · 2^32 is [MASK], from 0.9 · 2^32 on a random id, and the token itself between.
    """
    selection, action, replacement = ([int(x) for x in part] for part in draws[:3])
    n = sum(1 for s in segments if s > 0)
    candidates = [i for i in range(len(row)) if segments[i] > 0 and row[i] not in rule.never_masked]
    dropped = 1 + max(1, (len(row) - 1).bit_length())
    candidates.sort(key=lambda i: (selection[i] >> dropped, i), reverse=True)
    if rule.rounding == "stochastic":
        wanted = int(Fraction(str(rule.rate)) * n + Fraction(2**32 - 1 - int(draws[3]), 2**32))
    else:
        wanted = max(1, round(n * rule.rate)) if n else 0
    count = min(rule.predictions, wanted, len(candidates))
    out = {"tokens": [int(x) for x in row], "masked_at": [0] * rule.predictions, "masked_ids": [0] * rule.predictions}
    out["masked"] = [0] * rule.predictions
    for j, at in enumerate(candidates[:count]):
        out["masked_at"][j], out["masked_ids"][j], out["masked"][j] = at, int(row[at]), 1
        share = action[j] / 2**32
        if share < rule.mask_share:
            out["tokens"][at] = rule.mask_id
        elif share >= 1 - rule.random_share:
            out["tokens"][at] = int(rule.replacements[replacement[j] % len(rule.replacements)])
    return out


def mixed_rows(length: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of all kinds: every number of real tokens that matters, specials in the middle, nothing but specials, nothing at all."""
    lengths = [length] * 20 + sorted({n for n in (1, 2, 3, 5, 60, length // 2, length - 1) if 0 < n <= length}) * 4
    batch = tiny.batch(lengths, length, seed=length)
    rows, segments = batch["tokens"], batch["segments"]
    some = np.random.default_rng(1).random(rows.shape) < 0.1
    rows[:10] = np.where(some[:10], V.sep, rows[:10])
    only = np.where(np.arange(length) % 2, V.cls, V.sep)[None].repeat(3, 0).astype(np.int32)
    empty = np.full((3, length), V.pad, np.int32)
    return np.concatenate([rows, only, empty]), np.concatenate([segments, np.ones_like(only), np.zeros_like(empty)])


@pytest.mark.parametrize("length", thinned([3, 5, 64, 127, 512], 3, 127))
def test_equals_a_loop_over_the_same_draws(length: int) -> None:
    """Bitwise, in every field of every row."""
    few = masking(length, "all", max_predictions=min(4, length), mask_share=0.5, random_share=0.5)
    for rule in (masking(length), few, FAIRSEQ.masking(V, length, 0)):
        rows, segments = mixed_rows(length)
        draws, got = corrupt(rule, rows, segments, seed=length)
        for i in range(len(rows)):
            want = reference(rule, [part[i] for part in draws], rows[i], segments[i])
            assert {name: array[i].tolist() for name, array in got.items()} == want, f"row {i} of length {length}"


@pytest.mark.parametrize("length", [3, 5, 64, 127, 512])
def test_the_count_and_the_positions(length: int) -> None:
    """k = min(P, max(1, round(0.15 n))), n specials counted, rounded half to even; no position twice, no special, no padding."""
    rows, segments = mixed_rows(length)
    rule = masking(length)
    _, got = corrupt(rule, rows, segments)
    for i in range(len(rows)):
        n, candidates = int((segments[i] > 0).sum()), ~np.isin(rows[i], SPECIALS) & (segments[i] > 0)
        at = got["masked_at"][i][got["masked"][i] == 1]
        assert len(at) == min(rule.predictions, max(1, round(0.15 * n)), candidates.sum()) * (n > 0)
        assert len(set(at.tolist())) == len(at) and candidates[at].all()
        assert (got["masked_ids"][i][: len(at)] == rows[i][at]).all()
        outside = np.setdiff1d(np.arange(length), at)
        assert (got["tokens"][i][outside] == rows[i][outside]).all()
        assert not got["masked_at"][i][len(at) :].any() and not got["masked_ids"][i][len(at) :].any()


def test_halves_round_to_even_as_in_python() -> None:
    """190 · 0.15 is 28.499999999999996 in float64 and 28.5 in float32; 30 · 0.15 is 4.5, which rounds to 4."""
    (budget,), odds = masking(512).budget(512)
    assert [budget[n] for n in (0, 1, 3, 10, 30, 50, 190, 512)] == [0, 1, 1, 2, 4, 8, 28, 77]
    assert budget.tolist() == [0, *(max(1, round(n * 0.15)) for n in range(1, 513))] and not odds.any()


def test_stochastic_counts_are_those_of_the_rate_as_it_is_written() -> None:
    """sure + odds / 2^32 is 0.15 n, to 2^-32; a whole 0.15 n has no odds, whatever the float product; nothing is the least of one."""
    (sure,), (odds,) = FAIRSEQ.masking(V, 512, 0).budget(512)
    assert [(int(sure[n]), int(odds[n])) for n in (0, 10, 20, 140, 190, 512)] == [
        (0, 0), (1, 1 << 31), (3, 0), (21, 0), (28, 1 << 31), (76, int(0.8 * 2**32))]  # fmt: skip
    assert [int(n) for n in sure[:7]] == [0] * 7
    for n in range(513):
        assert 0 <= Fraction(15 * n, 100) - (int(sure[n]) + Fraction(int(odds[n]), 2**32)) < Fraction(1, 2**32), n


@functools.cache
def _count_of_twenty():
    """Compiled: how many are masked of 20 places, of which n hold a token, where the row's bits are `bits`."""
    rule = FAIRSEQ.masking(V, 20, 0)

    @jax.jit
    def run(bits, n):
        drawn = rules.Draws(*(jnp.arange(size, dtype=jnp.uint32) for size in (20, 3, 3)), bits, jnp.zeros(0, jnp.uint32), jnp.int32(0))
        row = {"tokens": jnp.full(20, 7), "segments": (jnp.arange(20) < n).astype(jnp.int32)}
        return maskings.apply(rule, drawn, row)["masked"].sum()

    return run


@pytest.mark.parametrize("n, bits, count", [(10, (1 << 31) - 1, 2), (10, 1 << 31, 1), (20, 0, 3), (0, 0, 0), (5, 0, 1), (5, 2**32 - 1, 0)])
def test_one_more_where_the_bits_are_below_the_odds(n: int, bits: int, count: int) -> None:
    """At the edges: 0.15 · 10 = 1.5 turns at 2^31, 0.15 · 20 = 3 never does."""
    assert int(_count_of_twenty()(np.uint32(bits), n)) == count


@pytest.mark.parametrize("rate", [0.05, 0.07, 0.1, 0.15, 0.3, 0.4, 1.0])
@pytest.mark.parametrize("config", [MlmConfig(), FAIRSEQ], ids=["bert", "fairseq"])
def test_the_fixed_shape_holds_the_largest_count(rate: float, config: MlmConfig) -> None:
    """ceil(rate · length) slots for rows of 1 to 600 tokens, though 0.07 · 100 is a little more than 7 and 0.15 · 20 exactly 3."""
    rules = [dataclasses.replace(config, rate=rate).masking(V, length, 0) for length in range(1, 601)]
    (sure,), (odds,) = rules[-1].budget(600)
    largest = np.maximum.accumulate(sure + (odds > 0))
    assert all(largest[length] <= rule.predictions <= length for length, rule in enumerate(rules, 1))
    assert FAIRSEQ.masking(V, 20, 0).predictions == 3


def test_padding_and_specials_are_never_chosen() -> None:
    """Rows of 5 and 60 tokens padded to 64, 1,000 draws, no hit."""
    batch = tiny.batch([5, 60] * 500, 64)
    _, got = corrupt(masking(64), batch["tokens"], batch["segments"])
    assert not np.isin(got["masked_ids"][got["masked"] == 1], SPECIALS).any()
    real = np.take_along_axis(batch["segments"], got["masked_at"], 1)[got["masked"] == 1]
    assert (real == 1).all() and (got["tokens"][batch["segments"] == 0] == V.pad).all()


def test_a_padding_token_that_claims_to_be_a_word_is_not_chosen() -> None:
    """The segments decide what is padding, whatever id stands there."""
    batch = tiny.batch([64] * 200, 64)
    segments = (np.arange(64) < 7).astype(np.int32)[None].repeat(200, 0)
    _, got = corrupt(masking(64), batch["tokens"], segments)
    assert got["masked"].sum() == 200 and got["masked_at"].max() < 7


@pytest.mark.parametrize("tokens_of_row", [1, 2, 3, 4])
def test_a_short_row_with_a_word_is_masked_once(tokens_of_row: int) -> None:
    """Over 1,000 keys, exactly one prediction wherever a candidate is."""
    batch = tiny.batch([tokens_of_row] * 1000, 16)
    batch["tokens"][:, 0] = 7
    _, got = corrupt(masking(16), batch["tokens"], batch["segments"])
    assert (got["masked"].sum(1) == 1).all()


@pytest.mark.parametrize("replacements, low, high", [("text", 5, 20), ("all", 0, 20)])
def test_what_random_replacements_draw_from(replacements: str, low: int, high: int) -> None:
    """20 ids of which 5 are special, ~1e5 draws; `text` never draws a reserved id, `all` draws every id."""
    small = dataclasses.replace(V, size=20)
    rule = masking(128, replacements, small, rate=1.0, random_share=1.0, mask_share=0.0)
    rows = np.full((800, 128), 1, np.int32)
    _, got = corrupt(rule, rows, np.ones_like(rows))
    assert sorted(set(got["tokens"].ravel().tolist())) == list(range(low, high))


def chi_squared(counts: np.ndarray) -> float:
    """Pearson's statistic against equal frequencies, in standard deviations from its mean (df, variance 2 df)."""
    expected, df = counts.sum() / counts.size, counts.size - 1
    return (np.square(counts - expected).sum() / expected - df) / np.sqrt(2 * df)


@pytest.fixture(scope="module")
def million() -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """8,192 rows of 128 tokens, 1,048,576 in all; every word is [UNK], which no clean replacement draws, so each replacement shows."""
    rows = np.full((8192, 128), V.unk, np.int32)
    rows[:, 0], rows[:, -1] = V.cls, V.sep
    return rows, corrupt(masking(128), rows, np.ones_like(rows), seed=5)[1]


def test_rate_and_shares_over_a_million_tokens(million: tuple) -> None:
    """19 of 128 in every row, exactly. Shares 0.8, 0.1, 0.1 of the 155,648 predictions within 3 sigma: sigma = sqrt(p (1 - p) / N)
    is 0.00101 for 0.8 and 0.00076 for 0.1."""
    rows, got = million
    assert (got["masked"].sum(1) == 19).all()
    now = np.take_along_axis(got["tokens"], got["masked_at"], 1)[got["masked"] == 1]
    for name, hits, p in (("mask", now == V.mask, 0.8), ("random", now >= 5, 0.1), ("same", now == V.unk, 0.1)):
        sigma = np.sqrt(p * (1 - p) / now.size)
        assert abs(hits.mean() - p) <= 3 * sigma, f"{name}: {(hits.mean() - p) / sigma:.1f} sigma"
    assert (got["tokens"] != rows).sum() == ((now == V.mask) | (now >= 5)).sum()


def test_positions_and_replacements_are_uniform_over_a_million_tokens(million: tuple) -> None:
    """Chi-squared within 3 sigma of its mean. Positions of one row exclude each other, which narrows their counts by (m - k) / (m - 1)."""
    _, got = million
    at, now = got["masked_at"][got["masked"] == 1], np.take_along_axis(got["tokens"], got["masked_at"], 1)[got["masked"] == 1]
    counts = np.bincount(at, minlength=128)[1:-1]
    m, k = counts.size, 19
    statistic = np.square(counts - counts.mean()).sum() / (counts.mean() * (m - k) / (m - 1))
    assert abs(statistic - (m - 1)) <= 3 * np.sqrt(2 * (m - 1))
    assert abs(chi_squared(np.bincount(now[now >= 5], minlength=V.size)[5:])) <= 3
    first = got["masked_at"][:, 0]
    assert abs(chi_squared(np.bincount(first, minlength=128)[1:-1])) <= 3


def overlap_sigmas(left: np.ndarray, right: np.ndarray, m: int, k: int) -> float:
    """Shared positions of rows of chosen positions [rows, k], in sigmas from k²/m a row, the mean of the hypergeometric law."""
    shared = (left[:, :, None] == right[:, None, :]).sum()
    variance = k * (k / m) * (1 - k / m) * (m - k) / (m - 1)
    return (shared - len(left) * k * k / m) / np.sqrt(len(left) * variance)


def test_masks_of_two_steps_and_of_two_rows_overlap_as_independent_draws_do() -> None:
    """Within 3 sigma, over 2,048 pairs of rows of 126 candidates and 19 predictions. Two copies of a row differ; a step repeats itself."""
    rows = np.full((2048, 128), 7, np.int32)
    rows[:, 0], rows[:, -1] = V.cls, V.sep
    rule = masking(128)
    first, second, again = (corrupt(rule, rows, np.ones_like(rows), seed=3, step=step)[1] for step in (0, 1, 0))
    a, b = first["masked_at"][:, :19], second["masked_at"][:, :19]
    assert abs(overlap_sigmas(a, b, 126, 19)) <= 3
    assert abs(overlap_sigmas(a[:-1], a[1:], 126, 19)) <= 3
    assert len({tuple(sorted(row)) for row in a.tolist()}) == 2048
    tiny.assert_bitwise(first, again)


@pytest.mark.parametrize("config, name", [(MlmConfig(), "masks.txt"), (FAIRSEQ, "masks_fairseq.txt")], ids=["bert", "fairseq"])
def test_masks_are_the_golden_ones(tmp_path: Path, config: MlmConfig, name: str) -> None:
    """Rows of mixed lengths at seed 7, step 3: `positions -> what stands there` of each. Both supported jax lines draw the same bits.

    A change here changes every run that is resumed.
    """
    batch = tiny.batch([64, 64, 40, 17, 5, 3, 1, 64], 64, seed=11)
    _, got = corrupt(config.masking(V, 64, 0), batch["tokens"], batch["segments"], seed=7, step=3)
    chosen.assert_golden(got, name, tmp_path)


FULL, SHORT = 16_384, 4_096


@pytest.fixture(scope="module")
def fairseq() -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """(tokens of each row, the example): 16,384 rows of 64 tokens, 1,048,576 in all, then 4,096 each of 3, 10 and 20 padded to 64.

    Every word is <unk>, which no replacement draws.
    """
    n = np.repeat([64, 3, 10, 20], [FULL, SHORT, SHORT, SHORT])
    places = np.arange(64)[None]
    rows = np.where(places == 0, R.cls, np.where(places == n[:, None] - 1, R.sep, R.unk))
    real = places < n[:, None]
    rows = np.where(real, rows, R.pad).astype(np.int32)
    return n, corrupt(FAIRSEQ.masking(R, 64, 0), rows, real.astype(np.int32), seed=9)[1]


@pytest.mark.parametrize("tokens_of_row, low, odds", [(64, 9, 0.6), (3, 0, 0.45), (10, 1, 0.5), (20, 3, 0.0)])
def test_counts_are_rounded_up_as_often_as_the_rate_asks(fairseq: tuple, tokens_of_row: int, low: int, odds: float) -> None:
    """Each count is the floor or the ceiling of 0.15 n, the ceiling within 3 sigma = 3 sqrt(p (1 - p) / rows) of p: so is their mean."""
    n, got = fairseq
    counts = got["masked"][n == tokens_of_row].sum(1)
    assert set(counts.tolist()) == ({low, low + 1} if odds else {low})
    assert abs(counts.mean() - 0.15 * tokens_of_row) <= 3 * np.sqrt(odds * (1 - odds) / len(counts)) + 1e-12


def test_specials_are_chosen_as_often_as_words_and_padding_never(fairseq: tuple) -> None:
    """0.15 of all <s> and of all </s> in rows of 64, 3, 10 and 20, within 3 sigma. All 64 places alike: the sum of squared deviations,
    whose mean is rows · E[k (1 - k / m)], within 3 sigma of a chi-squared with m - 1 degrees of freedom."""
    n, got = fairseq
    real = got["masked"] == 1
    assert (np.where(real, got["masked_at"], 0) < n[:, None]).all() and not (got["masked_ids"][real] == R.pad).any()
    assert (got["tokens"][np.arange(64)[None] >= n[:, None]] == R.pad).all()
    for special in (R.cls, R.sep):
        for length in (64, 3, 10, 20):
            some = n == length
            share = (real & (got["masked_ids"] == special))[some].sum() / some.sum()
            assert abs(share - 0.15) <= 3 * np.sqrt(0.15 * 0.85 / some.sum()), f"id {special} in rows of {length}: {share}"
    full = n == 64
    hits, k = np.bincount(got["masked_at"][full][real[full]], minlength=64), real[full].sum(1)
    statistic = np.square(hits - hits.mean()).sum() / (full.sum() * (k * (1 - k / 64)).mean() / 63)
    assert abs(statistic - 63) <= 3 * np.sqrt(2 * 63)


def test_the_shares_of_fairseq_count_a_drawn_mask_too(fairseq: tuple) -> None:
    """Of 1 in 60 replacements that is <mask> itself: 0.8 + 0.1 / 60 of words are <mask>, 0.1 stay, within 3 sigma each."""
    _, got = fairseq
    words = (got["masked"] == 1) & (got["masked_ids"] == R.unk)
    now = np.take_along_axis(got["tokens"], got["masked_at"], 1)[words]
    for name, share, p in (("mask", (now == R.mask).mean(), 0.8 + 0.1 / 60), ("same", (now == R.unk).mean(), 0.1)):
        assert abs(share - p) <= 3 * np.sqrt(p * (1 - p) / now.size), f"{name}: {share} is not {p}"


def test_fairseq_draws_every_id_but_the_four_at_the_front_alike() -> None:
    """131,072 replacements over ids 4 to 63, <mask> and the fillers before it included; chi-squared within 3 sigma of its mean."""
    rule = dataclasses.replace(FAIRSEQ, rate=1.0, mask_share=0.0, random_share=1.0).masking(R, 128, 0)
    rows = np.full((1024, 128), R.unk, np.int32)
    _, got = corrupt(rule, rows, np.ones_like(rows), seed=2)
    counts = np.bincount(got["tokens"].ravel(), minlength=R.size)
    assert not counts[:4].any() and counts[4:].all()
    assert abs(chi_squared(counts[4:])) <= 3


@pytest.mark.parametrize(
    "field, value, words",
    [
        ("rounding", "up", "'up'; use half_even or stochastic"),
        ("candidates", "words", "'words'; use text or all"),
        ("replacements", "fairseq", "'fairseq'; use text or all or all_but_control"),
    ],
)
def test_a_rule_that_is_not_one_is_one_line(field: str, value: str, words: str) -> None:
    with pytest.raises(UserError, match=f"objective.{field} is {words}"):
        MlmConfig(**{field: value})
