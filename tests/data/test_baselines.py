import collections
import itertools
import math

import numpy as np
import pytest

from jaxenc.data import baselines
from jaxenc.data.baselines import count_baselines
from jaxenc.data.build import build
from jaxenc.data.store import open_split
from jaxenc.data.tokenizers import word_list
from jaxenc.errors import UserError


def test_the_three_numbers_equal_a_slow_loop(data):
    """Dictionaries instead of sorted arrays, and EM token by token."""
    train, test = (open_split(data, split).tokens for split in ("train", "held_out"))
    train, test = train.take(np.arange(len(train))).tolist(), test.take(np.arange(len(test))).tolist()
    block = min(500, len(train) // 10)
    fit = [w for i, w in enumerate(train) if i // block % 10 == 9]
    counted = [w for i, w in enumerate(train) if i // block % 10 != 9]
    one = collections.Counter(counted)
    left, right = collections.Counter(itertools.pairwise(counted)), collections.Counter((b, a) for a, b in itertools.pairwise(counted))
    uni = lambda w: (one[w] + 0.1) / (len(counted) + 0.1 * 60)
    experts = lambda s: [(uni(w), left[a, w] / one[a], right[b, w] / one[b]) for a, w, b in zip(s, s[1:], s[2:], strict=False)]
    loss = lambda rows, weights: -sum(math.log(sum(x * y for x, y in zip(r, weights, strict=False))) for r in rows) / len(rows)
    found = count_baselines(str(data))
    assert found["unigram"] == pytest.approx(-sum(math.log(uni(w)) for w in test) / len(test), abs=1e-9)
    for name, width in (("left", 2), ("left_right", 3)):
        weights = [1 / width] * width
        for _ in range(baselines.EM_STEPS):
            total = [0.0] * width
            for row in experts(fit):
                share = [x * y for x, y in zip(row, weights, strict=False)]
                total = [t + x / sum(share) for t, x in zip(total, share, strict=True)]
            weights = [t / sum(total) for t in total]
        assert found[name] == pytest.approx(loss(experts(test), weights), abs=1e-9)
    assert found["left_right"] < found["left"] < found["unigram"] < math.log(60)


def test_context_that_decides_everything_leaves_little(tokenizer, tmp_path):
    (tmp_path / "a.txt").write_text("\n\n".join("bandi kilo must " * (3 + i % 5) for i in range(300)))
    build([str(tmp_path / "a.txt")], tokenizer, tmp_path / "out", held_out=0.4)
    found = count_baselines(str(tmp_path / "out"))
    assert found["left"] < 0.5 < 1.5 < found["unigram"] and found["left_right"] <= found["left"] + 1e-6


def test_only_so_many_tokens_are_counted(data, monkeypatch):
    whole = count_baselines(str(data))
    monkeypatch.setattr(baselines, "TRAIN_TOKENS", 300)
    assert count_baselines(str(data))["left"] > whole["left"]


@pytest.fixture(scope="module")
def words_data(corpus, tmp_path_factory):
    folder = tmp_path_factory.mktemp("words")
    word_list.train(corpus.read_text().split("\n"), 20).save(folder / "tool")
    build([str(corpus)], folder / "tool", folder / "data", held_out=0.2)
    return folder / "data"


@pytest.mark.parametrize("direction", ["left", "right"])
def test_sentences_equal_a_slow_loop_with_markers_and_unknown_words_folded(words_data, direction):
    def pairs(split):
        """(what stands beside, target) of the places of each sentence."""
        shards = open_split(words_data, split)
        tokens, borders = (table.take(np.arange(len(table))).tolist() for table in (shards.tokens, shards.sentences))
        assert max(tokens) > 20
        for start, stop in itertools.pairwise(borders):
            read = [0, *(token if token < 20 else 2 for token in tokens[start:stop]), 1]
            yield list(itertools.pairwise(read)) if direction == "left" else [(b, a) for a, b in itertools.pairwise(read)]

    train, test = list(pairs("train")), [pair for sentence in pairs("held_out") for pair in sentence]
    fit = [pair for i, sentence in enumerate(train) for pair in sentence if i % 10 == 9]
    counted = [pair for i, sentence in enumerate(train) for pair in sentence if i % 10 != 9]
    one, two = collections.Counter(target for _, target in counted), collections.Counter(counted)
    beside = collections.Counter(context for context, _ in counted)
    uni = lambda w: (one[w] + 0.1) / (len(counted) + 0.1 * 20)
    experts = lambda rows: [(uni(w), two[a, w] / max(beside[a], 1)) for a, w in rows]
    weights = [0.5, 0.5]
    for _ in range(baselines.EM_STEPS):
        shares = [
            [x * y / sum(map(math.prod, zip(row, weights, strict=True))) for x, y in zip(row, weights, strict=True)] for row in experts(fit)
        ]
        weights = [sum(column) / len(fit) for column in zip(*shares, strict=True)]
    found = baselines.sentence_baselines(str(words_data))
    assert found["unigram"] == pytest.approx(-sum(math.log(uni(w)) for _, w in test) / len(test), abs=1e-9)
    mixed = [sum(map(math.prod, zip(row, weights, strict=True))) for row in experts(test)]
    assert found[direction] == pytest.approx(-sum(map(math.log, mixed)) / len(test), abs=1e-9)


def test_only_so_many_tokens_of_whole_sentences_are_counted(words_data, monkeypatch):
    whole = baselines.sentence_baselines(str(words_data))
    monkeypatch.setattr(baselines, "TRAIN_TOKENS", 300)
    assert baselines.sentence_baselines(str(words_data))["left"] > whole["left"]
    monkeypatch.setattr(baselines, "TRAIN_TOKENS", 1)
    with pytest.raises(UserError, match="more than one sentence"):
        baselines.sentence_baselines(str(words_data))


def test_a_split_without_tokens_is_refused(corpus, tokenizer, tmp_path):
    build([str(corpus)], tokenizer, tmp_path / "out", held_out=0.0)
    with pytest.raises(UserError, match="count baselines need"):
        count_baselines(str(tmp_path / "out"))
