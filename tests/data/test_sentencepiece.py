"""Unigram vocabularies against the sentencepiece library itself, on what the original's preprocess_text leaves of a text."""

import dataclasses
import io
import json
import shutil
import unicodedata

import numpy as np
import pytest
import sentencepiece as library
import tokenizers

from jaxenc.data import manifest
from jaxenc.data.build import build
from jaxenc.data.pipeline import open_batches
from jaxenc.data.sources import DataConfig
from jaxenc.data.store import open_split
from jaxenc.data.tokenizers import load
from jaxenc.data.tokenizers.normalization import Normalization
from jaxenc.data.tokenizers.sentencepiece import unigram
from jaxenc.errors import Unsupported, UserError
from tests.selection import thinned

SPECIALS = ["<unk>", "<s>", "</s>", "<cls>", "<sep>", "<pad>", "<mask>", "<eod>", "<eop>"]
SYMBOLS = [".", "(", ")", '"', "-", "–", "£", "€"]
TEXT = [
    "The quick brown fox (a fox) jumps over the lazy dog, again and again.",
    "Kantō, Ångström and 京都: 3.14 is not 92,000 - or £5.",
    "The dog said ``again'' and the fox said \"over\" in 2000.",
] * 6
NASTY = [
    *("", " ", "  two  blanks ", "a\tb\n\nc\r\n", "\u00a0x\u00a0y\u2003z\u3000", "\0 a\0b \x01 \x85 \x97"),
    *("\u0e38 ที่ น้ำ", "\u0301a e\u0301\u0302"),
    *("🥱 👨‍👩‍👧 🇮🇸 👍🏽", "アリババ ｶﾞｷﾞ ﾊﾟ", "가각힣", "é ﬁ İ ½ ² Ⅷ ℡ ① ㎏", "Привет, мир! ё й", "שָׁלוֹם مَرْحَبًا", "𝕳𝖊 ｆｕｌｌ １２３，４"),
    *(
        "a\u200bb \ufeffx \u00ad",
        "▁a ▁▁b c▁d ▁",
        "...!!! ``` '''",
        "x" * 10_000,
        "\ufffd",
        "fox▅dog ⁇ \u2028\x1c",
        "京都府" * 3000,
        "▁",
        "▁ x▁ y",
    ),
    *("\U0010ffff \ue000 \ufdfa", "e" + "\u0301" * 1000, "<unk> a<unk>b <s></s><cls>", "🏳️‍🌈" * 50, "ends in blanks \t \u3000", "٣٫١٤ ﻻ ﷺ"),
]


def preprocessed(text, lowercase=False, keep_accents=False):
    """zihangdai/xlnet:prepro_utils.py, preprocess_text."""
    text = " ".join(text.strip().split()).replace("``", '"').replace("''", '"')
    if not keep_accents:
        text = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))
    return text.lower() if lowercase else text


@pytest.fixture(scope="module")
def tool():
    return unigram.train(TEXT, 120)


@pytest.fixture
def folder(tool, tmp_path):
    tool.save(tmp_path)
    return tmp_path


def model_of(folder, texts=TEXT, **settings):
    """A folder with a spiece.model that the library trained on `texts` as `settings` say."""
    out = io.BytesIO()
    options = {"vocab_size": 120, "hard_vocab_limit": False, "minloglevel": 2} | settings
    library.SentencePieceTrainer.train(sentence_iterator=iter(texts), model_writer=out, **options)
    (folder / "spiece.model").write_bytes(out.getvalue())
    return folder


def published(folder, lowercase=False, strip_accents=True, texts=TEXT):
    """The tokenizer of a model that the library trained by the published flags, on what the original's rule leaves of `texts`."""
    folder.mkdir(exist_ok=True)
    model_of(folder, **XLNET, texts=[preprocessed(text, lowercase, not strip_accents) for text in texts])
    settings = {"do_lower_case": lowercase, "keep_accents": not strip_accents}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return load(folder)


XLNET = {"control_symbols": SPECIALS[3:8], "user_defined_symbols": ["<eop>", *SYMBOLS]}  # the README's
ALBERT = {"pad_id": 0, "unk_id": 1, "bos_id": -1, "eos_id": -1, "control_symbols": ["[CLS]", "[SEP]", "[MASK]"]}


def test_the_published_ids_and_the_facts_of_the_vocabulary(tool):
    assert [tool.token(i) for i in range(17)] == SPECIALS + SYMBOLS
    held = dataclasses.asdict(tool.vocabulary)
    del held["fingerprint"]
    ids = {"unk": 0, "cls": 3, "sep": 4, "pad": 5, "mask": 6, "eod": 7, "words": 0}
    assert held == ids | {"size": held["size"], "reserved": tuple(range(9))} and 17 < held["size"] <= 120
    with pytest.raises(ValueError, match="outside"):
        tool.token(held["size"])


