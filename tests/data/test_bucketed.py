"""Rows bucketed by length: which text is in which row, and which rows and which length each step has."""

import collections
import dataclasses
import itertools
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest

from jaxenc.data import buckets
from jaxenc.data.batch import FIELDS
from jaxenc.data.buckets import Buckets, BucketsPass
from jaxenc.data.pipeline import open_batches
from jaxenc.data.random import feistel
from jaxenc.data.sources import DataConfig, check, open_source, texts
from jaxenc.data.sources.bucketed import open_buckets
from jaxenc.errors import UserError
from tests.data.corpora import CLS, PAD, SEP, VOCABULARY, store
from tests.data.test_pipeline import Numbers
from tests.data.test_twenty_corpora import SEEDS, flat, made

LENGTHS = ((3,), (3, 4), (8, 16, 64), (5, 100, 400))


def config_of(lengths: tuple[int, ...], path: str = "x") -> DataConfig:
    return DataConfig(path, lengths[-1], "bucketed", lengths=lengths)


def slow_texts(documents: list[list[int]], lengths: tuple[int, ...]) -> list[list[list[int]]]:
    """The texts of each length, by a loop."""
    out: list[list[list[int]]] = [[] for _ in lengths]
    for document in documents:
        for at in range(0, len(document), lengths[-1] - 2):
            text = document[at : at + lengths[-1] - 2]
            out[next(i for i, length in enumerate(lengths) if len(text) + 2 <= length)].append(text)
    return out


@pytest.mark.parametrize("seed", SEEDS)
def test_rows_equal_an_independent_loop(tmp_path, monkeypatch, seed) -> None:
    """Each text is one row of the shortest length that holds it; `index` numbers the rows of all lengths."""
    monkeypatch.setattr(texts, "WINDOW", (7, 1000, 3)[seed % 3])
    shards = made(seed, tmp_path)
    tokens, sentences, documents = (flat(table) for table in (shards.tokens, shards.sentences, shards.documents))
    whole = [tokens[a:b] for a, b in itertools.pairwise(sentences[document] for document in documents)]
    for lengths in LENGTHS:
        number = itertools.count()
        for source, expected in zip(open_buckets(shards, config_of(lengths)), slow_texts(whole, lengths), strict=True):
            assert len(source) == len(expected)
            batch = source.rows(5, np.arange(len(source)))
            assert set(batch) == set(source.fields) and all(batch[name].dtype == FIELDS[name].dtype for name in batch)
            for i, text in enumerate(expected):
                blank = [0] * (source.length - len(text) - 2)
                assert batch["tokens"][i].tolist() == [CLS, *text, SEP, *([PAD] * len(blank))]
                assert batch["segments"][i].tolist() == [1] * (len(text) + 2) + blank
                assert batch["positions"][i].tolist() == [*range(len(text) + 2), *blank]
                assert batch["word_starts"][i].tolist() == [1, 1, *(int(token % 3 == 0) for token in text[1:]), 1, *blank]
                assert (batch["index"][i], batch["epoch"][i], batch["types"][i].any()) == (next(number), 5, False)


def test_rows_by_hand(tmp_path) -> None:
    """Lengths 4 and 7: documents of 3, 12 = 5 + 5 + 2 and 1 tokens, in two shards."""
    parts = [[[[10, 11], [12]], [list(range(20, 32))]], [[[40]]]]
    short, long = (source.rows(0, np.arange(len(source))) for source in open_buckets(store(parts, tmp_path), config_of((4, 7))))
    assert short["tokens"].tolist() == [[CLS, 30, 31, SEP], [CLS, 40, SEP, PAD]]
    assert long["tokens"].tolist() == [[CLS, 10, 11, 12, SEP, PAD, PAD], [CLS, *range(20, 25), SEP], [CLS, *range(25, 30), SEP]]
    assert short["index"].tolist() == [0, 1] and long["index"].tolist() == [2, 3, 4]


