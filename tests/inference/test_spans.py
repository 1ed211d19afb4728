"""Words of text without blanks: where a word is found, the vectors of its pieces, and its neighbours."""

import random
import unicodedata
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from jaxenc.data.tokenizers import Tokenizer, bpe, load, wordpiece
from jaxenc.data.tokenizers.normalization import Normalization
from jaxenc.data.tokenizers.sentencepiece import unigram
from jaxenc.data.tokenizers.wordpiece_rules import PublishedRules
from jaxenc.errors import UserError
from jaxenc.inference import neighbours, words
from jaxenc.inference.model import Model
from jaxenc.inference.spans import Spans, find, of_pieces
from jaxenc.objectives.mlm import MlmConfig
from tests.data import spiece_models as models
from tests.data.scripts import SENTENCES
from tests.inference.test_words import BERT, of

TEXTS = [line for lines in SENTENCES.values() for line in lines]
THAI = ["ฉันรักแมวของฉัน", "แมวกินปลาในบ้าน", "บ้านของฉันมีแมว", "ปลาอยู่ในน้ำ"]
CHINESE = ["我爱北京天安门。", "北京在中国。", "他去了上海和北京。", "上海很大。"]
BURMESE = ["ကျွန်တော်မြန်မာစာလေ့လာသည်။", "မြန်မာစာဖတ်သည်။သူလည်းမြန်မာစာဖတ်သည်။", "သူစာဖတ်သည်။"]
VIETNAMESE = ["Tiếng Việt đầy đủ dấu.", "Người Việt ở khắp nơi.", "Tiếng nói của người Việt"]
ALL = [*THAI, *CHINESE, *BURMESE, *VIETNAMESE]
MADE: dict[str, Callable[[], Tokenizer]] = {
    "unigram": lambda: unigram.train((ALL + TEXTS) * 3, 1500),
    "bpe": lambda: bpe.train((ALL + TEXTS) * 3, 700),
    "wordpiece, lower case": lambda: wordpiece.train((ALL + TEXTS) * 3, 2500, Normalization(lowercase=True)),
}


@pytest.fixture(scope="module", params=list(MADE))
def model(request: pytest.FixtureRequest) -> Model:
    return of(MADE[request.param](), BERT, MlmConfig())


@pytest.fixture(scope="module")
def burmese() -> Model:
    return of(MADE["unigram"](), BERT, MlmConfig())


def slow(tool: Tokenizer, text: str, word: str) -> list[tuple[int, int]]:
    """By all spans of a text that start and end between syllables: the first, of those that start there the shortest, and so on."""
    mark = lambda at: at < len(text) and unicodedata.category(text[at]).startswith("M")
    same = lambda a, b: tool.written(text[a:b]).strip() == tool.written(word).strip() and tool.written(text[a]).strip()
    out, start = [], 0
    while start < len(text):
        ends = [end for end in range(start + 1, len(text) + 1) if not mark(start) and not mark(end) and same(start, end)]
        out += [(start, ends[0])] if ends else []
        start = ends[0] if ends else start + 1
    return out


def test_a_word_is_found_as_the_vocabulary_reads_it(model: Model) -> None:
    tool = model.tokenizer
    for text, word, found in (
        (CHINESE[2], "北京", ["北京"]),
        (THAI[0], "แมว", ["แมว"]),
        (BURMESE[1], "မြန်မာစာ", ["မြန်မာစာ"] * 2),
        ("ကာက", "က", ["က"]),  # not in ကာ, another syllable
        ("aaaa", "aa", ["aa", "aa"]),
        ("x\u00ady", "zz", []),
        (unicodedata.normalize("NFD", VIETNAMESE[0]), "Việt", [unicodedata.normalize("NFD", "Việt")]),
        (VIETNAMESE[0], unicodedata.normalize("NFD", "Việt"), ["Việt"]),
        ("ca", " ", []),
        ("\u1112\u1161 \u1161", "\u1161", ["\u1161"]),  # not in the syllable 하, whose jamo are composed
    ):
        assert [text[start:end] for start, end in find(tool, text, word)] == found, (text, word)