@pytest.mark.parametrize("lowercase, strip_accents", [(False, True), (True, False)])
def test_ids_are_those_of_the_sentencepiece_library(lowercase, strip_accents, tmp_path):
    ours = published(tmp_path, lowercase, strip_accents)
    theirs = library.SentencePieceProcessor(model_file=str(tmp_path / "spiece.model"))
    for text in [*NASTY, *TEXT[:3]]:
        expected = theirs.encode(preprocessed(text, lowercase, not strip_accents))
        assert ours.encode([text])[0] == expected, text
        ids, words = ours.encode_words([text])[0]
        starts = [ours.token(i).startswith("▁") for i in ids]
        assert ids == expected and [a != b for a, b in zip([None, *words], words, strict=False)] == starts, text


@pytest.mark.parametrize("strip_accents", [True, False])
@pytest.mark.parametrize("text", ["안녕하세요 세계", "Tiếng Việt đầy đủ dấu", "ｶﾞｷﾞ ガギ パピプ", "Ὦ ἄνδρες ᾧ", "مَرْحَبًا"])
def test_what_was_trained_on_is_known_again_in_every_form(text, strip_accents, tmp_path):
    """Korean and accents that are kept, composed or taken apart: the library's ids, and none unknown."""
    ours = published(tmp_path, strip_accents=strip_accents, texts=[text] * 9)
    theirs = library.SentencePieceProcessor(model_file=str(tmp_path / "spiece.model"))
    for form in ("NFC", "NFD"):
        written = unicodedata.normalize(form, text)
        read = preprocessed(written, keep_accents=not strip_accents)
        assert ours.encode([written])[0] == theirs.encode(read) and 0 not in theirs.encode(read), form


def test_a_model_by_the_published_flags_gives_the_librarys_ids(tool, tmp_path):
    """Its punctuation is of a kind of its own, which the library looks for first; our file has none such."""
    ours, theirs = load(model_of(tmp_path, **XLNET)), library.SentencePieceProcessor(model_file=str(tmp_path / "spiece.model"))
    for text in [*NASTY, *TEXT[:3], 'a.b (c)d -£5.00€-- "x".']:
        assert ours.encode([text])[0] == theirs.encode(preprocessed(text)), text
    assert dataclasses.replace(ours.vocabulary, fingerprint="", size=0) == dataclasses.replace(tool.vocabulary, fingerprint="", size=0)


def test_specials_in_a_text_are_letters_and_in_a_prompt_themselves(tool):
    text = " ".join(SPECIALS)
    literal = tool.encode([text, text.replace(" ", "")])
    assert not {1, 2, *range(3, 9)} & {*literal[0], *literal[1]}
    assert tool.encode_prompt(text) == [*range(9), 4, 3]
    the = tool.encode(["The"])[0]
    assert tool.encode_framed("The <mask>") == ([*the, 6, 4, 3], [0] * (len(the) + 2) + [2])
    assert tool.decode(tool.encode_prompt("the fox")).startswith("the fox<sep>")


def test_the_same_texts_give_the_same_bytes(tool, folder, tmp_path):
    again = tmp_path / "again"
    unigram.train(iter(TEXT), 120).save(again)
    names = {"tokenizer.json", "spiece.model", "tokenizer_config.json"}
    assert {path.name for path in again.iterdir()} == names
    assert all((again / name).read_bytes() == (folder / name).read_bytes() for name in names)


@pytest.mark.parametrize("left", [("tokenizer.json", "tokenizer_config.json"), ("spiece.model", "tokenizer_config.json")])
@pytest.mark.parametrize(
    "how",
    thinned([None, Normalization(), Normalization("nfkc", True, True), Normalization("none")], None, Normalization("nfkc", True, True)),
)
def test_a_saved_folder_opens_by_either_file(left, how, tmp_path):
    made = published(tmp_path / "theirs", True, False) if how is None else unigram.train(TEXT, 120, how)
    first = made.extended(["vixen"])
    first.save(tmp_path / "all")
    (tmp_path / "some").mkdir()
    for name in left:
        shutil.copy(tmp_path / "all" / name, tmp_path / "some")
    back = load(tmp_path / "some")
    assert back.vocabulary == first.vocabulary and back.encode([*NASTY, "vixen"]) == first.encode([*NASTY, "vixen"])


