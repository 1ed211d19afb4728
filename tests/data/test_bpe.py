import json
import os
import subprocess
import sys
import time
import unicodedata

import numpy as np
import pytest
import tokenizers as library

from jaxenc.data import sentences
from jaxenc.data.build import build
from jaxenc.data.store import open_split
from jaxenc.data.tokenizers import bpe, byte_letters, load
from jaxenc.data.tokenizers.normalization import Normalization
from jaxenc.errors import UserError

SPECIALS = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
TEXT = ["The quick brown fox jumps over the lazy dog, again and again.", "I go to <mask> today </s> x, don't I?", "Kantō 京都 again"] * 4
GPT2 = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}  # the splitter of published files
NASTY = [
    *("", " ", "  two  blanks  ", "a\tb\n\nc\r\n", "\u00a0x\u00a0", "\0 a\0b", "\u0e38", "\u0301a", "\x1c\x85\u2028\u200b\ufeff\ufffd"),
    *(
        "🥱 📷🤏 🦾 👨‍👩‍👧 🇮🇸 👍🏽",
        "สวัสดีชาวโลก",
        "日本語。世界!",
        "é e\u0301 ﬁ İ",
        "don't I'll we've",
        "<s>x</s> <pad> <unk> <mask>",
        "Ġ Ā ā",
    ),
    *("x" * 10_000, "word " * 2_000),
]


@pytest.fixture(scope="module")
def tool():
    return bpe.train(TEXT, 300)


@pytest.fixture
def folder(tool, tmp_path):
    tool.save(tmp_path)
    return tmp_path


def change(folder, edit):
    """Applies edit(data) to the folder's tokenizer.json."""
    path = folder / "tokenizer.json"
    data = json.loads(path.read_text())
    edit(data)
    path.write_text(json.dumps(data))


def words_of(text):
    """An independent splitter: runs of letters, digits or other marks with the blank before them; of blanks all but the last."""
    kind = lambda c: "blank" if c.isspace() else "letter" if c.isalpha() else "digit" if c.isdigit() else "mark"
    out, at = [], 0
    while at < len(text):
        end = at + (text[at] == " " and at + 1 < len(text) and kind(text[at + 1]) != "blank")
        own = kind(text[end])
        while end < len(text) and kind(text[end]) == own:
            end += 1
        if own == "blank" and end < len(text) and end - at > 1:
            end -= 1
        out.append(text[at:end])
        at = end
    return out


