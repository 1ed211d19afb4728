"""Lists of words: their order, what is predicted and what only read, and the files of bilm-tf."""

import collections
import json
from pathlib import Path

import numpy as np
import pytest

from jaxenc.data import characters
from jaxenc.data.build import build
from jaxenc.data.store import open_split
from jaxenc.data.tokenizers import load, word_list
from jaxenc.data.tokenizers.normalization import Normalization
from jaxenc.errors import Unsupported, UserError

TEXT = ["b a b <S> é", "a b C C, don't!", "über b </S> c"]
SPECIALS = ["<S>", "</S>", "<UNK>"]
READINGS = ((Normalization(), False), (Normalization(), True), (Normalization(lowercase=True), False))


@pytest.mark.parametrize("lowercase", [False, True])
def test_words_stand_by_falling_frequency_and_equal_ones_by_the_word(lowercase):
    """With the markers' letters as words of their own: no text gives a marker."""
    pieces = "b a b < S > é a b C C , don ' t ! über b < / S > c".split()
    counts = collections.Counter(word.lower() if lowercase else word for word in pieces)
    expected = sorted(counts, key=lambda word: (-counts[word], word.encode()))
    tool = word_list.train(TEXT, 6, Normalization(lowercase=lowercase))
    assert [tool.token(i) for i in range(tool.vocabulary.ids)] == SPECIALS + expected
    facts = tool.vocabulary
    assert (facts.size, facts.words, facts.cls, facts.sep, facts.unk, facts.mask) == (6, 3 + len(expected), 0, 1, 2, -1)
    assert facts.reserved == (0, 1, 2) and word_list.train(TEXT, 999).vocabulary.size == word_list.train(TEXT, 999).vocabulary.words
    assert tool.split(TEXT[1]) == ("a b c c , don ' t !" if lowercase else "a b C C , don ' t !").split()


def test_text_that_is_tokenised_stays_as_it_is_and_gives_no_marker():
    tool = word_list.train(TEXT, 6, pretokenized=True)
    assert [tool.token(i) for i in range(3, 5)] == ["b", "a"] and tool.split(TEXT[1]) == TEXT[1].split()
    assert tool.encode(["don't! <S> nothing </S> <UNK> b"]) == [[tool.encode(["don't!"])[0][0], 2, 2, 2, 2, 3]]
    assert tool.encode_framed("<S> b zzz")[0] == [0, 0, 3, 2, 1] and tool.encode_words(["b b"]) == [([3, 3], [0, 1])]
    assert tool.sentences(" One . Two . ") == [" One . Two . "] and tool.sentences(" ") == []
    assert word_list.train(TEXT, 6).sentences("One. Two.") == ["One.", " Two."]


def test_a_list_ends_where_memory_does(monkeypatch):
    monkeypatch.setattr(word_list, "MOST_WORDS", 4)
    tool = word_list.train(TEXT, 99)
    assert tool.vocabulary.words == 3 + 4 and tool.encode(["über"]) == [[2]]


@pytest.mark.parametrize("lowercase, pretokenized", [(False, False), (True, False), (False, True), (True, True)])
def test_a_folder_opens_as_what_was_saved(tmp_path, lowercase, pretokenized):
    made = word_list.train(TEXT, 6, Normalization(lowercase=lowercase), pretokenized)
    made.save(tmp_path, longest=20)
    opened = load(tmp_path)
    assert opened.vocabulary == made.vocabulary and opened.encode(TEXT) == made.encode(TEXT)
    assert opened.sentences("One. Two.") == made.sentences("One. Two.") and np.array_equal(opened.characters(), made.characters())
    marks = {word_list.train(TEXT, size, *how).vocabulary.fingerprint for size in (6, 7) for how in READINGS}
    assert len(marks) == 6, "the number of predicted words and the reading count"


def test_characters_are_those_of_each_word_and_of_the_markers(tokenizer):
    tool = word_list.train(TEXT, 6)
    table = tool.characters()
    assert table.dtype == np.uint16 and table.shape == (tool.vocabulary.words, 50)
    assert table[0].tolist() == characters.begin().tolist() and table[1].tolist() == characters.end().tolist()
    for index in range(2, len(table)):
        assert np.array_equal(table[index], characters.of_words([tool.token(index)])[0])
    assert load(tokenizer).characters() is None


def test_vocab_txt_of_bilm_tf(tmp_path):
    (tmp_path / "vocab.txt").write_text("<S>\n</S>\n<UNK>\nthe\n , \r\ncaf\u00e9\n")
    tool = load(tmp_path)
    assert (tool.vocabulary.size, tool.vocabulary.words) == (6, 6)
    assert tool.encode(["the , café thé"]) == [[3, 4, 5, 2]] and tool.sentences("One. Two.") == ["One. Two."]


