"""R01, R36: a new vocabulary of any type loses no letter and no mark of any script."""

import random
import re
import unicodedata
from pathlib import Path

import numpy as np
import pytest

from jaxenc.data.build import build
from jaxenc.data.store import open_split
from jaxenc.data.tokenizers import Tokenizer, bpe, load, word_bpe, word_list, wordpiece
from jaxenc.data.tokenizers.normalization import Normalization
from jaxenc.data.tokenizers.sentencepiece import unigram
from tests.data.scripts import SENTENCES
from tests.selection import thinned

ALL = [line for lines in SENTENCES.values() for line in lines]
TRAIN = {
    "wordpiece": lambda texts, *how: wordpiece.train(texts, 3000, *how),
    "bpe": lambda texts, *how: bpe.train(texts, 600, *how),
    "word_bpe": lambda texts, *how: word_bpe.train(texts, 3000, *how),
    "unigram": lambda texts, *how: unigram.train(texts, 1500, *how),
    "characters": lambda texts, *how: word_list.train(texts, 100, *how),
}
# White space that decoding does not restore: byte-level BPE restores all, unigram gives one space for any, the others join words.
SPACES = {
    "wordpiece": lambda text: re.sub(r"\s+", "", text),
    "bpe": lambda text: text,
    "word_bpe": lambda text: re.sub(r"\s+", "", text),
    "unigram": lambda text: " ".join(text.split()),
    "characters": lambda text: re.sub(r"\s+", "", text),
}