def slow_ids(text, vocab, merges):
    """Byte-level BPE by its definition: in every word the pair of lowest rank is merged, leftmost first, until none is left."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    letters = {byte: chr(byte) for byte in printable}
    letters |= {byte: chr(256 + n) for n, byte in enumerate(b for b in range(256) if b not in letters)}
    rank, out = {pair: n for n, pair in enumerate(merges)}, []
    for word in words_of(text):
        pieces = [letters[byte] for byte in word.encode()]
        while len(pieces) > 1:
            best = min(range(len(pieces) - 1), key=lambda i: rank.get((pieces[i], pieces[i + 1]), len(rank)))
            if (pieces[best], pieces[best + 1]) not in rank:
                break
            pieces[best : best + 2] = [pieces[best] + pieces[best + 1]]
        out += [vocab[piece] for piece in pieces]
    return out


def test_ids_follow_the_definition(folder, tool):
    vocab = json.loads((folder / "vocab.json").read_text())
    merges = [tuple(line.split(" ")) for line in (folder / "merges.txt").read_text().split("\n")[1:-1]]
    assert len(merges) == 300 - 261 and list(vocab.values()) == list(range(300))
    texts = [text for text in [*TEXT[:1], *NASTY[:12]] if "'" not in text and "\x1c" not in text]
    assert len(texts) > 10 and tool.encode(texts) == [slow_ids(text, vocab, merges) for text in texts]


def test_layout_and_special_ids(tool):
    facts = tool.vocabulary
    assert [tool.token(i) for i in (0, 1, 2, 3, 299)] == SPECIALS
    assert (facts.size, facts.cls, facts.pad, facts.sep, facts.unk, facts.mask) == (300, 0, 1, 2, 3, 299)
    assert facts.reserved == (0, 1, 2, 3, 299)


def test_every_text_comes_back_and_holds_no_special(tool):
    assert [tool.decode(ids) for ids in tool.encode(NASTY)] == [unicodedata.normalize("NFC", text) for text in NASTY]
    as_is = bpe.train(TEXT, 300, Normalization("none"))
    assert [as_is.decode(ids) for ids in as_is.encode(NASTY)] == NASTY != [unicodedata.normalize("NFC", text) for text in NASTY]
    assert not {i for ids in tool.encode(NASTY) for i in ids} & set(tool.vocabulary.reserved)


def test_a_prompt_is_framed_and_its_mask_takes_the_blank_before_it(tool):
    prompt = tool.encode_prompt("I go to <mask> today")
    assert prompt == [0, *tool.encode(["I go to"])[0], 299, *tool.encode([" today"])[0], 2]
    assert tool._prompt.encode("a", "b").ids == [0, *tool.encode(["a"])[0], 2, 2, *tool.encode(["b"])[0], 2]


def test_training_is_the_same_in_any_process(corpus, tmp_path):
    script = "import sys; from jaxenc.data.tokenizers import bpe; bpe.train(open(sys.argv[1]).read().split('\\n'), 500).save(sys.argv[2])"
    for seed, threads in (("1", "1"), ("2", "3")):
        environment = os.environ | {"PYTHONHASHSEED": seed, "RAYON_NUM_THREADS": threads}
        subprocess.run([sys.executable, "-c", script, str(corpus), str(tmp_path / seed)], env=environment, check=True)
    names = sorted(os.listdir(tmp_path / "1"))
    assert names == ["merges.txt", "tokenizer.json", "tokenizer_config.json", "vocab.json"]
    for name in names:
        assert (tmp_path / "1" / name).read_bytes() == (tmp_path / "2" / name).read_bytes()


def test_long_lines_are_trained_on_like_short_ones_and_long_words_in_bounded_time(corpus, monkeypatch):
    lines = corpus.read_text().split()
    whole = bpe.train([" ".join(lines)], 400)
    monkeypatch.setattr(bpe, "LONGEST", 50)
    assert bpe.train([" ".join(lines)], 400).vocabulary == whole.vocabulary
    monkeypatch.undo()
    letters = "".join(np.random.default_rng(0).choice(list("abcdefgh"), 1 << 17))
    started = time.process_time()
    assert bpe.train([letters], 1000).vocabulary.size == 1000
    assert time.process_time() - started < 5  # without a cut more than ten times as long


@pytest.mark.parametrize("size, texts, said", [(260, TEXT, "take 261 pieces"), (10**12, TEXT, "too large"), (300, ["", " \n"], "no text")])
def test_training_on_nothing_or_for_an_impossible_size(size, texts, said):
    with pytest.raises(UserError, match=said):
        bpe.train(texts, size)


def test_bytes_alone_are_a_vocabulary():
    tool = bpe.train(TEXT, 261, Normalization("none"))
    assert tool.vocabulary.size == 261 and [tool.decode(ids) for ids in tool.encode(NASTY)] == NASTY


def test_an_error_of_the_reader_is_not_swallowed():
    def texts():
        yield "a"
        raise UserError("a.txt:2: damaged")

    with pytest.raises(UserError, match="a.txt:2"):
        bpe.train(texts(), 300)


def test_all_files_open_as_the_same_tokenizer(folder, tool):
    """Without tokenizer_config.json, GPT-2's two files have no rule but to take texts as they are."""
    prompts = [*NASTY, "a <mask> b"]
    assert load(folder).vocabulary == tool.vocabulary
    (folder / "tokenizer.json").unlink()
    assert load(folder).vocabulary == tool.vocabulary
    assert [load(folder).encode_prompt(p) for p in prompts] == [tool.encode_prompt(p) for p in prompts]
    (folder / "tokenizer_config.json").unlink()
    (folder / "merges.txt").write_bytes((folder / "merges.txt").read_bytes().replace(b"\n", b"\r\n"))
    assert load(folder).vocabulary != tool.vocabulary
    load(folder).save(folder / "saved")
    assert json.loads((folder / "saved" / "tokenizer.json").read_text())["pre_tokenizer"] == GPT2
    assert load(folder / "saved").vocabulary == load(folder).vocabulary and load(folder).encode(TEXT) == tool.encode(TEXT)


