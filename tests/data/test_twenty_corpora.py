"""What the fixtures of one seed show of each kind of rows, on twenty made-up corpora: shards of any size, long and short sentences."""

import dataclasses

import numpy as np
import pytest

from jaxenc.data import random
from jaxenc.data.sources import DataConfig
from jaxenc.data.sources.chunks import chunk_starts
from jaxenc.data.sources.pairs import Pairs
from jaxenc.data.sources.segments import open_segments
from jaxenc.data.sources.sentences import open_sentences
from jaxenc.data.sources.text import Text
from jaxenc.data.store import Shards
from tests.data import test_sentence_rows as sentence_rows
from tests.data import test_streams as stream_rows
from tests.data.corpora import CLS, PAD, SEP, VOCABULARY, corpus, store
from tests.data.test_sources import each, slow_pair
from tests.selection import thinned

# Every fourth seed has the same shape of corpus (`made`).
SEEDS, SHAPES = range(20), range(4)


def made(seed: int, folder, eod: int = -1) -> Shards:
    """One large shard, several, many of a document or two, or long documents of short sentences."""
    shape = ((1, 40, 12, 20), (5, 8, 6, 12), (9, 2, 3, 9), (4, 6, 20, 5))[seed % 4]
    parts = corpus(np.random.default_rng(seed), *shape)
    while sum(len(part) for part in parts) < 4:
        parts += corpus(np.random.default_rng(seed + 100), 1, *shape[1:])
    return store(parts, folder / "nowhere", dataclasses.replace(VOCABULARY, eod=eod))


def flat(table) -> list[int]:
    return table.take(np.arange(len(table))).tolist()


@pytest.mark.parametrize("seed", thinned(SEEDS, *SHAPES))
def test_text_holds_every_token_once(tmp_path, seed):
    shards = made(seed, tmp_path)
    for length in (3, 8, 64):
        source = Text(shards, length)
        batch = source.rows(0, np.arange(len(source)))
        inside = (np.arange(length) > 0) & (np.arange(length) < batch["segments"].sum(1, keepdims=True) - 1)
        assert batch["tokens"][inside].tolist() == flat(shards.tokens)


def assert_pairs(shards: Shards, seed: int, lengths: tuple[int, ...], short: float, evaluation: bool) -> None:
    """All rows of three epochs are those of `slow_pair`."""
    tables = [flat(table) for table in (shards.tokens, shards.sentences, shards.documents)]
    for length in lengths:
        source = Pairs(shards, length, short, seed, evaluation)
        chunks, indices = chunk_starts(shards, length - 3).tolist(), np.arange(len(source))
        for epoch in (0, 1, 2):
            drawn = 0 if evaluation else epoch
            words, coins = (random.draws(seed, drawn, indices, count, name) for count, name in ((6, "pairs"), (40, "trim")))
            for i, row in enumerate(each(source.rows(epoch, indices))):
                a, b, is_random = slow_pair(tables, chunks, length, i, words[i], coins[i], short)
                padding = [PAD] * (length - len(a) - len(b) - 3)
                assert row["tokens"].tolist() == [CLS, *a, SEP, *b, SEP, *padding], (length, epoch, i)
                assert row["is_random"] == is_random and len(a) and len(b)


@pytest.mark.parametrize("seed", thinned(SEEDS, *SHAPES))
def test_pairs_equal_an_independent_loop(tmp_path, seed):
    """B is what the target leaves also where A alone exceeds it and the random place is near the start of the split."""
    assert_pairs(made(seed, tmp_path), seed, (5, 8, 20, 64), 0.1, False)


@pytest.mark.parametrize("short", [0.0, 1.0])
@pytest.mark.parametrize("evaluation", [False, True])
def test_r42_pairs_of_every_length_and_of_an_evaluation_equal_the_loop(tmp_path, evaluation: bool, short: float) -> None:
    """All targets short, or none; an evaluation makes the choices of epoch 0 in every epoch."""
    for seed in range(4):
        assert_pairs(made(seed, tmp_path), seed, (6, 17), short, evaluation)


@pytest.mark.parametrize("documents", [1, 2])
def test_r42_pairs_of_one_or_two_documents_equal_the_loop(tmp_path, documents: int) -> None:
    """Of one document B is drawn from it too; of two always from the other one. One-token sentences and one of hundreds."""
    for seed in range(8):
        rng = np.random.default_rng(seed)
        sentence = lambda rng=rng: rng.integers(4, 99, 300 if rng.random() < 0.2 else 1).tolist()
        parts = [[[sentence() for _ in range(rng.integers(1, 9))]] for _ in range(documents)]
        assert_pairs(store(parts, tmp_path / "nowhere"), seed, (5, 12), 0.3, False)


@pytest.mark.parametrize("eod", [stream_rows.EOD, -1])
@pytest.mark.parametrize("seed", thinned(SEEDS, *SHAPES))
def test_streams_equal_a_loop_over_the_text(tmp_path, seed, eod):
    """Steps at both ends of an epoch, where parts, and the text itself, begin and end."""
    shards = made(seed, tmp_path, eod)
    text = stream_rows.written(shards, eod)
    backward, size = tuple(part[::-1] for part in text), len(text[0])
    streams = open_segments(shards, stream_rows.CONFIG, 4, seed, False, 0)
    for step in (0, 1, len(streams) - 1, len(streams)):
        batch, (epoch, walked) = streams.batch_at(step), divmod(step, len(streams))
        for slot in range(4):
            k, index, forward = slot // 2, walked * 4 + slot, slot % 2 == 0
            begin = (size * k // 2 if forward else size - size * (k + 1) // 2) + walked * stream_rows.REUSE
            words = random.draws(seed, epoch, np.array([index]), 3, "streams")[0]
            row, types, is_random, _ = stream_rows.expected_row(text if forward else backward, begin, words)
            assert batch["tokens"][slot].tolist() == row and batch["types"][slot].tolist() == types, (step, slot)
            assert batch["is_random"][slot] == is_random


@pytest.mark.parametrize("seed", thinned(SEEDS, *SHAPES))
def test_rows_of_sentences_equal_a_loop_over_the_sentences(tmp_path, seed):
    shards = made(seed, tmp_path)
    for length in (1, 7, 20):
        streams = open_sentences(shards, DataConfig("", length, "sentences"), 3, 0, False, 0)
        for step in (0, len(streams) - 1, len(streams)):
            batch = streams.batch_at(step)
            for name, rows in sentence_rows.expected(shards, length, 3, step % len(streams)).items():
                assert batch[name].tolist() == rows, (length, step, name)