@pytest.fixture(scope="module", params=list(TRAIN))
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def tool(kind: str, tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    """Trained on all scripts and opened from its folder."""
    folder = tmp_path_factory.mktemp(kind)
    TRAIN[kind](ALL * 2).save(folder)
    return load(folder)


def test_there_are_sentences_of_forty_scripts() -> None:
    assert len(SENTENCES) >= 40 and all(len(lines) >= 3 for lines in SENTENCES.values())


@pytest.mark.parametrize("script", SENTENCES)
def test_r01_decoding_gives_back_every_letter_and_mark(kind: str, tool: Tokenizer, script: str) -> None:
    """In either form, composed or taken apart; none is unknown."""
    for line in SENTENCES[script]:
        expected = unicodedata.normalize("NFC", line)
        for form in ("NFC", "NFD"):
            (ids,) = tool.encode([unicodedata.normalize(form, line)])
            assert tool.vocabulary.unk not in ids, line
            assert SPACES[kind](tool.decode(ids)) == SPACES[kind](expected), line


@pytest.mark.parametrize(
    "line",
    [
        "ꦲꦏ꧀ꦱꦫ ꦗꦮ ꦱꦸꦒꦼꦁ",  # Javanese
        "ᬅᬓ᭄ᬱᬭ ᬩᬮᬶ",  # Balinese
        "ᨣᩤᩴᨾᩮᩬᩥᨦ ᨽᩣᩈᩣ",  # Tai Tham
        "ꯃꯤꯇꯩ ꯂꯣꯟ ꯑꯃꯁꯨꯡ",  # Meitei
        "ⵜⴰⵎⴰⵣⵉⵖⵜ ⵜⵏ⵿ⵎⵔ",  # Tifinagh with its joiner
        "מ֣וֹנְרִ֔ים נָ֥א",  # Hebrew with cantillation
        "t͡ʃaɪ̯ ŋ̊ k͡p",  # phonetic alphabet, ties and rings
    ],
)
def test_r01_marks_of_rarer_scripts_come_back(kind: str, line: str) -> None:
    tool = TRAIN[kind]([line] * 3)
    for form in ("NFC", "NFD"):
        (ids,) = tool.encode([unicodedata.normalize(form, line)])
        assert tool.vocabulary.unk not in ids and SPACES[kind](tool.decode(ids)) == SPACES[kind](unicodedata.normalize("NFC", line))


@pytest.mark.parametrize("kind", ["wordpiece", "bpe", "word_bpe", "unigram"])
def test_r01_a_word_that_is_added_keeps_its_marks(kind: str) -> None:
    """Its id decodes to the word, vowel signs and visarga included, whichever form the text has."""
    text = ["सुख में है", "और"] * 3
    tool = TRAIN[kind](text).extended(["दुःखी"])
    for form in ("NFC", "NFD"):
        (ids,) = tool.encode([unicodedata.normalize(form, "में दुःखी है")])
        assert tool.vocabulary.size - 1 in ids and SPACES[kind](tool.decode(ids)) == SPACES[kind]("में दुःखी है"), tool.decode(ids)


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_r01_r36_a_data_folder_holds_every_mark_in_either_form(kind: str, form: str, tmp_path: Path) -> None:
    """The tokens of all scripts, read back from the shards; the same for a composed and a decomposed corpus."""
    TRAIN[kind](ALL * 2).save(tmp_path / "tokenizer")
    (tmp_path / "text.txt").write_text("\n\n".join(unicodedata.normalize(form, line) for line in ALL), encoding="utf-8")
    build([str(tmp_path / "text.txt")], tmp_path / "tokenizer", tmp_path / "data", held_out=0.0)
    tokens = open_split(tmp_path / "data", "train").tokens
    found, bare = load(tmp_path / "tokenizer").decode(tokens.take(np.arange(len(tokens))).tolist()), lambda text: re.sub(r"\s", "", text)
    assert bare(found) == bare(unicodedata.normalize("NFC", "".join(ALL)))


def test_r36_words_that_are_given_apart_are_the_same_in_either_form(tool: Tokenizer) -> None:
    """As jaxenc.encode(words=...) reads them: the same ids, each of the same word."""
    lines = [line.split() for line in ALL]
    apart = [[unicodedata.normalize("NFD", word) for word in line] for line in lines]
    together = [[unicodedata.normalize("NFC", word) for word in line] for line in lines]
    assert apart != together and [tool.encode_split(line) for line in apart] == [tool.encode_split(line) for line in together]


def test_r36_composed_and_decomposed_letters_are_the_same_pieces(tool: Tokenizer) -> None:
    apart, together = ([unicodedata.normalize(form, line) for line in ALL] for form in ("NFD", "NFC"))
    assert apart != together and tool.encode(apart) == tool.encode(together)
    assert tool.encode_words(apart) == tool.encode_words(together)
    assert [tool.encode_prompt(text) for text in apart] == [tool.encode_prompt(text) for text in together]


@pytest.mark.parametrize(
    "lowercase, strip_accents", thinned([(False, False), (True, False), (False, True), (True, True)], (True, False), (False, True))
)
@pytest.mark.parametrize("form", ["nfc", "nfkc", "none"])
def test_r36_every_rule_is_recorded_and_loads(kind: str, form: str, lowercase: bool, strip_accents: bool, tmp_path) -> None:
    """And does what it says, by Python's own tables; of a rule that composes, both forms of a letter meet."""
    rule = Normalization(form, lowercase, strip_accents)
    texts = ["Cafe\u0301 Café", "ﬁne Ｆull", "दुःख", "안녕"]
    made = TRAIN[kind](texts * 3, rule)
    made.save(tmp_path)
    back = load(tmp_path)
    assert back.vocabulary == made.vocabulary and back.encode(texts) == made.encode(texts)
    for text in texts:
        expected = unicodedata.normalize(form.upper(), text) if form != "none" else text
        if strip_accents:
            apart = unicodedata.normalize("NFD", expected)
            expected = "".join(c for c in apart if unicodedata.category(c) != "Mn")
            expected = unicodedata.normalize("NFKC" if form == "nfkc" else "NFC", expected)
        expected = expected.lower() if lowercase else expected
        (ids,) = back.encode([text])
        assert SPACES[kind](back.decode(ids)) == SPACES[kind](expected) and back.vocabulary.unk not in ids
    meet = back.encode(["Cafe\u0301"]) == back.encode(["Café"])
    assert meet == (form != "none" or strip_accents)


def test_r36_other_rules_are_other_vocabularies(kind: str) -> None:
    texts = ["abc abd"] * 3
    switches = ((False, False), (True, False), (False, True))
    rules = [Normalization(form, *pair) for form in ("nfc", "nfkc", "none") for pair in switches]
    assert len({TRAIN[kind](texts, rule).vocabulary.fingerprint for rule in rules}) == len(rules)


@pytest.mark.parametrize("text", ["ก" * 250, "ที่นี่มีน้ำใสมาก" * 30, "acgt" * 100, "\u0e48" * 250])
def test_a_line_without_blanks_is_no_unknown_word(text: str) -> None:
    """WordPiece cuts what is longer than the library's longest word, never before a mark where it can help it."""
    tool = wordpiece.train([text] * 2, 100)
    ((ids, numbers),) = tool.encode_words([text])
    assert tool.vocabulary.unk not in ids and "".join(tool.decode(ids).split()) == text
    starts = [tool.token(i) for n, i in enumerate(ids) if n and numbers[n] != numbers[n - 1]]
    assert len(starts) >= len(text) // 100 - 1
    if unicodedata.category(text[0]) != "Mn":
        assert not any(unicodedata.category(start[0]) == "Mn" for start in starts)


def test_words_end_at_a_zero_width_space() -> None:
    tool = wordpiece.train(["តើ\u200bអ្នក\u200bទេ"] * 3, 60)
    assert tool.split("តើ\u200bអ្នក") == ["តើ", "\u200b", "អ្នក"]


@pytest.mark.parametrize("kind", ["wordpiece", "word_bpe", "unigram"])
def test_characters_of_layout_cost_no_word(kind: str) -> None:
    """A vocabulary of characters would not know them."""
    tool = TRAIN[kind](["soft hyphen"] * 3)
    assert tool.encode(["\ufeffso\u00adft\u200f hy\x97phen\u200e\ufffd"]) == tool.encode(["soft hyphen"])


@pytest.mark.parametrize("kind, unknown", [("wordpiece", "in words that are [UNK]"), ("word_bpe", "<unk>"), ("unigram", "<unk>")])
def test_characters_below_the_coverage_are_named(kind: str, unknown: str, capsys, monkeypatch) -> None:
    monkeypatch.setattr("jaxenc.data.tokenizers.alphabet.LEAST", 2)
    draw = random.Random(0)  # of one word repeated a unigram's pieces are sought for ten seconds
    tool = TRAIN[kind](["".join(draw.choices("ab", k=10)) for _ in range(4000)] + ["ड"])
    said = [line for line in capsys.readouterr().err.splitlines() if "characters are" in line]
    assert said == [f"tokenizer: 0.0025% of the characters are {unknown}: 'ड' (U+0921)"]
    assert tool.encode(["ड"])[0][-1] == tool.vocabulary.unk
    TRAIN[kind](["ab ड"] * 3)
    assert "characters are" not in capsys.readouterr().err


def test_many_characters_are_covered() -> None:
    """More than the thousand that a vocabulary always has: no Chinese character of the text is unknown."""
    text = "".join(chr(0x4E00 + n) for n in range(1500))
    assert wordpiece.train([text], 2000).vocabulary.unk not in wordpiece.train([text], 2000).encode([text])[0]