def test_a_word_is_found_as_a_model_of_sentencepiece_reads_it(tmp_path: Path) -> None:
    tool = load(models.folder(tmp_path, models.trained(ALL * 3, vocab_size=150)))
    for text, word in ((CHINESE[2], "北京"), (THAI[0], "แมว"), (BURMESE[1], "မြန်မာစာ"), ("ﬁve  ½ Ａ", "1⁄2 A"), ("x y", "zz")):
        found = list(find(tool, text, word))
        assert found == slow(tool, text, word) and bool(found) == (word != "zz"), (text, word)


def test_it_is_what_all_spans_say(model: Model) -> None:
    """Random parts of lines in both Unicode forms, in other lines too."""
    draw = random.Random(0)
    lines = [unicodedata.normalize(form, line) for line in draw.sample(TEXTS, 24) + ALL for form in ("NFC", "NFD")]
    there = 0
    for line in lines:
        start = draw.randrange(len(line))
        word = unicodedata.normalize(draw.choice(["NFC", "NFD"]), line[start : start + draw.randint(1, 4)])
        for text in (line, draw.choice(lines)):
            found = list(find(model.tokenizer, text, word))
            assert found == slow(model.tokenizer, text, word), (text, word)
            there += len(found)
    assert there > 20


@pytest.mark.parametrize(
    "text, word",
    [("ab" * 5000, "ab" * 2400 + "a"), ("abcdef " * 7000, "abcdef"), ("a" * 20000, "a" * 9), ("กำ" * 9000, "กำ"), ("e\u0301" * 9000, "é")],
    ids=["long word", "many words", "one letter", "marks", "composed"],
)
def test_the_work_grows_with_the_text_alone(model: Model, text: str, word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Characters that the normaliser reads: the text once, the word, and what is found once."""
    read: list[int] = []
    tool, one, whole = model.tokenizer, model.tokenizer.written, model.tokenizer.written_places
    monkeypatch.setattr(tool, "written", lambda text: (read.append(len(text)), one(text))[1])
    monkeypatch.setattr(tool, "written_places", lambda text: (read.append(len(text)), whole(text))[1])
    found = list(find(tool, text, word))
    same = unicodedata.normalize("NFC", text)
    assert len(found) == same.count(word) and sum(read) <= 2 * len(text) + len(word)


def test_case_and_accents_go_by_the_vocabulary() -> None:
    tool = wordpiece.of_lines(Path("x"), ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "cafe", "北", "京"], PublishedRules(True, True))
    assert list(find(tool, "A Cafe\u0301, 北京 CAFÉ.", "café")) == [(2, 7), (12, 16)]
    assert list(find(tool, "在北京。", "北京")) == [(1, 3)]


def test_pieces_are_the_words_of_a_text(model: Model) -> None:
    """They are in order, apart, and all that is no white space; the word asked for is one, in the place of the pieces it overlaps."""
    for text in [*ALL, "a  b", "", " "]:
        plain = of_pieces(model.tokenizer, text)
        held = [False] * len(text)
        for start, end in plain.places:
            assert not any(held[start:end]) and end > start
            held[start:end] = [True] * (end - start)
        assert list(plain.places) == sorted(plain.places) and all(h or c.isspace() for h, c in zip(held, text, strict=True)), text
    word = "မြန်မာစာ"
    found = of_pieces(model.tokenizer, BURMESE[1], word)
    assert list(found).count(word) == 2 and list(found.places) == sorted(found.places)
    others = [
        place
        for place in of_pieces(model.tokenizer, BURMESE[1]).places
        if not any(a < place[1] and place[0] < b for a, b in slow(model.tokenizer, BURMESE[1], word))
    ]
    assert [place for one, place in zip(found, found.places, strict=True) if one != word] == others


def test_the_vector_of_a_span_is_the_mean_of_the_pieces_that_overlap_it(model: Model) -> None:
    """Of any spans: overlapping, out of order, within a piece, of the whole text; nothing gives zeros (<= 1e-5)."""
    text = BURMESE[0]
    places = ((0, 9), (3, 5), (0, len(text)), (12, 14), (len(text) - 1, len(text)), (0, 0))
    found = next(words.vectors(model, [Spans(text, places)]))
    ((_, offsets),) = model.tokenizer.encode_offsets([text])
    hidden = (
        model.encode([text]).hidden[:, 0, 1:]
        if model.tokenizer.vocabulary.cls == model.encode([text]).tokens[0, 0]
        else model.encode([text]).hidden[:, 0]
    )
    for number, (start, end) in enumerate(places):
        own = [at for at, (a, b) in enumerate(offsets) if a < end and b > start]
        wanted = hidden[:, own].mean(axis=1) if own else np.zeros((3, 16))
        np.testing.assert_allclose(found[:, number], wanted, rtol=0, atol=1e-5)
    assert not found[:, 5].any() and np.abs(found[:, :5]).max() > 0


def test_spans_of_words_between_blanks_have_the_vectors_of_the_words(model: Model) -> None:
    """Bit for bit, where the text has one blank between words."""
    text = VIETNAMESE[1]
    starts = [0, *(at + 1 for at, one in enumerate(text) if one == " ")]
    places = tuple((start, start + len(word)) for start, word in zip(starts, text.split(), strict=True))
    (one,), (other,) = words.vectors(model, [Spans(text, places)]), words.vectors(model, [text.split()])
    assert one.tobytes() == other.tobytes()


@pytest.mark.parametrize("lines, word", [(THAI, "แมว"), (CHINESE, "北京"), (BURMESE, "မြန်မာစာ")], ids=["thai", "chinese", "burmese"])
def test_neighbours_in_text_without_blanks(model: Model, lines: list[str], word: str) -> None:
    """Against a loop over all pairs of units in other sentences (<= 1e-5)."""
    cut = [of_pieces(model.tokenizer, line, word) for line in lines]
    found = neighbours.report(model, cut, word, 2, 3, 2)
    hidden = [array[2] / np.linalg.norm(array[2], axis=-1, keepdims=True) for array in words.vectors(model, cut)]
    assert found.occurrences == sum(line.count(word) for line in lines) and len(found.senses) == 2
    assert word not in [name for _, name in found.static]
    for (sentence, at), near in found.senses:
        assert cut[sentence][at] == word
        wanted = sorted((float(v @ hidden[sentence][at]) for n, some in enumerate(hidden) if n != sentence for v in some), reverse=True)[:3]
        np.testing.assert_allclose([one.cosine for one in near], wanted, rtol=0, atol=1e-5)
    out = "\n".join(neighbours.lines(found, cut, word, 2, 2))
    assert f"[{word}]" in out and out.startswith(f"{word}: {found.occurrences} occurrences in {len(lines)} sentences")


def test_a_query_in_another_form_or_case(model: Model) -> None:
    cut = [unicodedata.normalize("NFD", line).split() for line in VIETNAMESE]
    same = neighbours.report(model, cut, unicodedata.normalize("NFC", "Việt"), 1, 2, 3)
    assert same.occurrences == 3
    lower = model.tokenizer.written("V") == "v"
    assert "viet" not in {unicodedata.normalize("NFD", name).lower() for _, name in same.static}
    if lower:
        assert neighbours.report(model, cut, "VIỆT", 1, 2, 3).occurrences == 3
        assert neighbours.report(model, cut, "tiếng", 1, 2, 3).occurrences == 2
    else:
        with pytest.raises(UserError, match="'VIỆT' is not in the text; name a word that is; case and accents"):
            neighbours.report(model, cut, "VIỆT", 1, 2, 3)


def test_a_long_text_is_cut_where_it_is_shown() -> None:
    text = Spans("他去了上海和北京。", tuple((at, at + 1) for at in range(1, 8)))
    assert [text.shown(at, 2) for at in (0, 2, 3, 6)] == ["他[去]了上 …", "他去了[上]海和 …", "… 了上[海]和北 …", "… 和北[京]。"]
    assert text.shown(3, 99) == "他去了上[海]和北京。"


def test_what_is_refused(burmese: Model) -> None:
    with pytest.raises(UserError, match="give one kind in a call"):
        list(words.vectors(burmese, [["a"], Spans("a", ((0, 1),))]))
    with pytest.raises(UserError, match="the sentence that begins with 'ကျွန်တော်.* has"):
        list(words.vectors(burmese, [Spans(BURMESE[0] * 20, ((0, 1),))]))
