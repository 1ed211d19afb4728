"""The choice and the order of XLNet against plain loops over the same draws, and who sees whom."""

import dataclasses
import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxenc import rng
from jaxenc.objectives.corrupt import permute, spans
from jaxenc.objectives.corrupt.permute import Permutation
from tests import tiny
from tests.objectives.corrupt.reference_permute import LAW, clean_choice, drawn_n, halves, local_perm, published_choice

GOLDEN = Path(__file__).parents[2] / "golden"
V = tiny.VOCABULARY
CLEAN = Permutation(
    reuse=32, predictions=11, lengths=spans.ngrams(5), alpha=6, beta=1, unit="words", candidates="text", size=16, shuffle="own",
    specials=(V.sep, V.cls),
)  # fmt: skip
PUBLISHED = dataclasses.replace(CLEAN, unit="tokens", candidates="all", shuffle="shared")
# reuse and rest, permutation, predictions: two blocks of each half; unequal halves; every token; as published.
SHAPES = {
    "64": (64, {}),
    "56 of 24 + 32": (56, {"reuse": 24, "size": 8, "predictions": 17}),
    "all": (32, {"reuse": 16, "size": 16, "predictions": 32}),
    "3 per 2": (64, {"alpha": 3, "beta": 2, "predictions": 30}),
    "512": (512, {"reuse": 256, "size": 256, "predictions": 85}),
}


