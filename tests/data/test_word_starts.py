"""Where words start: from the tokenizer through the shards; rows have their tests in test_sources and test_packed."""

import numpy as np
import pytest
from tokenizers import normalizers, pre_tokenizers

from jaxenc.config import fingerprint
from jaxenc.data import build as building
from jaxenc.data import manifest, sentences, shard_writer
from jaxenc.data.build import build
from jaxenc.data.sources import DataConfig, open_source
from jaxenc.data.store import open_split
from jaxenc.data.tokenizers import bpe, load, wordpiece
from jaxenc.data.tokenizers.normalization import Normalization
from jaxenc.errors import UserError
from tests import older

TEXT = [
    "The quick brown fox jumps over the lazy dog, again and again.",
    "Don't stop -- it's 25,000 of the ÅNGSTRÖM kind!  Two  blanks, (and brackets).",
    "京都に行く。また来る。 The Kantō plain 📷 is wide.",
    "\u200dx Kist lolo muda",
]
TOOLS = {
    "lower": lambda: wordpiece.train([text[:40] for text in TEXT], 110, Normalization(lowercase=True, strip_accents=True)),
    "cased": lambda: wordpiece.train([text[:40] for text in TEXT], 130),
    "bpe": lambda: bpe.train(TEXT * 2, 300),
}


def words_of(kind, text):
    """The words of a text in the pre-tokenizer's own cut, as texts that give the same pieces alone."""
    if kind == "bpe":
        return [text[a:b] for _, (a, b) in pre_tokenizers.ByteLevel(add_prefix_space=False).pre_tokenize_str(text)]
    lower = kind == "lower"
    normal = normalizers.BertNormalizer(False, True, lower, lower).normalize_str(text)
    return [word for word, _ in pre_tokenizers.BertPreTokenizer().pre_tokenize_str(normal)]


def slow_starts(kind, tool, text):
    """(ids, starts) of one text, word by word."""
    ids, starts = [], []
    for word in words_of(kind, text):
        (pieces,) = tool.encode([word])
        ids += pieces
        starts += [1, *[0] * (len(pieces) - 1)][: len(pieces)]
    return ids, starts


@pytest.mark.parametrize("kind", TOOLS)
def test_words_are_those_of_the_pre_tokenizer(kind):
    tool = TOOLS[kind]()
    for text, (ids, numbers) in zip(TEXT, tool.encode_words(TEXT), strict=True):
        expected, starts = slow_starts(kind, tool, text)
        assert ids == expected == tool.encode([text])[0] and 0 in starts and 1 in starts[1:]
        assert [int(n == 0 or numbers[n] != numbers[n - 1]) for n in range(len(numbers))] == starts and numbers == sorted(numbers)


def test_an_added_piece_is_a_word_also_inside_a_word():
    """Of byte-level BPE, which finds it wherever it stands."""
    tool = TOOLS["bpe"]().extended(["lazy"])
    ((ids, numbers),) = tool.encode_words(["xxlazyyy lazy"])
    (at, again) = np.flatnonzero(np.array(ids) == 300)
    assert numbers[at - 1] < numbers[at] < numbers[at + 1] < numbers[again]


@pytest.fixture(scope="module", params=TOOLS)
def built(request, tmp_path_factory):
    """(shards, starts expected of every token in order): shards of few documents, whose counts of tokens are odd."""
    folder, random = tmp_path_factory.mktemp(request.param), np.random.default_rng(0)
    TOOLS[request.param]().save(folder / "tokenizer")
    documents = ["Kist\nlolo\n" + "\n".join(" ".join(random.choice(TEXT, 3)) for _ in range(random.integers(1, 4))) for _ in range(60)]
    (folder / "text.txt").write_text("\n\n".join(documents), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(building, "GROUP_CHARACTERS", 1000)
        patch.setattr(shard_writer, "SHARD_TOKENS", 3000)
        made = [build([str(folder / "text.txt")], folder / "tokenizer", folder / f"out{n}", 0.0, workers=n) for n in (1, 2)]
    assert made[0] == made[1]  # with every file's checksum
    tool, expected = load(folder / "tokenizer"), []
    for document in documents:
        for line in document.split("\n"):
            for sentence in sentences.split(line):
                _, starts = slow_starts(request.param, tool, sentence)
                expected += [1, *starts[1:]] if starts else []
    return open_split(folder / "out1", "train", verify=True), expected


def test_shards_hold_the_starts_of_words(built):
    shards, expected = built
    counts = np.diff(shards.tokens.starts)
    assert len(counts) > 2 and (counts % 8).any() and shards.words.starts.tolist() == shards.tokens.starts.tolist()
    assert shards.words.take(np.arange(len(shards.tokens))).tolist() == expected
    read = []
    for shard in shards.manifest.splits["train"].shards:
        content = (shards.path / f"{shard.name}.words").read_bytes()
        assert len(content) == -(-shard.tokens // 8)
        bits = [content[i // 8] >> (i % 8) & 1 for i in range(8 * len(content))]
        assert not any(bits[shard.tokens :])
        read += bits[: shard.tokens]
    assert read == expected


def test_every_sentence_starts_a_word(built):
    """Also in byte-level BPE, whose word has no blank before it there."""
    shards, _ = built
    assert shards.words.take(shards.sentences.take(np.arange(len(shards.sentences) - 1))).all()


@pytest.mark.parametrize("length", [1, 2, 7, 8, 9, 30, 5000])
def test_windows_equal_the_flags_one_by_one(built, length):
    """Over borders of shards and beyond the end too."""
    shards, expected = built
    starts = np.arange(len(expected))[:: 1 if length < 100 else 97]
    index = np.minimum(starts[:, None] + np.arange(length), len(expected) - 1)
    assert np.array_equal(shards.words.window(starts, length), np.array(expected)[index])


@pytest.fixture
def old(data, tmp_path):
    return older.version_1(data, tmp_path / "old")


@pytest.mark.parametrize("rows", ["text", "full_sentences", "doc_sentences", "pairs"])
def test_data_without_words_opens_and_gives_the_same_rows(data, old, rows):
    new, before = (open_source(DataConfig(str(path), 16, rows), "train", 3, False) for path in (data, old))
    assert set(new.fields) - set(before.fields) == {"word_starts"}
    with_words, without = (source.rows(2, np.arange(len(source))) for source in (new, before))
    assert set(without) == set(before.fields)
    assert all(np.array_equal(with_words[name], array) for name, array in without.items())


def test_data_without_words_is_not_taken_for_what_is_asked_now(corpus, tokenizer, old):
    with pytest.raises(UserError, match="older jaxenc, without the starts of words; choose another --out or delete it"):
        build([str(corpus)], tokenizer, old, 0.2)


def test_the_fingerprint_of_older_data_stays(old):
    """A resume compares it: sha256 of what it was made of when there was no other version."""
    facts = manifest.read(old)
    sums = {name: file.sha256 for name, file in facts.files.items()}
    assert facts.version == 1 and facts.fingerprint == fingerprint([1, facts.tokenizer.fingerprint, sums])
