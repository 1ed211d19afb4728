"""Rows of sentences against a loop that writes both directions out as lists, after allenai/bilm-tf:bilm/data.py."""

import itertools
import math

import numpy as np
import pytest

from jaxenc.data import build as building
from jaxenc.data import characters, shard_writer
from jaxenc.data.batch import FIELDS, check_fields
from jaxenc.data.build import build
from jaxenc.data.pipeline import open_batches
from jaxenc.data.sources import DataConfig
from jaxenc.data.sources.streams import HELD_OUT
from jaxenc.data.store import open_split
from jaxenc.data.tokenizers import bpe, load, word_list
from jaxenc.data.tokenizers.sentencepiece import unigram
from jaxenc.errors import UserError

BATCH, SIZE = 5, 30
WAYS = ("", "reverse_")
TRAINERS = {
    "bpe": lambda lines: bpe.train(lines, 300),
    "unigram": lambda lines: unigram.train(lines, 80),
    "characters": lambda lines: word_list.train(lines, SIZE),
}


@pytest.fixture(scope="module")
def folders(corpus, tokenizer, tmp_path_factory):
    """{kind of tokenizer: data}: several shards; sentences of one word, of many rows, and some that are no token at all."""
    place = tmp_path_factory.mktemp("sentences")
    text = place / "text.txt"
    odd = "\n\n".join(f"Ban.\n\u200b\n{'kilo ' * n}Muda! Sast?\nDer\n. Lost." for n in (1, 40, 90, 200, 3, 4))
    text.write_text(corpus.read_text() + "\n\n" + odd + "\n")
    out = {"wordpiece": tokenizer}
    for kind, train in TRAINERS.items():
        train(text.read_text().split("\n")).save(place / f"{kind}-tokenizer")
        out[kind] = place / f"{kind}-tokenizer"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(building, "GROUP_CHARACTERS", 3000)
        patch.setattr(shard_writer, "SHARD_TOKENS", 2000)
        for kind, tool in out.items():
            build([str(text)], tool, place / kind, held_out=0.2)
    return {kind: place / kind for kind in out}


def written(shards):
    """[(read, predicted)] of each direction, sentence by sentence, in reading order; predicted words as they are."""
    vocabulary = shards.manifest.tokenizer
    tokens, borders = (table.take(np.arange(len(table))).tolist() for table in (shards.tokens, shards.sentences))
    begin, end = vocabulary.cls, vocabulary.sep
    forward, backward = [], []
    for start, stop in itertools.pairwise(borders):
        sentence = tokens[start:stop]
        forward += zip([begin, *sentence], [*sentence, end], strict=True)
        backward.append(list(zip([end, *reversed(sentence)], [*reversed(sentence), begin], strict=True)))
    return forward, [pair for sentence in reversed(backward) for pair in sentence]


def expected(shards, length, parts, step):
    """{field: rows} of one step of an epoch."""
    vocabulary, both = shards.manifest.tokenizer, written(shards)
    size = len(both[0])
    rows = {name: [] for name in ("segments", *(f"{way}{name}" for way in WAYS for name in ("tokens", "targets")))}
    for k in range(parts):
        bounds = size * k // parts, size * (k + 1) // parts
        for way, text, (start, stop) in zip(WAYS, both, (bounds, (size - bounds[1], size - bounds[0])), strict=True):
            held = text[start:stop][step * length : (step + 1) * length]
            padding = length - len(held)
            rows[f"{way}tokens"].append([read for read, _ in held] + [vocabulary.pad] * padding)
            fold = lambda index: index if index < vocabulary.size else vocabulary.unk
            rows[f"{way}targets"].append([fold(predicted) for _, predicted in held] + [0] * padding)
        rows["segments"].append([1] * len(held) + [0] * padding)
    return rows


