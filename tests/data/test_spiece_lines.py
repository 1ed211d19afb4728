"""`.model` files give the ids of the sentencepiece library, for every type of model and every rule of normalization (R12)."""

import unicodedata
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sentencepiece as library

from jaxenc.data.tokenizers import Tokenizer, load
from jaxenc.errors import Unsupported, UserError
from tests.data import spiece_models as models
from tests.selection import FULL

COUNT = 10_000 if FULL else 500
WHITE = "\t\n\v\f\r\x85\xa0\u1680\u2000\u2003\u2028\u2029\u202f\u205f\u3000"


def reference(content: bytes) -> library.SentencePieceProcessor:
    return library.SentencePieceProcessor(model_proto=content)


def check(tool: Tokenizer, theirs: library.SentencePieceProcessor, texts: list[str], read: list[str]) -> None:
    """All ways of encoding `texts` against the library's of `read`, which is what it reads of them."""
    wanted = theirs.encode(read, out_type=int)
    assert tool.encode(texts) == wanted
    flat, words = tool.encode_flat(texts), tool.encode_words(texts)
    assert [ids for ids, _ in words] == wanted and flat.lengths.tolist() == [len(ids) for ids in wanted]
    assert flat.tokens.tolist() == [index for ids in wanted for index in ids]
    starts = [a != b for _, numbers in words for a, b in zip([None, *numbers], numbers, strict=False)]
    assert flat.words.tolist() == starts and sum(starts) > len(texts)


@pytest.mark.parametrize("name", models.SETTINGS)
def test_r12_every_model_gives_the_ids_of_the_library(name: str, tmp_path: Path) -> None:
    content = models.trained(**models.SETTINGS[name])
    tool, theirs, texts = load(models.folder(tmp_path / "a", content)), reference(content), models.lines(COUNT)
    check(tool, theirs, texts, texts)
    tool.save(tmp_path / "b")
    back = load(tmp_path / "b")
    assert (tmp_path / "b" / "spiece.model").read_bytes() == content
    assert back.vocabulary == tool.vocabulary and back.encode(texts[:100]) == tool.encode(texts[:100])