def test_a_vocabulary_without_ends_has_rows_of_text_alone(tmp_path) -> None:
    bare = dataclasses.replace(VOCABULARY, cls=-1, sep=-1)
    short, long = open_buckets(store([[[[10, 11, 12]], [[20, 21, 22, 23, 24]]]], tmp_path, bare), config_of((3, 4)))
    assert short.rows(0, np.arange(1))["tokens"].tolist() == [[10, 11, 12]]
    assert long.rows(0, np.arange(1))["tokens"].tolist() == [[20, 21, 22, 23]] and len(short) == 2


def endless(size: int, seed: int, part: int) -> Iterator[tuple[int, int]]:
    """(epoch, row) of the rows of one length, epoch after epoch."""
    for epoch in itertools.count():
        yield from ((epoch, row) for row in feistel(size, seed, epoch, part)(np.arange(size)).tolist())


def slow_steps(sizes: tuple[int, ...], batch: int, seed: int, steps: int) -> list[tuple[int, list[tuple[int, int]]]]:
    """(bucket, (epoch, row) of each slot) of every step, by a loop over parts of epochs that keeps what each bucket has left."""
    parts = max(1, sum(sizes) // (batch * buckets.PART))
    rows = {bucket: endless(size, seed, bucket + 1) for bucket, size in enumerate(sizes) if size}
    left, out = [Fraction()] * len(sizes), []
    for part in itertools.count():
        batches = []
        for bucket, size in enumerate(sizes):
            left[bucket] += Fraction(size, parts)
            while left[bucket] >= batch:
                left[bucket] -= batch
                batches.append((bucket, [next(rows[bucket]) for _ in range(batch)]))
        order = feistel(len(batches), seed, part)(np.arange(len(batches))) if batches else []
        out += [batches[i] for i in order]
        if len(out) >= steps:
            return out[:steps]


@pytest.mark.parametrize("part", [256, 3])
@pytest.mark.parametrize("sizes, batch", [((10, 7, 30), 4), ((5, 0, 1), 8), ((64,), 8), ((3, 200, 50, 9), 16), ((1, 1), 5)])
def test_the_length_and_the_rows_of_each_step_equal_a_loop_over_epochs(sizes, batch, part, monkeypatch) -> None:
    """Also with lengths that have no row, with more rows in a batch than in the data, and with epochs of several parts."""
    monkeypatch.setattr(buckets, "PART", part)
    batches = Buckets(tuple(Numbers(size) for size in sizes), batch, 5)
    steps = 4 * max(len(batches), 3)
    for step, (bucket, expected) in enumerate(slow_steps(sizes, batch, 5, steps)):
        got = batches.batch_at(step)
        assert batches.place(step)[0] == bucket
        assert list(zip(got["epoch"].tolist(), got["index"].tolist(), strict=True)) == expected, step


def test_every_text_comes_once_in_each_epoch(tmp_path) -> None:
    """After so many steps that every length has begun epoch 2, each row of epochs 0 and 1 was read once."""
    run = Buckets(open_buckets(made(1, tmp_path), config_of((8, 16, 64))), 4, 3)
    seen = collections.Counter()
    for step in range(3 * len(run) + 4):
        batch = run.batch_at(step)
        assert batch["tokens"].shape[1] == run.sources[run.place(step)[0]].length
        seen.update(zip(batch["epoch"].tolist(), batch["index"].tolist(), strict=True))
    rows = range(sum(map(len, run.sources)))
    assert {item: count for item, count in seen.items() if item[0] < 2} == dict.fromkeys(itertools.product((0, 1), rows), 1)


def test_a_step_far_ahead_needs_no_history() -> None:
    """In epoch 2^30, by hand: 62.5 and 1.5 batches an epoch, and so 62 and 1 in an even one."""
    run, epoch = Buckets((Numbers(1000), Numbers(24)), 16, 0), 2**30
    found = sorted(run.place(64 * epoch + nth) for nth in range(63))
    assert found == [*((0, 125 * epoch // 2 + nth) for nth in range(62)), (1, 3 * epoch // 2)]


def test_slots_of_any_split_are_those_of_the_whole_batch(tmp_path) -> None:
    """So the process count changes neither the length of a step nor its rows."""
    sources = open_buckets(made(1, tmp_path), config_of((8, 64)))
    for batches, step in itertools.product((Buckets(sources, 8, 3), BucketsPass(sources, 8)), range(len(BucketsPass(sources, 8)))):
        whole = batches.batch_at(step)
        for slots in (slice(0, 4), slice(4, 8), slice(1, None, 2), slice(7, 8)):
            part = batches.batch_at(step, slots)
            assert all(np.array_equal(part[name], whole[name][slots]) for name in whole)


@pytest.mark.parametrize("batch, limit", [(1, 0), (5, 0), (64, 0), (5, 9), (5, 10_000)])
def test_an_evaluation_holds_every_row_once(tmp_path, batch, limit) -> None:
    """Or the first rows of each length, in proportion; in batches of one length, filled with rows without a token."""
    sources = open_buckets(made(1, tmp_path), config_of((8, 16, 64)))
    once, sizes = BucketsPass(sources, batch, limit), list(map(len, sources))
    seen = collections.defaultdict(list)
    for got in map(once.batch_at, range(len(once))):
        assert len(got["index"]) == batch
        seen[got["tokens"].shape[1]] += got["index"][got["segments"].any(1)].tolist()
    share = min(limit or sum(sizes), sum(sizes)) / sum(sizes)
    firsts = np.cumsum([0, *sizes])
    for source, size, first in zip(sources, sizes, firsts, strict=False):
        rows = seen[source.length]
        assert rows == list(range(first, first + len(rows))) and abs(len(rows) - size * share) < 1
    assert sum(map(len, seen.values())) == round(share * sum(sizes))


def test_grids_are_kept_beside_the_shards(tmp_path) -> None:
    """One for each length and its neighbours, so that other lengths have their own."""
    shards = store([[[list(range(4, 4 + n))] for n in (3, 30, 9, 1)]], tmp_path)
    tokens = lambda: [source.rows(0, np.arange(len(source)))["tokens"].tolist() for source in open_buckets(shards, config_of((8, 16)))]
    first, kept = tokens(), sorted(tmp_path.iterdir())
    assert isinstance(open_buckets(shards, config_of((8, 16)))[0]._texts, np.memmap) and tokens() == first
    for path in kept:
        path.write_bytes(path.read_bytes()[:100])
    assert tokens() == first and sorted(tmp_path.iterdir()) == kept
    sizes = lambda *lengths: [len(source) for source in open_buckets(shards, config_of(lengths))]
    assert sizes(8, 32) == [2, 2] and sizes(8, 16) == [3, 3] and sizes(16, 32) == [3, 1]


def test_a_built_folder_gives_batches_of_several_lengths(data) -> None:
    config = config_of((16, 32, 128), str(data))
    batches, held_out = (open_batches(config, split, 8, 3, 0) for split in ("train", "held_out"))
    assert {batches.batch_at(step)["tokens"].shape for step in range(5 * len(batches))} == {(8, length) for length in config.lengths}
    tokens = sum(int((batch["segments"].sum(1) - 2).clip(0).sum()) for batch in map(held_out.batch_at, range(len(held_out))))
    assert tokens == len(open_source(DataConfig(str(data)), "held_out", 0, True).shards.tokens)
    several = (open_buckets(batches.sources[0].shards, config_of(lengths)) for lengths in ((16, 32), (16, 128), (32, 128)))
    assert len({source.fingerprint for sources in several for source in sources}) == 6


@pytest.mark.parametrize(
    "given, said",
    [
        ({"lengths": (8, 8, 16)}, "data.lengths: 8,8,16 does not rise from 3 or more; give each length once, the shortest first"),
        ({"lengths": (16, 8)}, "data.lengths: 16,8 does not rise"),
        ({"lengths": (2, 16)}, "data.lengths: 2,16 does not rise from 3"),
        ({"lengths": ()}, "data.lengths: is not set; set it to the lengths of bucketed rows, rising"),
        ({"lengths": (8, 12)}, "data.lengths: lacks 16, the length of the longest rows"),
        ({"lengths": (8, 16), "mixture": ("a", "b"), "path": ""}, "data.mixture: data.rows=bucketed reads one folder"),
    ],
)
def test_invalid_settings_are_one_line(given, said) -> None:
    with pytest.raises(UserError) as error:
        check(DataConfig(**{"path": "x", "length": 16, "rows": "bucketed", **given}), 8)
    assert str(error.value).startswith(said) and "\n" not in str(error.value)
