"""Streams against slow loops over the whole text as a list, after zihangdai/xlnet:data_utils.py (_split_a_and_b)."""

import dataclasses
import itertools
import math

import numpy as np
import pytest

from jaxenc.data import build as building
from jaxenc.data import random, shard_writer
from jaxenc.data.batch import FIELDS, check_fields
from jaxenc.data.build import build
from jaxenc.data.pipeline import open_batches
from jaxenc.data.sources import DataConfig
from jaxenc.data.sources.line import Line, Reversed
from jaxenc.data.sources.segments import open_segments
from jaxenc.data.sources.streams import HELD_OUT
from jaxenc.data.store import open_split
from jaxenc.errors import UserError

CLS, SEP, EOD = 2, 3, 59
LENGTH, REUSE, BATCH, SEED = 32, 14, 6, 11
CONFIG = DataConfig("", LENGTH, "streams", reuse=REUSE)
ROOM = LENGTH - REUSE - 3


@pytest.fixture(scope="module")
def folder(corpus, tokenizer, tmp_path_factory):
    """Several shards, and sentences that are longer than a row."""
    out = tmp_path_factory.mktemp("streams") / "store"
    text = out.with_name("long.txt")
    text.write_text(corpus.read_text() + "".join(f"\n\n{'ban der kilo ' * n}! Muda.\n{'lost ' * n}.\n" for n in (5, 20, 50)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(building, "GROUP_CHARACTERS", 3000)
        patch.setattr(shard_writer, "SHARD_TOKENS", 4000)
        build([str(text)], tokenizer, out, held_out=0.2)
    return out


def opened(folder, split="train", eod=EOD):
    """The shards as if their vocabulary had an <eod>."""
    shards = open_split(folder, split)
    return dataclasses.replace(shards, manifest=dataclasses.replace(shards.manifest, tokenizer=vocabulary(shards, eod)))


def vocabulary(shards, eod):
    return dataclasses.replace(shards.manifest.tokenizer, eod=eod)


def written(shards, eod=EOD):
    """(tokens, word starts, number of the sentence of each token) of the whole text, <eod> a sentence of its own."""
    tables = (shards.tokens, shards.sentences, shards.documents)
    tokens, sentences, documents = (table.take(np.arange(len(table))).tolist() for table in tables)
    flags = shards.words.take(np.arange(len(tokens))).tolist()
    out, words, owner, number = [], [], [], 0
    for first, end in itertools.pairwise(documents):
        for start, stop in zip(sentences[first:end], sentences[first + 1 : end + 1], strict=True):
            out += tokens[start:stop]
            words += flags[start:stop]
            owner += [number] * (stop - start)
            number += 1
        if eod >= 0:
            out.append(eod)
            words.append(1)
            owner.append(number)
            number += 1
    return out, words, owner


def rows_of(streams, steps):
    return [streams.batch_at(step) for step in steps]


@pytest.fixture(scope="module")
def train(folder):
    return open_segments(opened(folder), CONFIG, BATCH, SEED, False, 0)


def expected_row(text, begin, words):
    """One row of `text` = (tokens, words, sentence numbers) in reading order, from place `begin`, with the row's three draws."""
    size = len(text[0])
    tokens, _, owner = (lambda i, part=part: part[i % size] for part in text)
    border = lambda i: owner(i - 1) != owner(i) or i % size == 0
    at = begin + REUSE
    end, cuts = at + 1, []
    while not (border(end) and end - at >= ROOM):
        cuts += [end] * border(end)
        end += 1
    is_random = not cuts or random.unit(words[:1])[0] < 0.5
    a_end = cuts[int(random.below(words[1:2], len(cuts))[0])] if cuts else end
    b, b_end = a_end, end
    if is_random:
        b = int(random.below(words[2:], size)[0])
        b_end = b + max(1, ROOM - (a_end - at))
        while not border(b):
            b -= 1
        while not border(b_end):
            b_end += 1
    a = at
    while a_end - a + b_end - b > ROOM:
        if a_end - a > b_end - b:
            a_end -= 1
        else:
            b_end -= 1
    row = [tokens(i) for i in range(begin, a_end)] + [SEP] + [tokens(i) for i in range(b, b_end)] + [SEP, CLS]
    return row, [0] * (a_end - begin + 1) + [1] * (b_end - b + 1) + [2], is_random, (begin, a_end, b, b_end)


def expected_words(text, spans, forward):
    """Word starts of a row, in whose runs the first token as it is written counts as one."""
    begin, a_end, b, b_end = spans
    runs = []
    for start, end in ((begin, begin + REUSE), (begin + REUSE, a_end), (b, b_end)):
        run = [text[1][i % len(text[0])] for i in range(start, end)]
        run[0 if forward else -1] = 1
        runs.append(run)
    return [*runs[0], *runs[1], 1, *runs[2], 1, 1]


@pytest.mark.parametrize("eod", [EOD, -1])
@pytest.mark.parametrize("split, evaluation", [("train", False), ("held_out", True)])
def test_every_row_is_what_a_loop_over_the_text_makes(folder, eod, split, evaluation):
    shards = opened(folder, split, eod)
    text = written(shards, eod)
    count = min(HELD_OUT, 2 * (len(text[0]) // (LENGTH - 3))) if evaluation else BATCH
    streams = open_segments(shards, CONFIG, count, SEED, evaluation, 0)
    size, parts = len(text[0]), count // 2
    backward = tuple(part[::-1] for part in text)
    steps = math.ceil(max(size * (k + 1) // parts - size * k // parts for k in range(parts)) / REUSE)
    assert len(streams) == steps
    for step in range(steps) if evaluation else (0, 1, 2, steps - 1, steps, 2 * steps + 3):
        batch = streams.batch_at(step)
        check_fields(batch, streams.fields)
        assert all(batch[name].dtype == FIELDS[name].dtype for name in batch)
        epoch, walked = divmod(step, steps)
        for slot in range(count):
            k, index, forward = slot // 2, walked * count + slot, slot % 2 == 0
            begin = (size * k // parts if forward else size - size * (k + 1) // parts) + walked * REUSE
            words = random.draws(SEED, epoch, np.array([index]), 3, "streams")[0]
            row, types, is_random, spans = expected_row(text if forward else backward, begin, words)
            assert batch["tokens"][slot].tolist() == row and batch["types"][slot].tolist() == types
            assert batch["word_starts"][slot].tolist() == expected_words(text if forward else backward, spans, forward)
            facts = [int(batch[name][slot]) for name in ("is_random", "direction", "fresh", "index", "epoch")]
            assert facts == [is_random, 1 if forward else -1, walked == 0, index, epoch]
            assert (batch["segments"][slot] == 1).all() and batch["positions"][slot].tolist() == list(range(LENGTH))


def test_a_slot_goes_on_where_it_stood_and_an_epoch_shows_every_token_both_ways(folder, train):
    tokens = written(opened(folder))[0]
    size, parts = len(tokens), BATCH // 2
    for epoch in (0, 1):
        batches = rows_of(train, range(epoch * len(train), (epoch + 1) * len(train)))
        assert [bool(b["fresh"].any()) for b in batches] == [True] + [False] * (len(train) - 1) and batches[0]["fresh"].all()
        for slot in range(BATCH):
            walked = np.concatenate([b["tokens"][slot, :REUSE] for b in batches]).tolist()
            part = tokens[size * (slot // 2) // parts : size * (slot // 2 + 1) // parts]
            assert walked[: len(part)] == (part if slot % 2 == 0 else part[::-1]) and len(walked) < len(part) + REUSE + 1
            for before, behind in itertools.pairwise(batches):
                a = int(np.argmax(before["types"][slot] == 1)) - 1 - REUSE
                both = min(a, REUSE)
                assert before["tokens"][slot, REUSE : REUSE + both].tolist() == behind["tokens"][slot, :both].tolist()


def test_rows_of_any_slots_are_those_of_the_whole_batch_and_need_no_history(folder, train):
    for step in (7, 0, len(train) + 2):
        whole = train.batch_at(step)
        again = open_segments(opened(folder), CONFIG, BATCH, SEED, False, 0)
        for slots in (slice(0, 3), slice(3, 6), slice(1, None, 2), slice(5, 6), slice(None)):
            part = again.batch_at(step, slots)
            assert all(np.array_equal(part[name], whole[name][slots]) for name in whole)
    with pytest.raises(ValueError, match="no slot"):
        train.batch_at(0, slice(6, 9))


def test_b_is_another_place_half_of_the_time_and_every_epoch_draws_again(folder):
    """Rows whose A has no border inside its room are always random: they are told apart by the text. Five standard deviations."""
    shards = opened(folder)
    streams, text = open_segments(shards, CONFIG, BATCH, SEED, False, 0), written(shards)
    size = len(text[0])
    found = []
    for step in range(4 * len(streams)):
        batch = streams.batch_at(step)
        walked = step % len(streams)
        for slot in range(0, BATCH, 2):
            at = size * (slot // 2) // (BATCH // 2) + walked * REUSE + REUSE
            if any(text[2][(i - 1) % size] != text[2][i % size] for i in range(at + 1, at + ROOM)):
                found.append(int(batch["is_random"][slot]))
    assert len(found) > 300 and abs(sum(found) - len(found) / 2) < 5 * math.sqrt(len(found)) / 2
    first, later = streams.batch_at(0), streams.batch_at(len(streams))
    assert np.array_equal(first["tokens"][:, :REUSE], later["tokens"][:, :REUSE]) and not np.array_equal(first["tokens"], later["tokens"])


@pytest.mark.parametrize("limit", [0, 20, *(pytest.param(limit, marks=pytest.mark.full) for limit in (100, 10**6))])
def test_an_evaluation_shows_the_same_rows_in_the_same_order_whatever_the_batch(folder, limit):
    """Once each, one stream after the other within a slot, padding else; a batch of 1, of some, of all and of more than there are."""
    line = Line(opened(folder, "held_out"))
    used = min(HELD_OUT, 2 * (len(line) // (LENGTH - 3)))
    total = used * math.ceil(math.ceil(len(line) / (used // 2)) / REUSE)
    seen = {}
    for batch in (1, 6, 7, used, used + 5):
        streams = open_segments(line.shards, CONFIG, batch, SEED, True, limit)
        rows, behind = {}, {}
        for step, found in enumerate(rows_of(streams, range(len(streams)))):
            assert len(found["tokens"]) == batch and np.array_equal(
                streams.batch_at(step, slice(batch - 1, None))["tokens"], found["tokens"][-1:]
            )
            for slot in range(batch):
                row = {name: array[slot] for name, array in found.items()}
                if not row["segments"].any():
                    assert not any(array.any() for array in row.values())
                    continue
                number = int(row["index"])
                assert (
                    number not in rows and (row["fresh"] == 1 or behind[slot] == number - used) and (row["fresh"] == 1) == (number < used)
                )
                rows[number], behind[slot] = row, number
        assert set(rows) == set(range(min(limit or total, total)))
        seen = seen or rows
        assert all(np.array_equal(rows[number][name], seen[number][name]) for number in seen for name in seen[number])


def test_borders_of_a_line_and_of_its_reverse(folder):
    """Over three rounds of the text, against the list of all places where the sentence changes."""
    shards = opened(folder)
    owner = written(shards)[2]
    size = len(owner)
    borders = [i for i in range(-size, 2 * size) if i % size == 0 or owner[i % size] != owner[i % size - 1]]
    places = np.random.default_rng(0).integers(-size + 200, 2 * size - 200, 200)
    for line, known in ((Line(shards), borders), (Reversed(Line(shards)), sorted(-b for b in borders))):
        inside = [int(p) for p in places if known[0] <= p <= known[-1]]
        behind = [min(b for b in known if b >= p) for p in inside]
        before = [max(b for b in known if b <= p) for p in inside]
        at = np.array(inside)
        assert line.place(line.border(at)).tolist() == behind and line.place(line.border_before(at)).tolist() == before


def test_the_kind_of_rows_decides_alone(data):
    """What `cli` and `train` call: a folder without <eod>, one place for all kinds."""
    streams = open_batches(DataConfig(str(data), 16, "streams", reuse=6), "train", 4, 0, 5)
    assert streams.batch_at(0)["direction"].tolist() == [1, -1, 1, -1] and len(streams) > 5
    held_out = open_batches(DataConfig(str(data), 16, "streams", reuse=6), "held_out", 4, 0, 5)
    assert len(held_out) > 1 and held_out.batch_at(0)["direction"].tolist() == [1, -1, 1, -1]
    assert len(open_batches(DataConfig(str(data), 16), "held_out", 4, 0, 5)) == 2


@pytest.mark.parametrize(
    "length, reuse, batch, evaluation, said",
    [
        (32, 0, 6, False, "data.reuse is 0: "),
        (32, 32, 6, False, "data.reuse is 32 and data.length is 32; make data.length 37 or more"),
        (32, 28, 6, False, "data.reuse is 28 and data.length is 32; make data.length 33 or more"),
        (32, 14, 5, False, "train.batch is 5: .* make it even"),
        (32, 14, 4096, False, r"the split train has [\d,]+ tokens, enough for \d+ streams with rows of 32, and the batch is 4096"),
        (1 << 16, 14, 2, True, "the split held_out has .*, enough for 0 streams"),
    ],
)
def test_what_does_not_fit_is_one_line(folder, length, reuse, batch, evaluation, said):
    config = DataConfig(str(folder), length, "streams", reuse=reuse)
    with pytest.raises(UserError, match=said) as raised:
        open_batches(config, "held_out" if evaluation else "train", batch, 0, 0)
    assert "\n" not in str(raised.value)


def test_a_negative_reuse_is_refused():
    with pytest.raises(UserError, match="data.reuse is -1"):
        DataConfig(reuse=-1)