def test_files_of_other_years_open_as_the_same_ids(folder, tool):
    """Old files name no type of the model and write merges as strings; settings of truncation stay in published ones."""

    def edit(data):
        del data["model"]["type"], data["model"]["ignore_merges"]
        data["pre_tokenizer"] = {name: value for name, value in GPT2.items() if name != "use_regex"}
        data["model"]["merges"] = [" ".join(pair) for pair in data["model"]["merges"]]
        data["model"] |= {"continuing_subword_prefix": "", "end_of_word_suffix": ""}
        data["truncation"] = {"direction": "Right", "max_length": 4, "strategy": "LongestFirst", "stride": 0}
        text, token = (lambda n: {"Sequence": {"id": n, "type_id": 0}}), (lambda t: {"SpecialToken": {"id": t, "type_id": 0}})
        single = [token("<s>"), text("A"), token("</s>")]
        data["post_processor"] = {
            "type": "TemplateProcessing",
            "single": single,
            "pair": [*single, token("</s>"), text("B"), token("</s>")],
            "special_tokens": {t: {"id": t, "ids": [n], "tokens": [t]} for t, n in (("<s>", 0), ("</s>", 2))},
        }

    change(folder, edit)
    opened = load(folder)
    assert opened.encode_prompt("a <mask> b") == tool.encode_prompt("a <mask> b")
    data = json.loads((folder / "tokenizer.json").read_text())
    assert opened.vocabulary == bpe.from_json(folder, data).vocabulary


def test_slots_and_added_pieces_of_a_published_file(folder, tool):
    def edit(data):
        data["model"]["vocab"] |= {"madeupword0000": 300}
        flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": True}
        data["added_tokens"] += [
            {"id": 301, "content": "new word", "special": False, **flags},
            {"id": 302, "content": "<x>", "special": True, **flags},
        ]

    change(folder, edit)
    (folder / "vocab.json").unlink()
    opened = load(folder)
    assert opened.vocabulary.size == 303 and opened.vocabulary.reserved == (0, 1, 2, 3, 299, 300, 302)
    assert opened.vocabulary.fingerprint != tool.vocabulary.fingerprint
    assert opened.encode(["a new word<x>"])[0] == [*tool.encode(["a "])[0], 301, *tool.encode(["<x>"])[0]]
    assert opened.encode_prompt("<x>") == [0, 302, 2]
    opened.save(folder)
    assert load(folder).vocabulary == opened.vocabulary


def test_added_pieces_are_found_wherever_they_stand(tool, tmp_path):
    more = tool.extended(["newton", " Ångström", "日本"])
    ids = lambda text: tool.encode([text])[0]
    assert more.vocabulary.size == 303 and more.vocabulary.reserved == tool.vocabulary.reserved
    assert [more.token(i) for i in (299, 300, 301, 302)] == ["<mask>", "newton", " Ångström", "日本"]
    text = "the xnewtons 日本 Ångström. Ångström"
    expected = [*ids("the x"), 300, *ids("s "), 302, 301, *ids("."), 301]
    assert more.encode([text])[0] == expected and more.decode(expected) == text
    assert more.encode_prompt("newton <mask>") == [0, 300, 299, 2]
    more.save(tmp_path)
    assert load(tmp_path).vocabulary == more.vocabulary != tool.vocabulary
    (tmp_path / "tokenizer.json").unlink()
    assert load(tmp_path).vocabulary == more.vocabulary and load(tmp_path).encode([text])[0] == expected
    assert more.extended(["again and"]).encode(["newton again and"])[0] == [300, *ids(" "), 303]
    with pytest.raises(UserError, match="in the vocabulary already"):
        more.extended(["newton"])
    with pytest.raises(UserError, match="'Ġnewton' is never found in a text: Ġ is how the files write a blank; write ' newton'"):
        more.extended(["Ġnewton"])
    word = next(tool.token(i) for i in range(299) if tool.token(i)[0] == "Ġ" and len(tool.token(i)) > 2)
    with pytest.raises(UserError, match=f"' {word[1:]}' is in the vocabulary already, as '{word}'"):
        more.extended([f" {word[1:]}"])
    assert tool.extended([" Ġermanja"]).encode(["a Ġermanja"])[0] == [*ids("a"), 300]