@pytest.mark.parametrize("name, lowercase", [("xlnet", False), ("albert", True)])
@pytest.mark.parametrize("rule", ["nmt_nfkc", "nmt_nfkc_cf", "nfkc", "identity"])
def test_r12_a_familys_rule_comes_before_the_model(name: str, lowercase: bool, rule: str, tmp_path: Path) -> None:
    """Quotes, case and white space, with accents kept: what the model reads is written out here."""
    content = models.trained(**getattr(models, name.upper()), normalization_rule_name=rule)
    texts, theirs = models.lines(COUNT // 2, seed=1), reference(content)
    kept = {white: white for white in WHITE if white not in theirs.normalize(f"a{white}a")}
    spaced = [text.translate(str.maketrans({white: " " for white in WHITE} | kept)) for text in texts]
    read = [text.replace("``", '"').replace("''", '"') for text in spaced]
    # The library lower-cases a sigma at the end of a word as any other.
    read = [text.replace("Σ", "σ").replace("İ", "i̇").lower() if lowercase else text for text in read]
    tool = load(models.folder(tmp_path, content, {"keep_accents": True}))
    check(tool, theirs, texts, read)


def test_r12_symbols_of_the_user_stay_as_they_are(tmp_path: Path) -> None:
    """`，` is a piece, and the table of characters would make a comma of it."""
    symbols = {"control_symbols": models.XLNET["control_symbols"], "user_defined_symbols": ["<eop>", "，", "。", ",", "！"]}
    content = models.trained(["很好，世界。你好！ a, b", *models.TEXTS], **symbols)
    tool, theirs = load(models.folder(tmp_path, content, {"keep_accents": True})), reference(content)
    assert tool.token(tool.encode(["很好，"])[0][-1]) == "，" == theirs.encode("很好，", out_type=str)[-1]
    texts = [f"{line}，很好。{line}！" for line in models.TEXTS]
    assert tool.encode(texts) == theirs.encode(texts)


CASES: dict[str, dict[str, Any]] = {name: models.SETTINGS[name] for name in ("unigram", "bpe, byte_fallback", "treat_whitespace_as_suffix")}


@pytest.mark.parametrize("name", CASES)
def test_offsets_are_those_of_the_library_without_blanks(name: str, tmp_path: Path) -> None:
    content = models.trained(**CASES[name])
    tool, theirs = load(models.folder(tmp_path, content)), reference(content)
    for text in models.lines(100, seed=2):
        ids, places = tool.encode_offsets([text])[0]
        found = theirs.encode(text, out_type="offset_mapping")
        assert ids == found["ids"]
        for (start, end), (first, last) in zip(places, found["offsets"], strict=True):
            if text[first:last].strip():
                assert text[start:end] == text[first:last].strip() and first <= start <= end <= last


@pytest.mark.parametrize("name", models.SETTINGS)
def test_characters_are_written_for_those_at_their_places(name: str, tmp_path: Path) -> None:
    """A blank for white space, a character that stays for itself, and with nfkc one that is in the form NFKC of its place."""
    tool = load(models.folder(tmp_path, models.trained(**models.SETTINGS[name])))
    for text in ["", "  ", *models.lines(100, seed=3)]:
        written, places = tool.written_places(text)
        assert written == tool.written(text) and len(places) == len(written)
        assert places == sorted(places) and all(0 <= start <= end <= len(text) for start, end in places)
        if written == text:
            assert places == [(at, at + 1) for at in range(len(text))]
        if name == "nfkc":
            held = [unicodedata.normalize("NFKC", text[start:end]) for start, end in places]
            assert all(one in there or (one == " " and not there.strip("\0 ▁")) for one, there in zip(written, held, strict=True)), text


def test_offsets_are_places_in_the_text_before_a_familys_rule(tmp_path: Path) -> None:
    """Accents taken apart and dropped, quotes joined and letters written out do not shift what follows."""
    tool = load(models.folder(tmp_path, models.trained(**models.XLNET), {}))
    text = "e\u0301e\u0301 ``q'' ﬁx\t½  ㎏ x"
    ids, places = tool.encode_offsets([text])[0]
    assert places == sorted(places) and places[-1] == (len(text) - 1, len(text))
    shown = {tool.token(index).strip("▁"): text[start:end] for index, (start, end) in zip(ids, places, strict=True)}
    assert shown['"'] == "'" and shown["k"] == "㎏"
    words = text.split()
    _, _, numbers = tool.encode_split(words)
    assert set(numbers) == {-1, *range(len(words))} and numbers[1:-2] == sorted(numbers[1:-2])


@pytest.mark.parametrize("name", models.SETTINGS)
def test_prompts_hold_special_pieces_and_decoding_gives_the_text_back(name: str, tmp_path: Path) -> None:
    tool = load(models.folder(tmp_path, models.trained(**models.SETTINGS[name])))
    facts, text = tool.vocabulary, "Die Maße"
    inside = tool.encode([text])[0]
    assert tool.encode_prompt(text) == [facts.cls, *inside, facts.sep]
    ids, types = tool.encode_framed(f"{text} <m>{text}<m>")
    assert ids == [facts.cls, *inside, facts.mask, *inside, facts.mask, facts.sep] and set(types) == {0}
    assert facts.mask not in tool.encode([f"{text} <m>"])[0]
    if facts.unk not in inside and name != "denormalizer":
        written = tool.written(text)
        assert tool.decode(inside) == written and tool.decode([facts.mask, *inside]).replace("> ", ">") == f"<m>{written}"
        assert tool.split(f"{text} {text}") == written.split() * 2 or name == "a table of one's own"


@pytest.mark.parametrize("name", [name for name, held in models.SETTINGS.items() if "suffix" not in name and not name.startswith("no ")])
def test_added_words_are_whole_and_kept_by_a_saved_folder(name: str, tmp_path: Path) -> None:
    if name == "allow_whitespace_only_pieces":
        name = "unigram"
    first = load(models.folder(tmp_path / "a", models.trained(**models.SETTINGS[name])))
    more = first.extended(["vixen", "quagga"])
    size = first.vocabulary.size
    assert more.encode(["vixen quagga"]) == [[size, size + 1]] and more.vocabulary.size == size + 2
    texts = models.lines(100)
    assert more.encode(texts) == first.encode(texts) and more.vocabulary.fingerprint != first.vocabulary.fingerprint
    more.save(tmp_path / "b")
    back = load(tmp_path / "b")
    assert back.vocabulary == more.vocabulary and back.encode(["vixen", *texts]) == more.encode(["vixen", *texts])
    assert np.array_equal(back.encode_flat(texts).tokens, more.encode_flat(texts).tokens)


def test_an_added_word_may_hold_a_symbol_of_the_user_that_the_table_leaves(tmp_path: Path) -> None:
    """A full stop of XLNet's: cut off wherever it is, but for the new word. Symbols that are read by a rule of their own are refused."""
    first = load(models.folder(tmp_path / "a", models.trained(**models.XLNET), {}))
    more, size = first.extended(["U.S.", "vixen"]), first.vocabulary.size
    assert more.encode(["U.S. vixen"]) == [[size, size + 1]]
    texts = models.lines(200)
    assert more.encode(texts) == first.encode(texts)
    more.save(tmp_path / "b")
    back = load(tmp_path / "b")
    assert back.vocabulary == more.vocabulary and back.encode(["U.S. vixen.", *texts]) == more.encode(["U.S. vixen.", *texts])
    other = load(models.folder(tmp_path / "c", models.trained(**models.SETTINGS["user_defined_symbols"])))
    with pytest.raises(UserError, match="the model cuts off 'ﬁ' wherever it is"):
        other.extended(["ﬁx"])
    with pytest.raises(Unsupported, match="pieces cannot be added where normalizer_spec.add_dummy_prefix is off"):
        load(models.folder(tmp_path / "d", models.trained(**models.SETTINGS["no add_dummy_prefix"]))).extended(["fix"])
