"""Cases that people met with the tokenizers of other libraries, by their ids. Others are in test_tokenizers.py."""

import unicodedata
from pathlib import Path

import pytest

from jaxenc.data.build import build
from jaxenc.data.tokenizers import Tokenizer, bpe, load, word_bpe, word_list, wordpiece
from jaxenc.data.tokenizers.normalization import Normalization
from jaxenc.data.tokenizers.sentencepiece import unigram
from jaxenc.data.tokenizers.wordpiece_rules import PublishedRules

TEXT = [
    "The quick brown fox jumps over the lazy dog.",
    "Съешь Ещё Этих Мягких Булок",
    "mask pad sep cls unk s eop go to today x [] <> /",
] * 4
TRAIN = {
    "wordpiece": lambda texts: wordpiece.train(texts, 200),
    "bpe": lambda texts: bpe.train(texts, 320),
    "word_bpe": lambda texts: word_bpe.train(texts, 200),
    "unigram": lambda texts: unigram.train(texts, 120),
    "characters": lambda texts: word_list.train(texts, 50),
}
EMOJI = ["🥱 📷🤏 🦾", "👨‍👩‍👧 🇮🇸 👍🏽", "🏳️‍🌈 1️⃣ ☎︎", "a🥱b 🏴\U000e0067\U000e0062\U000e007f"]


def published(folder: Path, texts: list[str], lowercase: bool, size: int = 200) -> Tokenizer:
    wordpiece.train(texts, size, Normalization("nfc", lowercase, lowercase)).save(folder)
    return wordpiece.from_vocab(folder / "vocab.txt", PublishedRules(lowercase, lowercase))


@pytest.mark.parametrize("text", ["THE QUICK BROWN FOX.", "СЪЕШЬ ЕЩЁ ЭТИХ БУЛОК"])
def test_b13_case_that_does_not_fit_is_a_warning(text: str, tmp_path: Path, capsys) -> None:
    """A vocabulary of lower case whose folder forgot to say so, on capitals; with its own case mode nothing is said."""
    published(tmp_path / "made", [line.lower() for line in TEXT], True)
    (tmp_path / "a.txt").write_text("\n\n".join([text] * 30), encoding="utf-8")
    for name, lowercase in (("wrong", False), ("right", True)):
        folder = tmp_path / name
        tool = wordpiece.from_vocab(tmp_path / "made" / "vocab.txt", PublishedRules(lowercase, lowercase))
        tool.save(folder)
        assert load(folder).encode([text]) == tool.encode([text])
        build([str(tmp_path / "a.txt")], folder, tmp_path / f"data-{name}")
        assert ("check that the tokenizer fits the text (lower case, accents, script)" in capsys.readouterr().err) == (not lowercase)


def test_b16_words_are_counted_in_the_text_as_it_was_given() -> None:
    """Voiced kana, composed or not, and letters that normalization makes longer or shorter: each piece belongs to the word it came from."""
    words = ["アリババ株式会社の", "公式サイトです", "ﬁ", "カ\u3099", "İ", "x"]
    for kind in ("wordpiece", "unigram", "bpe"):
        tool = TRAIN[kind]([" ".join(words)] * 4)
        ids, _, numbers = tool.encode_split(words)
        for number, word in enumerate(words):
            held = [index for index, n in zip(ids, numbers, strict=True) if n == number]
            assert tool.decode(held).replace(" ", "") == unicodedata.normalize("NFC", word), (kind, word)


@pytest.mark.parametrize("text", ["\u0e38", "", "   ", "\0"])
def test_b17_a_text_without_tokens_is_legal(text: str, tmp_path: Path) -> None:
    """In every mode; in a corpus its sentence is dropped and counted."""
    tool = published(tmp_path / "tokenizer", TEXT, True)
    assert tool.encode([text]) == [[]] and tool.encode_flat([text, "fox", text]).lengths.tolist()[::2] == [0, 0]
    assert tool.encode_prompt(text) == [2, 3] and tool.encode_split([text])[0] == [2, 3]
    (tmp_path / "a.txt").write_text(f"the fox\n{text}\x01\nthe dog\n" * 8)
    made = build([str(tmp_path / "a.txt")], tmp_path / "tokenizer", tmp_path / "data", held_out=0.0)
    assert made.splits["train"].sentences == 16 and made.splits["train"].tokens > 0


@pytest.mark.parametrize("kind", TRAIN)
def test_b19_a_corpus_never_holds_a_special_piece(kind: str) -> None:
    """Whatever stands in its text, blanks around it or not, with the cache of words and without it."""
    tool = TRAIN[kind](TEXT)
    specials = [tool.token(index) for index in tool.vocabulary.reserved]
    texts = ["i go to [MASK] today [SEP] x", " ".join(specials), "".join(specials), *(f"x{piece}y {piece}" for piece in specials)]
    allowed = {tool.vocabulary.unk}
    assert not {*tool.encode_flat(texts).tokens.tolist()} & {*tool.vocabulary.reserved} - allowed
    assert not {index for ids in tool.encode(texts) for index in ids} & {*tool.vocabulary.reserved} - allowed


@pytest.mark.parametrize("lowercase", [True, False])
def test_b20_emoji_have_the_ids_of_transformers(lowercase: bool, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers", reason="transformers is not installed: bash tests/run.sh --live installs it")
    tool = published(tmp_path / "made", [*EMOJI, *TEXT] * 3, lowercase)
    tool.save(tmp_path / "saved")
    theirs = transformers.AutoTokenizer.from_pretrained(str(tmp_path / "saved"))
    assert [theirs(text)["input_ids"] for text in EMOJI] == [tool.encode_prompt(text) for text in EMOJI]
    assert 1 not in tool.encode([EMOJI[0]])[0]


def test_b21_control_characters_vanish_by_berts_rule(tmp_path: Path) -> None:
    """google-research/bert:tokenization.py, _clean_text and _is_control: NUL, U+FFFD and the categories Cc and Cf go, but \\t \\n \\r."""
    tool = published(tmp_path, TEXT, True)
    whole, parted = tool.encode(["thefox", "the fox"])
    for point in [*range(0x20), *range(0x7F, 0xA1), 0xFFFD, 0x200B, 0x200D, 0xFEFF, 0xAD]:
        character = chr(point)
        gone = point in (0, 0xFFFD) or (unicodedata.category(character) in ("Cc", "Cf") and character not in "\t\n\r")
        assert tool.encode([f"the{character}fox"]) == [whole if gone else parted], hex(point)


@pytest.mark.parametrize("kind", TRAIN)
def test_b23_accented_letters_are_kept_or_lose_their_accent_alone(kind: str) -> None:
    words = ["Kantō", "lǜshi", "Ångström", "İstanbul", "ﬁ"]
    tool = TRAIN[kind]([" ".join(words)] * 4)
    for form in ("NFC", "NFD"):
        assert tool.decode(tool.encode([unicodedata.normalize(form, " ".join(words))])[0]).split() == words
