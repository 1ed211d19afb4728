"""R02: byte-level BPE keeps the marks of a word with its letters in new vocabularies, and reads published ones as GPT-2 does."""

import itertools
import json
import unicodedata
from pathlib import Path

import pytest
from tokenizers import pre_tokenizers

from jaxenc.data.tokenizers import bpe, load, wordpiece
from tests.data.scripts import SENTENCES

LINES = [line for lines in SENTENCES.values() for line in lines]
JOINERS = "\u200c\u200d"


def continues(character: str) -> bool:
    return character in JOINERS or unicodedata.category(character).startswith("M")


def pieces(tool, text: str) -> list[str]:
    """The words of `text` as the tokenizer cuts it, blanks included; together they are the text."""
    words = [text[a:b] for _, (a, b) in tool._literal.pre_tokenizer.pre_tokenize_str(text)]
    assert "".join(words) == text
    return words


@pytest.fixture(scope="module")
def tool():
    return bpe.train(LINES, 600)


@pytest.mark.parametrize("script", SENTENCES)
def test_r02_no_word_starts_with_a_mark_of_the_letter_before(tool, script: str) -> None:
    for line in SENTENCES[script]:
        words = pieces(tool, unicodedata.normalize("NFC", line))
        for before, word in itertools.pairwise(words):
            base = before.rstrip("".join(filter(continues, before)))[-1:]
            assert not (continues(word[0]) and base.isalpha()), (before, word)


@pytest.mark.parametrize(
    "text, words", [("བཅོམ་ལྡན", ["བཅོམ", "་", "ལྡན"]), ("क्‍ष है", ["क्‍ष", " है"]), ("می‌خواهم don't", ["می‌خواهم", " don", "'t"])]
)
def test_r02_words_of_tibetan_hindi_and_persian(tool, text: str, words: list[str]) -> None:
    assert pieces(tool, text) == words


def test_r02_english_is_cut_as_by_gpt2(tool) -> None:
    text = "I'll say: it's 3.14  (or 22/7)\n\n we've\tdone. Café, naïve  "
    expected = [text[a:b] for _, (a, b) in pre_tokenizers.ByteLevel(add_prefix_space=False).pre_tokenize_str(text)]
    assert pieces(tool, text) == expected


def test_r02_transformers_gives_the_same_ids(tool, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers", reason="transformers is not installed: bash tests/run.sh --live installs it")
    tool.save(tmp_path)
    theirs = transformers.AutoTokenizer.from_pretrained(str(tmp_path))
    assert [theirs(line, add_special_tokens=False)["input_ids"] for line in LINES] == tool.encode(LINES)


def test_r02_folders_say_their_pattern(tool, tmp_path: Path) -> None:
    """By either file; one made before this pattern has GPT-2's and opens with it."""
    tool.save(tmp_path)
    (tmp_path / "tokenizer.json").unlink()
    assert load(tmp_path).vocabulary == tool.vocabulary and load(tmp_path).encode(LINES) == tool.encode(LINES)
    settings = tmp_path / "tokenizer_config.json"
    config = json.loads(settings.read_text())
    assert config.pop("word_pattern") == "marks"
    settings.write_text(json.dumps(config))
    old = load(tmp_path)
    assert old.vocabulary.fingerprint != tool.vocabulary.fingerprint and pieces(old, "བཅོམ") == ["བཅ", "ོ", "མ"]


@pytest.mark.parametrize("script", ["tibetan", "devanagari", "burmese"])
def test_r02_no_more_tokens_a_byte_than_before(script: str, monkeypatch) -> None:
    """On the sentences trained on, with a vocabulary of 1,000 pieces: a third to three quarters fewer."""
    lines = SENTENCES[script] * 8
    after = bpe.train(lines, 1000)
    monkeypatch.setattr("jaxenc.data.tokenizers.bpe.MARKS", "gpt2")
    before, words = bpe.train(lines, 1000), wordpiece.train(lines, 1000)
    size = sum(len(line.encode()) for line in lines)
    counts = [sum(map(len, tool.encode(lines))) / size for tool in (before, after, words)]
    print(f"{script}: tokens a byte: GPT-2's pattern {counts[0]:.4f}, ours {counts[1]:.4f}, WordPiece {counts[2]:.4f}")
    assert counts[1] < counts[0]