@pytest.mark.parametrize("kind", ["wordpiece", *TRAINERS])
@pytest.mark.parametrize("length, evaluation", [(1, False), (7, False), (20, False), (20, True)])
def test_every_row_is_what_a_loop_over_the_sentences_makes(folders, kind, length, evaluation):
    split = "held_out" if evaluation else "train"
    shards = open_split(folders[kind], split)
    assert evaluation or len(shards.tokens.parts) > 1
    size = len(shards.tokens) + len(shards.sentences) - 1
    parts = min(HELD_OUT, size // length) if evaluation else BATCH
    streams = open_batches(DataConfig(str(folders[kind]), length, "sentences"), split, parts, 3, 0)
    steps = math.ceil(math.ceil(size / parts) / length)
    assert len(streams) == steps
    for step in range(steps) if evaluation else {0, 1, 2, steps // 2, steps - 1, steps, 2 * steps + 1}:
        batch, (epoch, walked) = streams.batch_at(step), divmod(step, steps)
        check_fields(batch, streams.fields)
        assert set(batch) == set(streams.fields) and all(batch[name].dtype == FIELDS[name].dtype for name in batch)
        for name, rows in expected(shards, length, parts, walked).items():
            assert batch[name].tolist() == rows, name
        assert batch["index"].tolist() == [walked * parts + k for k in range(parts)]
        assert (batch["epoch"] == epoch).all() and (batch["fresh"] == (walked == 0)).all()
        assert ("characters" in batch) == (kind == "characters")


def test_characters_are_those_of_what_is_read_and_zero_on_padding(folders):
    shards = open_split(folders["characters"], "train")
    table = {"<S>": [258, 256, 259] + [260] * 47, "</S>": [258, 257, 259] + [260] * 47}
    tool = load(folders["characters"] / "tokenizer")
    streams = open_batches(DataConfig(str(folders["characters"]), 20, "sentences"), "train", BATCH, 0, 0)
    beyond = 0
    for step in (0, len(streams) - 1):
        batch = streams.batch_at(step)
        for way, place in itertools.product(WAYS, np.ndindex(BATCH, 20)):
            found, word = batch[f"{way}characters"][place].tolist(), tool.token(int(batch[f"{way}tokens"][place]))
            if batch["segments"][place]:
                assert found == table.get(word, characters.of_words([word])[0].tolist())
            else:
                assert not any(found)
            beyond += batch[f"{way}tokens"][place] >= SIZE
    assert beyond and shards.manifest.tokenizer.size == SIZE
    assert not streams.batch_at(len(streams) - 1)["segments"].all(), "the last row of some part is shorter"


def test_an_epoch_holds_every_place_once_and_slots_go_on(folders):
    shards = open_split(folders["characters"], "train")
    streams = open_batches(DataConfig(str(folders["characters"]), 7, "sentences"), "train", BATCH, 0, 0)
    forward, backward = written(shards)
    batches = [streams.batch_at(step) for step in range(len(streams))]
    for way, text, order in (("", forward, range(BATCH)), ("reverse_", backward, reversed(range(BATCH)))):
        read = [b[f"{way}tokens"][slot][b["segments"][slot] == 1] for slot in order for b in batches]
        assert np.concatenate(read).tolist() == [read for read, _ in text]


def test_rows_of_any_slots_need_no_history(folders):
    config = DataConfig(str(folders["characters"]), 20, "sentences")
    for step in (3, 0, 200):
        whole = open_batches(config, "train", BATCH, 0, 0).batch_at(step)
        for slots in (slice(0, 2), slice(2, 5), slice(4, 5)):
            part = open_batches(config, "train", BATCH, 9, 0).batch_at(step, slots)
            assert all(np.array_equal(part[name], whole[name][slots]) for name in whole)


@pytest.mark.parametrize("limit", [0, 10, 100])
def test_an_evaluation_is_the_same_whatever_the_batch(folders, limit):
    config, seen = DataConfig(str(folders["characters"]), 20, "sentences"), {}
    for batch in (1, 6, HELD_OUT, HELD_OUT + 3):
        streams, rows = open_batches(config, "held_out", batch, 0, limit), {}
        for step in range(len(streams)):
            found = streams.batch_at(step)
            for slot in np.flatnonzero(found["segments"].any(1)):
                rows[int(found["index"][slot])] = {name: array[slot] for name, array in found.items()}
        assert not limit or set(rows) <= set(range(limit))
        seen = seen or rows
        assert set(rows) == set(seen) and all(np.array_equal(rows[n][name], seen[n][name]) for n in seen for name in seen[n])
    assert limit or sum(row["segments"].sum() for row in seen.values()) == len(written(open_split(folders["characters"], "held_out"))[0])


def test_a_text_of_two_words_and_one_that_is_too_short_for_the_slots(tmp_path):
    (tmp_path / "a.txt").write_text("b\n\na\n")
    word_list.train(["b", "a"], 9).save(tmp_path / "tool")
    build([str(tmp_path / "a.txt")], tmp_path / "tool", tmp_path / "data", held_out=0.0)
    rows = lambda length, batch: open_batches(DataConfig(str(tmp_path / "data"), length, "sentences"), "train", batch, 0, 0).batch_at(0)
    batch = rows(4, 1)
    assert batch["tokens"].tolist() == [[0, 4, 0, 3]] and batch["targets"].tolist() == [[4, 1, 3, 1]]
    assert batch["reverse_tokens"].tolist() == [[1, 3, 1, 4]] and batch["reverse_targets"].tolist() == [[3, 0, 4, 0]]
    assert rows(1, 4)["tokens"].tolist() == [[0], [4], [0], [3]]
    with pytest.raises(UserError, match=r"has 4 tokens with its markers, which are 4 rows of 1, and the batch is 5; lower") as raised:
        rows(1, 5)
    assert "\n" not in str(raised.value)
    with pytest.raises(UserError, match=r"data\.length is 0"):
        rows(0, 1)