def test_alberts_model_lower_cases_and_frames_its_own_way(tmp_path):
    tool = load(model_of(tmp_path, **ALBERT))
    facts = tool.vocabulary
    assert (facts.pad, facts.unk, facts.cls, facts.sep, facts.mask, facts.eod) == (0, 1, 2, 3, 4, -1)
    ids, types = tool.encode_framed("The [MASK]")
    assert ids == [2, *tool.encode(["the"])[0], 4, 3] and set(types) == {0}
    theirs = library.SentencePieceProcessor(model_file=str(tmp_path / "spiece.model"))
    assert tool.encode([*NASTY, *TEXT[:3]]) == [theirs.encode(preprocessed(text, lowercase=True)) for text in [*NASTY, *TEXT[:3]]]


def test_new_pieces_are_words_and_old_ids_stay(tool):
    more = tool.extended(["vixen", "U.S.", " vix", "▁quagga"])
    size = tool.vocabulary.size
    assert more.encode(NASTY + TEXT) == tool.encode(NASTY + TEXT) and more.vocabulary.size == size + 4
    assert more.vocabulary.fingerprint != tool.vocabulary.fingerprint
    assert more.encode(["the vixen U.S. vix quagga"])[0][-4:] == [size, size + 1, size + 2, size + 3]
    assert [more.encode([word])[0] for word in ("vixen", "U.S.", "vix", "quagga")] == [[size], [size + 1], [size + 2], [size + 3]]
    assert more.encode(["vixens"])[0][0] == size and size not in more.encode(["(vixen)"])[0]


@pytest.mark.parametrize(
    "pieces, said",
    [
        (["two words"], "read as 'two words'"),
        (["Cafe\u0301"], "read as 'Café'"),
        (["vix", " vix"], "' vix' is given twice"),
        (["<mask>"], "in the vocabulary already"),
        (["x" * 1_000_000], "'x{20}'... has 1000000 characters; give a piece of at most 511"),
        ([" "], "is blank"),
        ([], "no piece is given"),
    ],
)
def test_pieces_that_no_text_gives_are_refused(tool, pieces, said):
    with pytest.raises(UserError, match=said) as raised:
        tool.extended(pieces)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    "texts, size, said",
    [
        ([], 120, "the input holds no text"),
        ([" ", "\t"], 120, "the input holds no text"),
        (TEXT, 16, "--vocab-size 16: too small; use more: the specials and punctuation alone take 17 pieces"),
        (TEXT, 20, r"--vocab-size 20: too small; .* characters alone take \d+ pieces"),
        (TEXT, 1 << 23, "too large"),
    ],
)
def test_what_cannot_be_trained_on_is_one_line(texts, size, said):
    with pytest.raises(UserError, match=said) as raised:
        unigram.train(texts, size)
    assert "\n" not in str(raised.value)


def test_an_error_of_the_reader_is_not_the_librarys():
    def texts():
        yield from TEXT
        raise UserError("file.txt:7: damaged")

    with pytest.raises(UserError, match="^file.txt:7: damaged$"):
        unigram.train(texts(), 120)


def test_a_character_that_the_library_keeps_for_itself_costs_no_text():
    """The library would leave out every text that holds one."""
    tool = unigram.train(["zebra▅quagga"] * 9, 60)
    assert 0 not in tool.encode(["zebra quagga"])[0] and tool.encode(["▅"])[0][-1] == 0


def test_marks_of_every_kind_are_accents_unless_they_are_kept(tmp_path):
    """As in transformers: the vowels of Hindi are marks too, of which the original would drop none that has no combining class."""
    reads = lambda tool, text: tool.decode(tool.encode([text])[0])
    kept, without = (published(tmp_path / str(strip), False, strip, ["हिन्दी"] * 9) for strip in (False, True))
    assert reads(kept, "हिन्दी") == "हिन्दी" and reads(without, "हिन्दी") == "हनद"


def test_long_texts_are_cut_and_not_left_out(monkeypatch):
    """The library would leave out what is longer than its limit, here 4 · 512 bytes: all of the text."""
    monkeypatch.setattr("jaxenc.data.tokenizers.sentencepiece.trainer.LONGEST", 512)
    tool = unigram.train(["zebra quagga " * 400, "q" * 2_500], 60)
    assert 0 not in tool.encode(["zebra quagga"])[0]