@pytest.mark.parametrize(
    "content, said",
    [
        ("<S>\n</S>\n<UNK>\nthe\n\na\n", "vocab.txt:5: an empty word"),
        ("<S>\n</S>\n<UNK>\nthe\na\nthe\n", "vocab.txt:6: 'the' is already word 4"),
        ("<S>\n</S>\n<UNK>\n<S>\n", "vocab.txt:4: '<S>' is already word 1"),
        ("</S>\n<S>\n<UNK>\nthe\n", r"starts with '</S> <S> <UNK>'; start it with <S> </S> <UNK>, in this order"),
        ("the\n<S>\n", "starts with 'the <S>'"),
        ("<S>\n</S>\n<UNK>\n\udcff\n", "vocab.txt:4: not UTF-8"),
    ],
)
def test_a_vocab_txt_that_is_not_sound_is_one_line(tmp_path, content, said):
    (tmp_path / "vocab.txt").write_bytes(content.encode(errors="surrogateescape"))
    with pytest.raises(UserError, match=said) as raised:
        load(tmp_path)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("size", [None, 2, 99, "6"])
def test_a_number_of_predicted_words_that_cannot_be(tmp_path, size):
    word_list.train(TEXT, 6).save(tmp_path)
    settings = json.loads((tmp_path / "tokenizer_config.json").read_text())
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings | {word_list.SIZE: size}))
    with pytest.raises(UserError, match="tokenizer_config.json: predicted_words is"):
        load(tmp_path)


def test_other_lists_and_other_settings_are_refused(tmp_path):
    word_list.train(TEXT, 6).save(tmp_path)
    data = json.loads((tmp_path / "tokenizer.json").read_text())
    (tmp_path / "tokenizer.json").write_text(json.dumps(data | {"pre_tokenizer": {"type": "Whitespace"}}))
    with pytest.raises(Unsupported, match="reads words by NFC and Whitespace;"):
        load(tmp_path)
    model = {"type": "WordLevel", "vocab": {"<S>": 0, "a": 2}, "unk_token": "<S>"}
    (tmp_path / "tokenizer.json").write_text(json.dumps(data | {"model": model}))
    with pytest.raises(UserError, match="ids are not 0 to"):
        load(tmp_path)
    with pytest.raises(UserError, match="holds no text"):
        word_list.train(["  "], 6)
    with pytest.raises(UserError, match="--vocab-size 2: too small"):
        word_list.train(TEXT, 2)
    with pytest.raises(UserError, match="'new' cannot be added"):
        word_list.train(TEXT, 6).extended(["new"])


@pytest.fixture
def folder(tmp_path) -> Path:
    """Data of which 'c' and what stands beyond it is read and not predicted."""
    (tmp_path / "a.txt").write_text("a a a b b zzz\n\nc c\n\nb a c")
    word_list.train(["a a a a b b b c c c"], 5).save(tmp_path / "tool")
    build([str(tmp_path / "a.txt")], tmp_path / "tool", tmp_path / "data", held_out=0.0)
    return tmp_path / "data"


def test_a_data_folder_keeps_the_words_that_are_read(folder, monkeypatch):
    """And the tokenizer, which may be long, is not opened for it."""
    tool = load(folder / "tokenizer")
    monkeypatch.setattr("jaxenc.data.tokenizers.load", None)
    shards = open_split(folder, "train", verify=True)
    assert shards.tokens.take(np.arange(11)).tolist() == [3, 3, 3, 4, 4, 2, 5, 5, 4, 3, 5]
    assert shards.manifest.tokenizer == tool.vocabulary and shards.manifest.splits["train"].unknown == 1 + 3
    assert isinstance(shards.characters, np.memmap) and np.array_equal(shards.characters, tool.characters())
    assert characters.NAME in shards.manifest.files


def test_a_folder_whose_words_were_changed_is_named(folder):
    path = folder / "tokenizer" / "tokenizer.json"
    path.write_text(path.read_text().replace('"a"', '"x"'))
    with pytest.raises(UserError, match=r"tokenizer\.json: its content changed"):
        open_split(folder, "train")


def test_a_folder_whose_characters_were_changed_is_named(folder):
    path = folder / characters.NAME
    content = path.read_bytes()
    for damaged in (content[:-1] + b"\0", content.replace(b"<u2", b"<i2"), b"PK\3\4".ljust(len(content)), content[:-1]):
        path.write_bytes(damaged)
        with pytest.raises(UserError, match=r"characters\.npy: (its content changed|has \d+ bytes)") as raised:
            open_split(folder, "train")
        assert "\n" not in str(raised.value)
    path.unlink()
    with pytest.raises(UserError, match=r"characters\.npy: missing"):
        open_split(folder, "train")


def test_more_ids_than_two_bytes_hold_are_four(tmp_path):
    """By the words that are read, not by those that are predicted."""
    (tmp_path / "a.txt").write_text("last w65999\n")
    word_list.train([" ".join(f"w{i:05d}" for i in range(66000))], 10).save(tmp_path / "tool")
    build([str(tmp_path / "a.txt")], tmp_path / "tool", tmp_path / "data", held_out=0.0)
    shards = open_split(tmp_path / "data", "train")
    assert shards.tokens.take(np.arange(2)).tolist() == [2, 66002] and shards.manifest.dtype == "uint32"
