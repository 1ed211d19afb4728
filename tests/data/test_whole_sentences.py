import collections
import os

import numpy as np
import pytest

from jaxenc.data.batch import FIELDS
from jaxenc.data.pipeline import Order
from jaxenc.data.sources import DataConfig, open_source
from jaxenc.data.sources.whole_sentences import WholeSentences
from jaxenc.errors import UserError
from tests.data.corpora import CLS, PAD, SEP, corpus, store

KINDS = {"full_sentences": True, "doc_sentences": False}


def slow_rows(documents, width, crosses):
    """What stands between CLS and the last SEP of each row, by a loop over sentences."""
    rows, row = [], []
    for document in documents:
        if not crosses:
            rows, row = [*rows, row], []
        for number, sentence in enumerate(document):
            for at in range(0, len(sentence), width):
                piece = sentence[at : at + width]
                separator = [SEP] * (number == 0 and at == 0 and bool(row))
                if len(row) + len(separator) + len(piece) > width:
                    rows, row, separator = [*rows, row], [], []
                row = row + separator + piece
    return [row for row in [*rows, row] if row]


def check(source, expected):
    assert len(source) == len(expected)
    indices = np.random.default_rng(0).permutation(len(source))
    batch = source.rows(5, indices)
    assert set(batch) == set(source.fields) and all(batch[name].dtype == FIELDS[name].dtype for name in batch)
    names = ("tokens", "types", "segments", "positions", "word_starts")
    for i, tokens, types, segments, positions, words in zip(indices, *(batch[name].tolist() for name in names), strict=True):
        used, padding = len(expected[i]) + 2, source.length - len(expected[i]) - 2
        assert tokens == [CLS, *expected[i], SEP, *[PAD] * padding], i
        assert segments == [1] * used + [0] * padding and positions == [*range(used), *[0] * padding] and not any(types)
        assert words == [1, 1, *(int(t == SEP or t % 3 == 0) for t in expected[i][1:]), 1, *[0] * padding], i
    assert batch["index"].tolist() == indices.tolist() and set(batch["epoch"].tolist()) == {5}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(12))
def test_rows_equal_an_independent_loop(tmp_path, kind, seed):
    rng = np.random.default_rng(seed)
    parts = corpus(rng, *((1, 30, 12, 20), (5, 8, 6, 12), (9, 2, 3, 9), (4, 40, 1, 6))[seed % 4])
    for length in (3, 4, 7, 16, 33, 200, 5000):
        shards = store(parts, tmp_path / "nowhere")
        expected = slow_rows([document for part in parts for document in part], length - 2, KINDS[kind])
        check(WholeSentences(shards, length, KINDS[kind]), expected)


@pytest.mark.parametrize("kind", KINDS)
def test_an_epoch_of_a_built_folder_holds_every_token_once(data, kind):
    order = Order(open_source(DataConfig(str(data), 24, kind), "train", 0, False), 16, seed=1)
    shards, size = order.source.shards, len(order.source)
    vocabulary = shards.manifest.tokenizer
    seen = collections.Counter()
    for step in range(-(-size // 16)):
        batch = order.batch_at(step)
        seen.update(batch["tokens"][batch["epoch"] == 0].ravel().tolist())
    for special in (vocabulary.cls, vocabulary.sep, vocabulary.pad):
        del seen[special]
    assert seen == collections.Counter(shards.tokens.take(np.arange(len(shards.tokens))).tolist())


def test_a_row_of_a_document_ends_with_it_and_others_do_not(tmp_path):
    parts = [[[[10, 11], [12]], [[13]]], [[[14, 15]]]]
    bodies = lambda crosses, length: slow_rows([d for part in parts for d in part], length - 2, crosses)
    assert bodies(True, 10) == [[10, 11, 12, SEP, 13, SEP, 14, 15]] and bodies(False, 10) == [[10, 11, 12], [13], [14, 15]]
    assert bodies(True, 9) == [[10, 11, 12, SEP, 13], [14, 15]]
    for crosses in (True, False):
        for length in (9, 10):
            check(WholeSentences(store(parts, tmp_path), length, crosses), bodies(crosses, length))


def test_the_grid_is_kept_beside_the_shards_and_made_again_when_damaged(tmp_path):
    parts = corpus(np.random.default_rng(1), 3, 9, 5, 10)
    prints = set()
    for kind, crosses in KINDS.items():
        expected = slow_rows([document for part in parts for document in part], 10, crosses)
        first = WholeSentences(store(parts, tmp_path), 12, crosses)
        prints.add(first.fingerprint)
        check(first, expected)
        (path,) = tmp_path.glob(f"{kind}-train-10-*.npy")
        assert isinstance(WholeSentences(store(parts, tmp_path), 12, crosses)._starts, np.memmap)
        path.write_bytes(path.read_bytes()[:100])
        check(WholeSentences(store(parts, tmp_path), 12, crosses), expected)
    prints.add(WholeSentences(store(parts, tmp_path), 13, True).fingerprint)
    assert len(prints) == 3 and len(os.listdir(tmp_path)) == 3


def test_a_row_does_not_depend_on_its_company(tmp_path):
    source = WholeSentences(store(corpus(np.random.default_rng(3), 3, 20, 5, 10), tmp_path), 20, True)
    whole = source.rows(0, np.arange(len(source)))
    for i in range(0, len(source), 7):
        assert all(np.array_equal(array[0], whole[name][i]) for name, array in source.rows(0, np.array([i])).items())


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_two_tokens_hold_no_text(kind):
    with pytest.raises(UserError, match="data.length is 2"):
        open_source(DataConfig("x", 2, kind), "train", 0, False)