@pytest.mark.parametrize(
    "settings, said",
    [
        (
            {},
            r"no piece is known to be its pad, cls, sep, mask \(it lacks <pad> <cls> <sep> <mask> of XLNet\); name pieces of the model as ",
        ),
        ({"pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1}, "lacks <cls> <sep> <mask>"),  # T5's
    ],
)
def test_r12_a_model_without_known_special_pieces_is_refused_in_one_line(settings, said, tmp_path):
    with pytest.raises(Unsupported, match=said) as raised:
        load(model_of(tmp_path, **settings))
    assert "\n" not in str(raised.value) and "spiece.model" in str(raised.value)


def test_a_file_of_older_transformers_gives_the_ids_of_the_library(tmp_path):
    """As the published XLNets have it: no kind of the model, white space joined by a rule, another spelling of the splitter, and letters
    that are not composed before the table of characters."""
    tool, folder = published(tmp_path / "theirs"), tmp_path / "ours"
    tool.save(folder)
    data = json.loads((folder / "tokenizer.json").read_text())
    del data["model"]["type"], data["model"]["byte_fallback"]
    rules = [rule for rule in data["normalizer"]["normalizers"] if rule["type"] != "NFC"]
    data["normalizer"]["normalizers"] = [*rules, {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}]
    data["pre_tokenizer"]["pretokenizers"][1] = {"type": "Metaspace", "replacement": "▁", "str_rep": "▁", "add_prefix_space": True}
    (folder / "tokenizer.json").write_text(json.dumps(data))
    (folder / "tokenizer_config.json").unlink()
    opened, reference = load(folder), tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    assert opened.encode_prompt("The <mask>") == tool.encode_prompt("The <mask>") and opened.vocabulary.reserved == tool.vocabulary.reserved
    texts = [text for text in NASTY if "<" not in text]  # which is letters here and there a piece
    assert opened.encode(texts) == [reference.encode(text, add_special_tokens=False).ids for text in texts]
    assert opened.encode_flat(NASTY).tokens.tolist() == [index for ids in opened.encode(NASTY) for index in ids]


def test_a_model_that_was_cut_off_is_one_line(folder, tmp_path):
    bare = tmp_path / "bare"
    bare.mkdir()
    content = (folder / "spiece.model").read_bytes()
    for end in (1, 100, len(content) // 2, len(content) - 1):
        (bare / "spiece.model").write_bytes(content[:end])
        with pytest.raises(UserError, match="spiece.model: not a SentencePiece model; make the tokenizer again, or copy it again"):
            load(bare)


def test_damaged_files_are_one_line(folder, tmp_path):
    bare = tmp_path / "bare"
    bare.mkdir()
    for content in (b"", b"\xff\xff\xff\xff", b"<html>"):
        (bare / "spiece.model").write_bytes(content)
        with pytest.raises(UserError, match="spiece.model"):
            load(bare)
    (bare / "spiece.model").rename(bare / "tokenizer.model")
    with pytest.raises(UserError, match="tokenizer.model: not a SentencePiece model"):
        load(bare)
    (folder / "spiece.model").unlink()
    data = json.loads((folder / "tokenizer.json").read_text())
    for edit, said in (
        (lambda d: d["model"].update(vocab=7), "damaged"),
        (lambda d: d.update(normalizer={"type": "Foo"}), "normalizer: damaged"),
        (lambda d: d["model"]["vocab"].append(d["model"]["vocab"][20]), "stands twice in it"),
        (lambda d: d["model"]["vocab"].append(["x" * 1_000_000, 0.0]), "model.vocab: damaged"),
    ):
        changed = json.loads(json.dumps(data))
        edit(changed)
        (folder / "tokenizer.json").write_text(json.dumps(changed))
        with pytest.raises(UserError, match=said):
            load(folder)


@pytest.fixture
def store(folder, tmp_path):
    (tmp_path / "text.txt").write_text("\n\n".join(["The fox. The dog!", "Again and again."] * 8))
    build([str(tmp_path / "text.txt")], folder, tmp_path / "data", 0.0)
    return tmp_path / "data"


def test_a_data_folder_keeps_the_ends_and_streams_show_them(store, tool):
    assert manifest.read(store).tokenizer == tool.vocabulary
    streams = open_batches(DataConfig(str(store), 12, "streams", reuse=4), "train", 2, 0, 0)
    shown = np.concatenate([streams.batch_at(step)["tokens"][0, :4] for step in range(len(streams))])
    tokens, documents = open_split(store, "train").tokens, 16
    assert (shown[: len(tokens) + documents] == 7).sum() == documents and shown[len(tokens) + documents - 1] == 7


def test_a_manifest_from_before_the_ends_still_opens(data, tmp_path):
    old = tmp_path / "old"
    shutil.copytree(data, old)
    facts = json.loads((old / "manifest.json").read_text())
    assert facts["tokenizer"].pop("eod") == -1
    (old / "manifest.json").write_text(json.dumps(facts))
    assert open_split(old, "train").manifest == open_split(data, "train").manifest