def rows(length: int, reuse: int, count: int = 24, seed: int = 0) -> dict[str, np.ndarray]:
    """Streams in both directions: the reused part, A, SEP, B, SEP, CLS. Word starts belong to their pieces: the first as read, so the
    last of a word in a backward row. Two rows are padded at their end, one is all padding, and one is a single word."""
    random = np.random.default_rng(seed)
    tokens = random.integers(5, V.size, (count, length)).astype(np.int32)
    starts = (random.random((count, length)) < 0.6).astype(np.int32)
    middle = random.integers(reuse, length - 2, count)
    for i in range(count):
        tokens[i, [middle[i], length - 2]], tokens[i, length - 1] = V.sep, V.cls
        starts[i, [middle[i], length - 2, length - 1]] = 1
    starts[-4] = 0
    segments = np.ones_like(tokens)
    segments[-1] = 0
    segments[-2, length // 2 :] = segments[-3, length - 5 :] = 0
    tokens, starts = np.where(segments, tokens, V.pad).astype(np.int32), starts * segments
    direction = np.where(np.arange(count) % 2, -1, 1).astype(np.int32)
    return {"tokens": tokens, "segments": segments, "word_starts": starts, "direction": direction}


@functools.cache
def _jitted(permutation: Permutation, length: int) -> Any:
    @jax.jit
    @jax.vmap
    def run(key: jax.Array, row: Mapping[str, jax.Array]) -> tuple[dict, dict]:
        drawn = permute.draws(permutation, key, length)
        return dataclasses.asdict(drawn), permute.apply(permutation, drawn, row)

    return run


def permuted(permutation: Permutation, batch: Mapping[str, np.ndarray], seed: int = 0, step: int = 0) -> tuple[dict, dict]:
    """(draws, example) of rows in slots 0, 1, ... of a training step."""
    keys = rng.training(seed, jnp.int32(step), len(batch["tokens"])).per_row("corrupt", "mask")
    return jax.device_get(_jitted(permutation, batch["tokens"].shape[1])(keys, dict(batch)))


def visible(got: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    return jax.device_get(jax.jit(permute.visible)(got["rank"], got["predicted_at"]))


# Each shape by one of the two rules.
SHORT = {("clean", "56 of 24 + 32"), ("published", "all"), ("clean", "3 per 2"), ("published", "512")}


@pytest.mark.parametrize(
    "kind, shape",
    [
        pytest.param(kind, shape, id=f"{name}-{shape}", marks=[] if (name, shape) in SHORT else pytest.mark.full)
        for name, kind in (("clean", CLEAN), ("published", PUBLISHED))
        for shape in SHAPES
    ],
)
def test_equals_the_published_rule_and_the_clean_one_over_the_same_draws(kind: Permutation, shape: str) -> None:
    """Predicted places and both masks, bitwise, in both directions; the padding of a row is seen by no token of it."""
    length, fields = SHAPES[shape]
    p = dataclasses.replace(kind, **fields)
    batch = rows(length, p.reuse, 24 if length < 512 else 8, seed=length)
    draws, got = permuted(p, batch, seed=length)
    content, query = visible(got)
    for i in range(len(batch["tokens"])):
        row, drawn = {name: a[i] for name, a in batch.items()}, {name: a[i] for name, a in draws.items()}
        hidden, target = np.ones((length, length), bool), []
        for start, budget, half, bits in halves(p, row, drawn):
            read = slice(None, None, int(row["direction"]))
            choice = np.array((clean_choice if kind is CLEAN else published_choice)(p, half, bits, budget))[read]
            stop = start + len(choice)
            perm_mask, target_mask = local_perm(p, row["tokens"][start:stop], choice, bits["order"])
            hidden[start:stop, :start], hidden[start:stop, start:stop] = False, perm_mask
            target += target_mask.tolist()
        real = row["segments"] > 0
        at = np.flatnonzero(np.array(target) & real)
        assert got["masked"][i].sum() == len(at) and got["predicted_at"][i][: len(at)].tolist() == at.tolist(), f"row {i}"
        assert not got["predicted_at"][i][len(at) :].any() and not got["masked"][i][len(at) :].any()
        sees = ~hidden & real[None, :]
        assert (query[i][: len(at)] == sees[at]).all(), f"row {i}"
        assert (content[i][real] == (sees | np.eye(length, dtype=bool))[real]).all(), f"row {i}"


@pytest.fixture(scope="module", params=[CLEAN, PUBLISHED], ids=["clean", "published"])
def drawn(request: pytest.FixtureRequest) -> tuple[Permutation, dict, dict, tuple]:
    """96 full rows of 64 tokens: (rule, rows, example, visibility)."""
    batch = {name: a[:96] for name, a in rows(64, 32, 100, seed=5).items()}
    _, got = permuted(request.param, batch, seed=5)
    return request.param, batch, got, visible(got)


def kinds(p: Permutation, batch: dict, got: dict) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(predicted, SEP or CLS, the rest), bool [rows, length] each."""
    predicted = np.zeros(batch["tokens"].shape, bool)
    for i, (at, n) in enumerate(zip(got["predicted_at"], got["masked"].sum(1), strict=True)):
        predicted[i, at[:n]] = True
    functional = np.isin(batch["tokens"], p.specials)
    return predicted, functional, ~predicted & ~functional


def test_what_is_not_predicted_sees_its_half_and_before_and_nothing_that_is_predicted(drawn: tuple) -> None:
    """(a): all such tokens of the half, all of the first half from the second, no predicted token, no SEP, no CLS of its own half."""
    p, batch, got, (content, _) = drawn
    predicted, functional, plain = kinds(p, batch, got)
    second = np.arange(64) >= p.reuse
    for i in range(len(content)):
        for half in (~second, second):
            sees = content[i][plain[i] & half]
            assert (sees[:, half] == plain[i][half]).all()
        assert content[i][second][:, ~second].all() and not content[i][~second][:, second].any()
        assert not content[i][plain[i] & second][:, (predicted | functional)[i] & second].any()


def test_a_prediction_never_sees_itself_and_its_content_stream_does(drawn: tuple) -> None:
    """(b) and (c): SEP and CLS see themselves too."""
    *_, got, (content, query) = drawn
    for i in range(len(content)):
        n = got["masked"][i].sum()
        at = got["predicted_at"][i][:n]
        assert n and not query[i][np.arange(n), at].any()
        expected = content[i][at]
        expected[np.arange(n), at] = False
        assert (query[i][:n] == expected).all() and np.diagonal(content[i]).all()


def test_the_order_is_a_total_one_of_the_predictions(drawn: tuple) -> None:
    """(d): of two predictions or specials of a half exactly one sees the other; seeing is transitive; blocks follow each other."""
    p, batch, got, (content, _) = drawn
    predicted, functional, _ = kinds(p, batch, got)
    for i in range(len(content)):
        for start in (0, p.reuse):
            at = start + np.flatnonzero((predicted | functional)[i][start : start + 32])
            sees = content[i][np.ix_(at, at)]
            assert (sees ^ sees.T ^ np.eye(len(at), dtype=bool)).all()
            assert (np.sort(sees.sum(1)) == 1 + np.arange(len(at))).all()
            blocks = (at - start) // p.size
            assert (sees | (blocks[:, None] <= blocks[None, :])).all()


def test_blocks_of_a_half_share_one_shuffle_as_published_or_have_their_own() -> None:
    """Of 64 rows whose every token is predicted: equal orders in both blocks always, or never."""
    batch = {name: a[:64] for name, a in rows(64, 32, 68, seed=8).items()}
    batch["tokens"][:] = 7
    for kind, share in ((PUBLISHED, 1.0), (CLEAN, 0.0)):
        _, got = permuted(dataclasses.replace(kind, predictions=64), batch)
        blocks = got["rank"].reshape(64, 4, 16)
        inside = np.argsort(np.argsort(blocks, axis=2), axis=2)
        assert (got["masked"] == 1).all()
        assert (inside[:, 0] == inside[:, 1]).all(1).mean() == share == (inside[:, 2] == inside[:, 3]).all(1).mean()
        assert not (inside[:, 0] == inside[:, 2]).all(1).any()


@pytest.fixture(scope="module")
def many() -> tuple[np.ndarray, dict]:
    """2,048 rows of words of three tokens on average by the clean rule at the published size: (places predicted [rows, 512], example)."""
    count, p = 2048, dataclasses.replace(CLEAN, reuse=256, size=256, predictions=85)
    starts = (np.random.default_rng(0).random((count, 512)) < 1 / 3).astype(np.int32)
    batch = {"segments": np.ones_like(starts), "word_starts": starts}
    batch |= {"tokens": np.full((count, 512), 7, np.int32), "direction": np.where(np.arange(count) % 2, -1, 1).astype(np.int32)}
    _, got = permuted(p, batch, seed=3)
    predicted = np.zeros((count, 512), bool)
    np.put_along_axis(predicted, got["predicted_at"], True, 1)
    return predicted, got


def test_43_and_42_are_predicted_and_no_place_is_favoured(many: tuple) -> None:
    """The tokens of each eighth of a row are predicted as often as 85 of 512, within 15 %, though words are long."""
    predicted, got = many
    assert (got["masked"] == 1).all() and (predicted[:, :256].sum(1) == 43).all() and (predicted[:, 256:].sum(1) == 42).all()
    eighths = predicted.reshape(2048, 8, 64).mean((0, 2))
    assert np.abs(eighths / (85 / 512) - 1).max() < 0.15, eighths


def test_all_orders_are_equally_likely(many: tuple) -> None:
    """The order of the first five predictions of 2,048 rows: 120 orders, chi-square of 119 degrees below its 99.9 % point, 175."""
    _, got = many
    ranks = np.take_along_axis(got["rank"], got["predicted_at"][:, :5], 1)
    orders = np.argsort(ranks, 1) @ 5 ** np.arange(5)
    counts = np.unique(orders, return_counts=True)[1]
    expected = 2048 / 120
    assert len(counts) == 120 and np.sum((counts - expected) ** 2 / expected) < 175


def test_the_lengths_of_n_grams_follow_one_over_n() -> None:
    """Of 20,000 draws: n by exact fractions of 2^32 is n by the thresholds, and the shares of 1 .. 5 are within 4 sigma."""
    n = np.array([drawn_n(int(b)) for b in np.random.default_rng(0).integers(0, 2**32, 20_000)])
    thresholds = np.array(spans.ngrams(5), np.uint32)
    bits = np.random.default_rng(0).integers(0, 2**32, 20_000)
    assert (1 + (bits[:, None] >= thresholds).sum(1) == n).all()
    for k, share in enumerate(LAW, 1):
        sigma = np.sqrt(float(share * (1 - share)) / len(n))
        assert abs((n == k).mean() - float(share)) < 4 * sigma


@pytest.mark.parametrize("kind, name", [(CLEAN, "permutations.txt"), (PUBLISHED, "permutations_published.txt")], ids=["clean", "published"])
def test_permutations_are_the_golden_ones(tmp_path: Path, kind: Permutation, name: str) -> None:
    """Rows at seed 7, step 3: `place:rank` of each prediction, and a digest of all ranks. Both supported jax lines draw the same bits.

    A change here changes every run that is resumed.
    """
    _, got = permuted(kind, rows(64, 32, 8, seed=11), seed=7, step=3)
    lines = []
    for at, n, rank in zip(got["predicted_at"], got["masked"].sum(1), got["rank"], strict=True):
        digest = int(np.sum(rank.astype(np.int64) * (1 + np.arange(64)) ** 2))
        lines.append(" ".join([*(f"{p}:{rank[p]}" for p in at[:n].tolist()), str(digest)]))
    text = "\n".join(lines) + "\n"
    (tmp_path / name).write_text(text)
    assert text == (GOLDEN / name).read_text(), f"permutations changed: if that is meant, copy {tmp_path / name} to {GOLDEN}"