@pytest.mark.parametrize("letter", ["é", "þ", "Å", "Ā", "ń"])
def test_a_letter_that_is_also_how_a_byte_is_written_can_be_added(letter, tmp_path):
    """It is found wherever it stands, though the texts trained on have merged its first byte with the blank before it; é alone is byte
    233 in vocab.json, so an added piece é would take the byte's id. Other texts keep their ids."""
    tool = bpe.train(["à la carte, à Ève, ÿ ī ő ł ś", *TEXT] * 3, 330)
    assert tool.token(tool.encode([" à"])[0][0]) == "ĠÃ"
    size, ids = tool.vocabulary.size, lambda text: tool.encode([text])[0]
    more = tool.extended(["quagga", letter])
    more.save(tmp_path / "both")
    more.save(tmp_path / "files")
    (tmp_path / "files" / "tokenizer.json").unlink()
    expected = [*ids("caf"), size + 1, *ids("s"), *ids(" "), size + 1, *ids(", à"), size]
    for opened in (more, load(tmp_path / "both"), load(tmp_path / "files")):
        assert opened.encode([f"caf{letter}s {letter}, àquagga"])[0] == expected
        assert opened.vocabulary == more.vocabulary and opened.decode(expected) == f"caf{letter}s {letter}, àquagga"
        assert opened.readable(size + 1) == letter and opened.encode(TEXT) == tool.encode(TEXT)
    with pytest.raises(UserError, match=f"'{letter}' is in the vocabulary already"):
        more.extended([letter])


def test_added_pieces_are_normalized_as_texts_are(tmp_path):
    """As add_tokens of transformers does: in a lower-case vocabulary a text may write the piece in any case, also after a save."""
    tool = bpe.train(TEXT, 300, Normalization(lowercase=True))
    size, ids = tool.vocabulary.size, lambda text: tool.encode([text])[0]
    more = tool.extended(["covid"])
    more.save(tmp_path)
    for opened in (more, load(tmp_path)):
        assert opened.encode(["a COVID, Covid"])[0] == [*ids("a "), size, *ids(", "), size]


@pytest.mark.parametrize(
    "rule, piece, read", [(Normalization(lowercase=True), "NASA", "nasa"), (Normalization(), "cafe\u0301", "caf\u00e9")]
)
def test_a_piece_that_is_read_as_another_is_refused(rule, piece, read):
    """The folder with it could not be opened: its two files would disagree."""
    with pytest.raises(UserError, match=f"'{piece}' is read as '{read}' in a text; write it as it is read"):
        bpe.train(TEXT, 300, rule).extended([piece])
    bpe.train(TEXT, 300, Normalization("none")).extended([piece])


