"""Packed rows: which texts share a row, what each place holds, and how little of a row is padding."""

import collections
import os

import numpy as np
import pytest

from jaxenc.data.batch import FIELDS
from jaxenc.data.pipeline import Order
from jaxenc.data.sources import DataConfig, open_source, packed, texts
from jaxenc.data.sources.packed import Packed
from jaxenc.errors import UserError
from tests.data.corpora import CLS, PAD, SEP, corpus, store


def documents_of(parts):
    return [[token for sentence in document for token in sentence] for part in parts for document in part]


def slow_rows(documents, length, window):
    """The texts of each row, by loops: of the rows with the least room that holds a text the one filled last is taken."""
    out = []
    for begin in range(0, len(documents), window):
        texts = [d[at : at + length - 2] for d in documents[begin : begin + window] for at in range(0, len(d), length - 2)]
        rows = []  # [room, when it was filled, numbers of its texts]
        for turn, number in enumerate(sorted(range(len(texts)), key=lambda i: (-len(texts[i]), i))):
            size = len(texts[number]) + 2
            fitting = [row for row in rows if row[0] >= size]
            if not fitting:
                rows.append([length, 0, []])
                fitting = rows[-1:]
            best = min(fitting, key=lambda row: (row[0], -row[1]))
            best[0], best[1] = best[0] - size, turn
            best[2].append(number)
        out += [[texts[i] for i in row] for row in sorted(sorted(numbers) for _, _, numbers in rows)]
    return out


def check(source, expected):
    assert len(source) == len(expected)
    indices = np.random.default_rng(0).permutation(len(source))
    batch = source.rows(5, indices)
    assert set(batch) == set(source.fields) and all(batch[name].dtype == FIELDS[name].dtype for name in batch)
    names = ("tokens", "segments", "positions", "word_starts")
    for i, *row in zip(indices, *(batch[name].tolist() for name in names), strict=True):
        padding = source.length - sum(len(text) + 2 for text in expected[i])
        columns = [(t, k, p, w) for k, text in enumerate(expected[i], 1) for t, k, p, w in framed(text, k)] + [(PAD, 0, 0, 0)] * padding
        assert row == [list(column) for column in zip(*columns, strict=True)], i
    assert not batch["types"].any() and batch["index"].tolist() == indices.tolist() and set(batch["epoch"].tolist()) == {5}


def framed(text, number):
    """(token, segment, position, word start) of each place of one text. A word starts where the id divides by 3."""
    words = [1, 1, *(int(token % 3 == 0) for token in text[1:]), 1]
    return [(token, number, place, word) for place, (token, word) in enumerate(zip([CLS, *text, SEP], words, strict=True))]


@pytest.mark.parametrize("seed", range(20))
def test_rows_equal_an_independent_loop(tmp_path, monkeypatch, seed):
    """The windows of a large store, made small."""
    monkeypatch.setattr(texts, "WINDOW", (7, 1000, 3)[seed % 3])
    parts = corpus(np.random.default_rng(seed), *((1, 30, 12, 20), (5, 8, 6, 12), (9, 2, 3, 9), (4, 40, 1, 6))[seed % 4])
    for length in (3, 4, 7, 16, 33, 200, 5000):
        check(Packed(store(parts, tmp_path / "nowhere"), length), slow_rows(documents_of(parts), length, texts.WINDOW))


def test_a_row_by_hand(tmp_path):
    """Length 9: the parts of 7 and 2 tokens of a long document, and documents of 1, 2 and 1 tokens, in two shards."""
    parts = [[[[10, 11, 12], [13, 14, 15, 16, 17, 18]], [[20]]], [[[30], [31]], [[40]]]]
    batch = Packed(store(parts, tmp_path), 9).rows(0, np.arange(3))
    assert batch["tokens"].tolist() == [
        [CLS, 10, 11, 12, 13, 14, 15, 16, SEP],
        [CLS, 17, 18, SEP, CLS, 30, 31, SEP, PAD],
        [CLS, 20, SEP, CLS, 40, SEP, PAD, PAD, PAD],
    ]
    assert batch["segments"].tolist() == [[1] * 9, [1] * 4 + [2] * 4 + [0], [1] * 3 + [2] * 3 + [0] * 3]
    assert batch["positions"].tolist() == [[*range(9)], [0, 1, 2, 3, 0, 1, 2, 3, 0], [0, 1, 2, 0, 1, 2, 0, 0, 0]]


def test_an_epoch_of_a_built_folder_holds_every_token_once(data):
    order = Order(open_source(DataConfig(str(data), 24, "packed"), "train", 0, False), 16, seed=1)
    shards, seen = order.source.shards, collections.Counter()
    for step in range(len(order)):
        batch = order.batch_at(step)
        seen.update(batch["tokens"][batch["epoch"] == 0].ravel().tolist())
    vocabulary = shards.manifest.tokenizer
    for special in (vocabulary.cls, vocabulary.sep, vocabulary.pad):
        del seen[special]
    assert seen == collections.Counter(shards.tokens.take(np.arange(len(shards.tokens))).tolist())


@pytest.mark.parametrize("median, documents", [(20, 15000), (120, 15000), (800, 15000)])
def test_at_most_two_in_a_thousand_places_are_padding(median, documents):
    """Rows of 512 of documents of log-normal length, as those of web text are. With one document a row, one place in eight or more is
    padding."""
    bounds = np.cumsum([0, *np.maximum(np.random.default_rng(median).lognormal(np.log(median), 1.0, documents).astype(int), 1)])
    _, sizes = texts.cut(bounds, 510)
    rows = packed._best_fit(sizes + 2, 512)
    used = np.bincount(rows, sizes + 2)
    assert len(used) == rows.max() + 1 and used.min() > 0 and used.max() <= 512
    assert 1 - used.mean() / 512 <= 2e-3 and 1 - (sizes + 2).mean() / 512 > 1 / 8


def test_grids_are_kept_beside_the_shards_and_made_again_when_damaged(tmp_path):
    parts = corpus(np.random.default_rng(1), 3, 9, 5, 10)
    expected = slow_rows(documents_of(parts), 12, 1000)
    check(Packed(store(parts, tmp_path), 12), expected)
    kept = sorted(tmp_path.iterdir())
    assert len(kept) == 3 and isinstance(Packed(store(parts, tmp_path), 12)._texts, np.memmap)
    for path in kept:
        path.write_bytes(path.read_bytes()[:100])
        check(Packed(store(parts, tmp_path), 12), expected)
    assert len(os.listdir(tmp_path)) == 3


def test_a_row_does_not_depend_on_its_company(tmp_path):
    source = Packed(store(corpus(np.random.default_rng(3), 3, 20, 5, 10), tmp_path), 20)
    whole = source.rows(0, np.arange(len(source)))
    for i in range(len(source)):
        assert all(np.array_equal(array[0], whole[name][i]) for name, array in source.rows(0, np.array([i])).items())


def test_length_and_kind_are_in_the_fingerprint(data):
    prints = {open_source(DataConfig(str(data), n, rows), "train", 0, False).fingerprint for n in (9, 10) for rows in ("packed", "text")}
    assert len(prints) == 4


def test_a_row_of_two_tokens_holds_no_text():
    with pytest.raises(UserError, match="data.length is 2"):
        open_source(DataConfig("x", 2, "packed"), "train", 0, False)
