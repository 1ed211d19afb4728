import collections
import itertools

import numpy as np
import pytest

from jaxenc.data import build as building
from jaxenc.data import random, shard_writer
from jaxenc.data.batch import FIELDS, check_fields
from jaxenc.data.build import build
from jaxenc.data.pipeline import Order
from jaxenc.data.sources import DataConfig, open_source
from jaxenc.data.sources.chunks import chunk_starts
from jaxenc.data.store import open_split
from jaxenc.errors import UserError

PAD, CLS, SEP = 0, 2, 3


@pytest.fixture(scope="module")
def shards(corpus, tokenizer, tmp_path_factory):
    """A folder of several shards, so that rows cross their borders, with some sentences of hundreds of tokens."""
    out = tmp_path_factory.mktemp("shards") / "store"
    text = out.with_name("long.txt")
    text.write_text(corpus.read_text() + "".join(f"\n{'ban der kilo ' * n}! Muda.\n{'lost ' * n}.\n" for n in (20, 50, 90)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(building, "GROUP_CHARACTERS", 3000)
        patch.setattr(shard_writer, "SHARD_TOKENS", 4000)
        build([str(text)], tokenizer, out, held_out=0.2)
    return out


def flat(path, split="train"):
    shards = open_split(path, split)
    return [table.take(np.arange(len(table))).tolist() for table in (shards.tokens, shards.sentences, shards.documents)]


def flat_words(path, split="train"):
    words = open_split(path, split).words
    return words.take(np.arange(words.starts[-1])).tolist()


def body(row):
    """Tokens of a row without specials and padding."""
    return [int(t) for t in row["tokens"] if t not in (PAD, CLS, SEP)]


def each(batch):
    return [{name: array[i] for name, array in batch.items()} for i in range(len(batch["tokens"]))]


@pytest.mark.parametrize("rows", ["text", "pairs"])
def test_batches_hold_the_declared_fields(shards, rows):
    source = open_source(DataConfig(str(shards), 16, rows), "train", 0, False)
    batch = source.rows(3, np.array([5, 1, 5]))
    check_fields(batch, source.fields)
    assert set(batch) == set(source.fields) and batch["index"].tolist() == [5, 1, 5] and set(batch["epoch"].tolist()) == {3}
    for name, array in batch.items():
        field = FIELDS[name]
        assert array.dtype == field.dtype and array.shape == (3, *(16 if axis == "length" else axis for axis in field.shape))
    assert all(np.array_equal(array[0], array[2]) for array in batch.values())


@pytest.mark.parametrize("length", [3, 4, 8, 64])
def test_an_epoch_of_text_holds_every_token_once_and_specials_only_at_the_ends(shards, length):
    (tokens, _, _), words = flat(shards), flat_words(shards)
    order = Order(open_source(DataConfig(str(shards), length), "train", 0, False), 32, seed=4)
    size = len(order.source)
    assert size == -(-len(tokens) // (length - 2))
    epochs = [[], []]
    for step in range(-(-2 * size // 32)):
        for row in each(order.batch_at(step)):
            if row["epoch"] < 2:
                epochs[row["epoch"]].append(row)
    assert [r["index"] for r in epochs[0]] != [r["index"] for r in epochs[1]]
    for rows in epochs:
        assert collections.Counter(t for row in rows for t in body(row)) == collections.Counter(tokens)
        for row in rows:
            used = int(row["segments"].sum())
            expected = [CLS, *tokens[row["index"] * (length - 2) : (row["index"] + 1) * (length - 2)], SEP]
            assert row["tokens"].tolist() == expected + [PAD] * (length - used) and used == len(expected)
            assert row["segments"].tolist() == [1] * used + [0] * (length - used)
            assert row["positions"].tolist() == [*range(used), *[0] * (length - used)] and not row["types"].any()
            later = words[row["index"] * (length - 2) + 1 : (row["index"] + 1) * (length - 2)]
            assert row["word_starts"].tolist() == [1, 1, *later, 1, *[0] * (length - used)]


@pytest.mark.parametrize("length, text, rows", [(128, "Ban der.", 1), (128, "n " * 129, 2)])
def test_a_corpus_shorter_than_a_row_is_one_padded_row(tokenizer, tmp_path, length, text, rows):
    (tmp_path / "a.txt").write_text(text)
    build([str(tmp_path / "a.txt")], tokenizer, tmp_path / "out", 0.0)
    source = open_source(DataConfig(str(tmp_path / "out"), length), "train", 0, False)
    assert len(source) == rows
    tokens, _, _ = flat(tmp_path / "out")
    batch = source.rows(0, np.arange(rows))
    assert [t for row in each(batch) for t in body(row)] == tokens
    assert batch["segments"].sum() == len(tokens) + 2 * rows


def test_chunks_are_whole_sentences_of_one_document(shards):
    _, starts, documents = flat(shards)
    for target in (5, 29, 500):
        expected = []
        for first, end in itertools.pairwise(documents):
            size = 0
            for sentence in range(first, end):
                length = starts[sentence + 1] - starts[sentence]
                if sentence == first or size + length > target:
                    expected.append(sentence)
                    size = 0
                size += length
        opened = open_split(shards, "train")
        assert chunk_starts(opened, target).tolist() == [*expected, len(starts) - 1]
        cached = chunk_starts(opened, target)
        assert isinstance(cached, np.memmap) and cached.tolist() == [*expected, len(starts) - 1]


def test_a_damaged_grid_is_made_again(shards):
    opened = open_split(shards, "train")
    expected = chunk_starts(opened, 17).tolist()
    path = next(shards.glob("chunks-train-17-*.npy"))
    path.write_bytes(path.read_bytes()[:100])
    assert chunk_starts(opened, 17).tolist() == expected


def slow_pair(tables, chunks, length, index, words, coins, short=0.1, swaps=False):
    """(A, B, label) of one pair from the same draws, by plain loops over lists; swaps: of the order of sentences."""
    tokens, starts, documents = tables
    full = length - 3
    sentence = lambda s: tokens[starts[s] : starts[s + 1]]
    target = 2 + int(random.below(words[1:2], full - 1)[0]) if random.unit(words[0]) < short else full
    current, size = [], 0
    for s in range(chunks[index], chunks[index + 1]):
        current.append(s)
        size += len(sentence(s))
        if size >= target:
            break
    a_end = 1 if len(current) == 1 else 1 + int(random.below(words[2:3], len(current) - 1)[0])
    a = [t for s in current[:a_end] for t in sentence(s)]
    b = [t for s in current[a_end:] for t in sentence(s)]
    heads = bool(random.unit(words[3]) < 0.5)
    if len(current) == 1 or (heads and not swaps):
        own = next(d for d in range(len(documents) - 1) if documents[d] <= current[0] < documents[d + 1])
        others = [d for d in range(len(documents) - 1) if d != own] or [own]
        document = others[int(random.below(words[4:5], len(others))[0])]
        first, end = documents[document], documents[document + 1]
        b = []
        for s in range(first + int(random.below(words[5:6], end - first)[0]), end):
            b += sentence(s)
            if len(b) >= target - len(a):
                break
    elif heads:
        a, b = b, a
    flipped = [0, 0]
    while len(a) + len(b) > full:
        side = 0 if len(a) > len(b) else 1
        word = int(coins[2 * (flipped[side] // 64) + side])
        del (a, b)[side][0 if word >> (flipped[side] % 64) & 1 else -1]
        flipped[side] += 1
    return a, b, heads or len(current) == 1


@pytest.mark.parametrize("length, swaps", [(5, False), (8, False), (32, False), (200, False), (5, True), (32, True)])
def test_pairs_equal_an_independent_loop(shards, length, swaps):
    source = open_source(DataConfig(str(shards), length, "swapped_pairs" if swaps else "pairs"), "train", 7, False)
    tables, words_only = flat(shards), [flat_words(shards), *flat(shards)[1:]]
    chunks = chunk_starts(open_split(shards, "train"), length - 3).tolist()
    indices = np.arange(len(source))
    words, coins = random.draws(7, 2, indices, 6, "pairs"), random.draws(7, 2, indices, 40, "trim")
    for i, row in enumerate(each(source.rows(2, indices))):
        a, b, label = slow_pair(tables, chunks, length, i, words[i], coins[i], swaps=swaps)
        used = len(a) + len(b) + 3
        assert row["tokens"].tolist() == [CLS, *a, SEP, *b, SEP, *[PAD] * (length - used)], i
        assert row["types"].tolist() == [0] * (len(a) + 2) + [1] * (len(b) + 1) + [0] * (length - used)
        assert row["segments"].tolist() == [1] * used + [0] * (length - used)
        assert row["positions"].tolist() == [*range(used), *[0] * (length - used)]
        assert row["is_random"] == label and len(a) and len(b)
        a, b, _ = slow_pair(words_only, chunks, length, i, words[i], coins[i], swaps=swaps)
        assert row["word_starts"].tolist() == [1, 1, *a[1:], 1, 1, *b[1:], 1, *[0] * (length - used)]


def test_a_pair_does_not_depend_on_its_company(shards):
    source = open_source(DataConfig(str(shards), 24, "pairs"), "train", 7, False)
    whole = source.rows(1, np.arange(len(source)))
    for i in range(0, len(source), 3):
        alone = source.rows(1, np.array([i]))
        assert all(np.array_equal(alone[name][0], whole[name][i]) for name in whole)


def test_an_evaluation_of_pairs_is_the_same_in_every_epoch_and_training_is_not(shards):
    make = lambda seed, evaluation: open_source(DataConfig(str(shards), 32, "pairs"), "held_out", seed, evaluation)
    rows = lambda source, epoch: source.rows(epoch, np.arange(len(source)))["tokens"]
    assert np.array_equal(rows(make(1, True), 0), rows(make(1, True), 5))
    assert not np.array_equal(rows(make(1, False), 0), rows(make(1, False), 5))
    assert not np.array_equal(rows(make(1, True), 0), rows(make(2, True), 0))
    assert make(1, True).rows(0, np.arange(len(make(1, True))))["index"].tolist() == list(range(len(make(1, True))))


@pytest.fixture(scope="module")
def regular(tokenizer, tmp_path_factory):
    """100 documents of 40 sentences of two tokens, a letter and a mark: only the draws differ between rows."""
    folder = tmp_path_factory.mktemp("regular")
    document = "\n".join(f"{letter}!" for letter in "BDKLMSTNRI" * 4)
    (folder / "a.txt").write_text("\n\n".join([document] * 100))
    build([str(folder / "a.txt")], tokenizer, folder / "out", 0.0)
    return folder / "out"


def test_choices_of_pairs_follow_their_distributions_within_four_sigma(regular):
    """Chunks of 8 sentences of 2 tokens at length 19; 40 epochs of 500 rows."""
    source = open_source(DataConfig(str(regular), 19, "pairs"), "train", 0, False)
    starts = open_split(regular, "train").sentences
    assert len(source) == 500 and set(np.diff(starts.take(np.arange(4001))).tolist()) == {2}
    batches = [source.rows(epoch, np.arange(500)) for epoch in range(40)]
    label = np.concatenate([b["is_random"] for b in batches])
    a = np.concatenate([(b["types"] == 0).sum(1) - (b["segments"] == 0).sum(1) - 2 for b in batches]) // 2
    used = np.concatenate([b["segments"].sum(1) for b in batches])
    n = len(label)
    # A target of 2 tokens leaves one sentence, which makes the pair random: 0.1 / 15 of the rows.
    p = 0.5 + 0.5 * 0.1 / 15
    assert abs(label.mean() - p) < 4 * np.sqrt(p * (1 - p) / n)
    # A consecutive pair with target t has min(16, 2 ceil(t / 2)) tokens: fewer than 16 for the 12 targets 3 to 14 of the 15.
    short, rows = (used[label == 0] < 19).mean(), (label == 0).sum()
    p = 0.1 * 12 / 15 / (1 - 0.1 / 15)
    assert abs(short - p) < 4 * np.sqrt(p * (1 - p) / rows)
    counts = np.bincount(a[(label == 0) & (used == 19)], minlength=8)[1:]
    assert len(counts) == 7 and np.abs(counts - counts.sum() / 7).max() < 4 * np.sqrt(counts.sum() / 7)


def test_half_of_the_pairs_in_order_are_swapped_within_three_sigma(regular):
    """Whole chunks of 8 sentences, each its letter: parts of one document that follow each other, in either order."""
    source = open_source(DataConfig(str(regular), 19, "swapped_pairs", short_probability=0.0), "train", 0, False)
    batches = [source.rows(epoch, np.arange(500)) for epoch in range(40)]
    label = np.concatenate([batch["is_random"] for batch in batches])
    assert abs(label.mean() - 0.5) < 3 * np.sqrt(0.25 / len(label))
    whole = open_source(DataConfig(str(regular), 19, "text"), "train", 0, False).rows(0, np.arange(10))
    text = [t for row in each(whole) for t in body(row)]
    for row in each({name: array[:60] for name, array in batches[0].items()}):
        parts = [[int(t) for t in row["tokens"][(row["types"] == side) & (row["segments"] > 0)] if t not in (CLS, SEP)] for side in (0, 1)]
        ordered = parts[1] + parts[0] if row["is_random"] else parts[0] + parts[1]
        assert len(ordered) == 16 and any(text[at : at + 16] == ordered for at in range(0, 80, 16))


def test_random_text_comes_from_every_other_document_alike(regular):
    source = open_source(DataConfig(str(regular), 19, "pairs"), "train", 0, False)
    indices = np.arange(500)
    own, found = indices // 5, []
    for epoch in range(40):
        words = random.draws(0, epoch, indices, 6, "pairs")
        first, _ = source._random_text(own, np.full(500, 8), words)
        found.append(first)
    document, sentence = np.divmod(np.array(found), 40)
    assert not (document == own).any()
    distance = np.bincount(((document - own) % 100).ravel(), minlength=100)[1:]
    assert np.abs(distance - 20_000 / 99).max() < 4.5 * np.sqrt(20_000 / 99)
    places = np.bincount(sentence.ravel(), minlength=40)
    assert np.abs(places - 500).max() < 4.5 * np.sqrt(500)


def test_trimming_takes_front_and_back_alike(regular, tokenizer, tmp_path):
    """One long sentence a document: A and B lose many tokens, each at the front with probability one half."""
    (tmp_path / "a.txt").write_text("\n\n".join("n " * 100 for _ in range(50)))
    build([str(tmp_path / "a.txt")], tokenizer, tmp_path / "out", 0.0)
    source = open_source(DataConfig(str(tmp_path / "out"), 43, "pairs"), "train", 0, False)
    cuts = np.full((2, 50), 80)
    heads = np.stack([source._heads(epoch, np.arange(50), cuts) for epoch in range(40)])
    assert abs(heads.mean() - 40) < 4 * np.sqrt(80 / 4 / heads.size)
    assert abs(heads.var() - 20) < 4 * 20 * np.sqrt(2 / heads.size)
    assert abs(np.corrcoef(heads[:, 0].ravel(), heads[:, 1].ravel())[0, 1]) < 4 / np.sqrt(2000)


def test_one_document_gives_its_own_text_as_random(tokenizer, tmp_path):
    (tmp_path / "a.txt").write_text("Ban der kist.\nLolo muda!")
    build([str(tmp_path / "a.txt")], tokenizer, tmp_path / "out", 0.0)
    source = open_source(DataConfig(str(tmp_path / "out"), 8, "pairs"), "train", 0, False)
    batch = source.rows(0, np.arange(len(source)))
    assert batch["is_random"].all() and (batch["segments"] == 1).all()


@pytest.mark.parametrize(
    "config, said",
    [
        (DataConfig(), "data.path is not set"),
        (DataConfig("x", rows="lines"), "data.rows is 'lines'"),
        (DataConfig("x", length=2), "data.length is 2"),
        (DataConfig("x", length=4, rows="pairs"), "data.length is 4"),
        (DataConfig("/no/such/place"), "made by `jaxenc data`"),
    ],
)
def test_impossible_settings(config, said):
    with pytest.raises(UserError, match=said):
        open_source(config, "train", 0, False)


@pytest.mark.parametrize("rows", ["text", "pairs"])
def test_a_split_without_documents_is_named(corpus, tokenizer, tmp_path, rows):
    build([str(corpus)], tokenizer, tmp_path / "out", 0.0)
    with pytest.raises(UserError, match="the split held_out has no documents"):
        open_source(DataConfig(str(tmp_path / "out"), 32, rows), "held_out", 0, False)


def test_fingerprints_tell_data_and_settings_apart(shards, data):
    prints = [
        open_source(DataConfig(str(path), length, rows, p), split, seed, False).fingerprint
        for path, length, rows, p, split, seed in [
            (shards, 32, "text", 0.1, "train", 0),
            (shards, 33, "text", 0.1, "train", 0),
            (shards, 32, "pairs", 0.1, "train", 0),
            (shards, 32, "pairs", 0.2, "train", 0),
            (shards, 32, "pairs", 0.1, "train", 1),
            (shards, 32, "text", 0.1, "held_out", 0),
        ]
    ]
    assert len(set(prints)) == 6