@pytest.mark.parametrize(
    "edit",
    [
        lambda d: d.update(pre_tokenizer={"type": "Whitespace"}),
        lambda d: d.update(normalizer={"type": "NFD"}),
        lambda d: d.update(pre_tokenizer=GPT2 | {"add_prefix_space": True}),
        lambda d: d["pre_tokenizer"]["pretokenizers"][0]["pattern"].update(Regex="."),
        lambda d: d["model"].update(ignore_merges=True),
        lambda d: d.update(post_processor={"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}),
        lambda d: (d["model"]["vocab"].pop("<mask>"), d["added_tokens"].pop()),
    ],
)
def test_r16_other_rules_are_those_of_the_library(folder, edit):
    """With a normalizer, another splitter, other settings of the merges, no frame, or no mask."""
    change(folder, edit)
    (folder / "vocab.json").unlink()
    (folder / "tokenizer_config.json").unlink()
    reference, opened = library.Tokenizer.from_file(str(folder / "tokenizer.json")), load(folder)
    for text in TEXT:
        assert opened.encode_prompt(text) == reference.encode(text).ids
    opened.save(folder / "saved")
    assert load(folder / "saved").vocabulary == opened.vocabulary


@pytest.mark.parametrize(
    "edit, said",
    [
        (lambda d: d["model"].update(type="WordLevel"), "model: damaged"),
        (lambda d: d["model"]["vocab"].update(x=7), "ids are not 0 to 299"),
        (lambda d: d["model"]["merges"].append(["a", "qqq"]), "`qqq` out of vocabulary"),
        (lambda d: d["model"]["merges"].append(["a", "b", "c"]), "model: damaged"),
        (lambda d: d["model"].update(vocab=5), "damaged"),
        (lambda d: d["model"].pop("merges"), "damaged"),
        (lambda d: d["added_tokens"][0].pop("lstrip"), "damaged"),
        (lambda d: d.update(added_tokens=[3]), "damaged"),
        (lambda d: d.update(post_processor={"type": "TemplateProcessing", "single": [1]}), "post_processor: damaged"),
    ],
)
def test_damaged_files_are_one_line(folder, edit, said):
    change(folder, edit)
    with pytest.raises(UserError) as caught:
        load(folder)
    assert "tokenizer.json: " in str(caught.value) and said in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "name, content, said",
    [
        ("merges.txt", None, "merges.txt: No such file"),
        ("merges.txt", b"#version: 0.2\na b c\n", "merges.txt: damaged"),
        ("merges.txt", b"\xff\n", "merges.txt:1: not UTF-8"),
        ("vocab.json", b"[]", "vocab.json: holds no JSON object"),
        ("vocab.json", b'{"a": 0}', "vocab.json: ids are not"),
        ("tokenizer_config.json", b'{"added_tokens_decoder": 1}', "tokenizer_config.json: added_tokens_decoder: damaged"),
        ("tokenizer_config.json", b'{"word_pattern": "words"}', "word_pattern is 'words'; write gpt2 or marks"),
    ],
)
def test_damaged_pairs_of_files_are_one_line(folder, name, content, said):
    (folder / "tokenizer.json").unlink()
    if content is None:
        (folder / name).unlink()
    else:
        (folder / name).write_bytes(content)
    with pytest.raises(UserError) as caught:
        load(folder)
    assert said in str(caught.value) and "\n" not in str(caught.value)


def test_r16_a_vocabulary_without_a_byte_opens(folder):
    """It gives nothing for that byte, as the library, which has no unknown piece here."""

    def edit(data):
        data["model"]["vocab"]["qqq"] = data["model"]["vocab"].pop("Ą")

    change(folder, edit)
    (folder / "vocab.json").unlink()
    assert load(folder).encode(["\x04a"]) == load(folder).encode(["a"])


def test_pieces_can_be_read(tool):
    """Whole characters are written out, against the tokenizers library's own decoder; parts of one are hexadecimal, blanks stay letters."""
    for index, piece in ((index, tool.token(index)) for index in range(tool.vocabulary.ids)):
        decoded = tool.decode([index])
        if "\ufffd" not in decoded and not any(c.isspace() or not c.isprintable() for c in decoded):
            assert tool.readable(index) == decoded
        assert not any(c.isspace() for c in tool.readable(index)), piece
    assert byte_letters.readable("\u0120\u00e0\u00b8\u0136") == "\u0120ด" and byte_letters.readable("\u00e0\u00b8") == "\\xe0\\xb8"
    assert byte_letters.readable("ดี") == "ดี"
    assert set(byte_letters.letters()) == bpe.BYTES and sorted(byte_letters.letters().values()) == list(range(256))
    added = tool.extended(["éé"])
    assert added.readable(added.vocabulary.ids - 1) == "éé"


def test_sentences_of_a_line_have_the_ids_of_the_line(tool):
    """All but the kinds that sentences.split names: no mark right behind 。！？, no U+001C to U+001F."""
    rng, words = (
        np.random.default_rng(0),
        ["Mr.", "He", "said!", "(Why?)", "“No.”", "U.S.", "東京。", "バ！", "don't", "🦾.", "12.", "Ünder", "x"],
    )
    gaps = [" ", "  ", "\t", "\u00a0", " \u2003 "]
    for _ in range(300):
        line = "".join(rng.choice(words) + rng.choice(gaps, p=[0.6, 0.1, 0.1, 0.1, 0.1]) for _ in range(rng.integers(1, 12))).strip()
        parts = sentences.split(line)
        assert [i for ids in tool.encode(parts) for i in ids] == tool.encode([line])[0], line
    assert tool.encode(sentences.split("東京。バ")) == tool.encode(["東京。", "バ"])


def test_a_data_folder_of_bytes(tool, corpus, tmp_path):
    tool.save(tmp_path / "tok")
    build([str(corpus)], tmp_path / "tok", tmp_path / "out", 0.0)
    shards = open_split(tmp_path / "out", "train")
    tokens = shards.tokens.take(np.arange(len(shards.tokens))).tolist()
    lines = [line for line in corpus.read_text().split("\n") if line]
    assert tokens == [i for ids in tool.encode(lines) for i in ids] and tool.decode(tokens) == "".join(lines)
