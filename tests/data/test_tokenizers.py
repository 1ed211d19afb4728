import json
import shutil
import tempfile
from pathlib import Path

import pytest

from jaxenc.data.tokenizers import load, wordpiece
from jaxenc.data.tokenizers.normalization import Normalization
from jaxenc.data.tokenizers.wordpiece_rules import PublishedRules
from jaxenc.errors import UserError

SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
TEXT = ["The quick brown fox jumps over the lazy dog, again and again.", "i go to [MASK] today [SEP] x", "mask masks pad sep unk"] * 4


def published(texts, size, lowercase=True, strip_accents=True):
    """A vocabulary of texts that is read by BERT's own rule."""
    with tempfile.TemporaryDirectory() as folder:
        wordpiece.train(texts, size, Normalization("nfc", lowercase, strip_accents)).save(folder)
        return wordpiece.from_vocab(Path(folder) / "vocab.txt", PublishedRules(lowercase, strip_accents))


def vocab(tmp_path, pieces, specials=SPECIALS):
    path = tmp_path / "vocab.txt"
    path.write_bytes("".join(piece + "\n" for piece in [*specials, *pieces]).encode())
    return path


def test_training_twice_gives_the_same_bytes(corpus, tmp_path):
    """The library alone orders the continuation characters by a randomly seeded map: 17 of them agree by chance once in 10^14."""
    for name in ("one", "two"):
        wordpiece.train(corpus.read_text().split("\n"), 120).save(tmp_path / name)
    for name in ("vocab.txt", "tokenizer.json", "tokenizer_config.json"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_trained_vocabulary_has_specials_first_and_the_size_asked_for(corpus):
    tool = wordpiece.train(corpus.read_text().split("\n"), 80)
    assert [tool.token(i) for i in range(5)] == SPECIALS
    facts = tool.vocabulary
    assert (facts.size, facts.pad, facts.unk, facts.cls, facts.sep, facts.mask) == (80, 0, 1, 2, 3, 4)
    assert facts.reserved == (0, 1, 2, 3, 4)
    assert 1 not in tool.encode([corpus.read_text()])[0]
    with pytest.raises(ValueError, match="outside"):
        tool.token(80)


@pytest.mark.parametrize("how", [published, lambda texts, size, *rule: wordpiece.train(texts, size, Normalization("nfkc", *rule))])
@pytest.mark.parametrize("lowercase, strip_accents", [(True, True), (True, False), (False, False), (False, True)])
def test_both_files_open_as_the_same_tokenizer(tmp_path, how, lowercase, strip_accents):
    made = how(TEXT, 90, lowercase, strip_accents)
    made.save(tmp_path)
    from_json = load(tmp_path)
    (tmp_path / "tokenizer.json").unlink()
    from_vocab = load(tmp_path)
    assert made.vocabulary == from_json.vocabulary == from_vocab.vocabulary
    text = "The Quick Ångström fox"
    assert made.encode([text]) == from_json.encode([text]) == from_vocab.encode([text])


def test_an_old_tokenizer_json_does_not_say_the_type_of_its_model(tmp_path):
    made = wordpiece.train(TEXT, 90)
    made.save(tmp_path)
    data = json.loads((tmp_path / "tokenizer.json").read_text())
    del data["model"]["type"]
    (tmp_path / "tokenizer.json").write_text(json.dumps(data))
    assert load(tmp_path).vocabulary == made.vocabulary


def test_settings_and_order_change_the_fingerprint(tmp_path):
    (tmp_path / "other").mkdir()
    a, b = vocab(tmp_path, ["a", "b"]), vocab(tmp_path / "other", ["b", "a"])
    prints = {
        wordpiece.from_vocab(path, PublishedRules(lower, strip)).vocabulary.fingerprint
        for path in (a, b)
        for lower in (True, False)
        for strip in (True, False)
    }
    assert len(prints) == 8


def test_b19_special_pieces_are_text_in_a_corpus_and_special_in_a_prompt():
    tool = published(TEXT, 90)
    text = "i go to [MASK] today [SEP] x [CLS] [PAD]"
    assert not set(tool.encode([text])[0]) & set(range(5))
    assert tool.decode(tool.encode([text])[0]).replace(" ", "").startswith("igoto[mask]today[sep]x")
    prompt = tool.encode_prompt("i go to [MASK] today")
    assert (prompt[0], prompt[-1], prompt.count(4)) == (2, 3, 1)
    assert prompt[1 : prompt.index(4)] == tool.encode(["i go to"])[0] and tool.decode(prompt) == "[CLS] i go to [MASK] today [SEP]"


def test_unused_slots_are_reserved(tmp_path):
    path = vocab(tmp_path, ["a", "[unused7]", "[used]"], ["[PAD]", "[unused0]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])
    facts = wordpiece.from_vocab(path, PublishedRules(True, True)).vocabulary
    assert facts.reserved == (0, 1, 2, 3, 4, 5, 7) and (facts.unk, facts.mask, facts.size) == (2, 5, 9)


@pytest.mark.parametrize("missing", SPECIALS)
def test_b10_a_vocabulary_without_a_special_is_refused_by_name(tmp_path, missing):
    path = vocab(tmp_path, ["a"], [piece for piece in SPECIALS if piece != missing])
    with pytest.raises(UserError, match=f"lacks \\{missing[:-1]}"):
        wordpiece.from_vocab(path, PublishedRules(True, True))


def test_blanks_of_other_scripts_are_pieces(tmp_path):
    """As published vocabularies have them; only what ends a line or would be stripped cannot be one."""
    tool = wordpiece.from_vocab(vocab(tmp_path, ["\u3000", "\u00a0", "\u2028", "a"]), PublishedRules(True, True))
    assert tool.vocabulary.size == 9 and tool.encode(["a\u3000a"]) == [[8, 8]]
    tool.save(tmp_path / "again")
    assert load(tmp_path / "again").vocabulary == tool.vocabulary


@pytest.mark.parametrize(
    "settings, said",
    [
        ({"do_lower_case": "yes"}, "do_lower_case, strip_accents and tokenize_chinese_chars are 'yes', None and True"),
        ({"strip_accents": 1}, "do_lower_case, strip_accents and tokenize_chinese_chars are True, 1 and True"),
        (
            {"word_tokenizer_type": "mecab", "subword_tokenizer_type": "wordpiece"},
            "word_tokenizer_type and subword_tokenizer_type are ('mecab', 'wordpiece')",
        ),
    ],
)
def test_settings_that_a_lone_vocabulary_cannot_follow_are_one_line(tmp_path, settings, said):
    vocab(tmp_path, ["a"])
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
    with pytest.raises(UserError) as caught:
        load(tmp_path)
    assert said in str(caught.value) and str(tmp_path) in str(caught.value) and "\n" not in str(caught.value)


def test_chinese_characters_may_stay_together(tmp_path):
    """As Japanese models have it, in both forms of a folder; the vocabulary is another one than with a blank around each character."""
    (tmp_path / "apart").mkdir()
    vocab(tmp_path / "apart", ["日", "本", "日本", "##本"])
    apart = load(tmp_path / "apart")
    shutil.copytree(tmp_path / "apart", tmp_path / "vocab")
    (tmp_path / "vocab" / "tokenizer_config.json").write_text('{"tokenize_chinese_chars": false}')
    together = load(tmp_path / "vocab")
    together.save(tmp_path / "json")
    (tmp_path / "json" / "vocab.txt").unlink()
    tokens = lambda tool: [tool.token(i) for i in tool.encode(["日本"])[0]]
    assert (tokens(apart), tokens(together), tokens(load(tmp_path / "json"))) == (["日", "本"], ["日本"], ["日本"])
    assert together.vocabulary == load(tmp_path / "json").vocabulary
    assert together.vocabulary.fingerprint != apart.vocabulary.fingerprint


def test_b10_byte_order_mark_line_ends_and_encoding_of_a_vocabulary(tmp_path):
    path = vocab(tmp_path, ["a"])
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert wordpiece.from_vocab(path, PublishedRules(True, True)).token(5) == "a"
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    with pytest.raises(UserError, match=":1: starts with a byte order mark"):
        wordpiece.from_vocab(path, PublishedRules(True, True))
    path.write_bytes(b"a\n\xff\n")
    with pytest.raises(UserError, match=":2: not UTF-8"):
        wordpiece.from_vocab(path, PublishedRules(True, True))


@pytest.mark.parametrize(
    "text, lower, strip, pieces",
    [
        ("Kantō Ångström İstanbul lǜshi", True, True, "kanto angstrom istanbul lushi"),
        ("Kantō Ångström", True, False, "kantō ångström"),
        ("バで Kantō", False, False, "バで Kantō"),
        ("shoot\x97 TOO\u200d\ufffd\0!", True, True, "shoot too!"),  # Cc, Cf, U+FFFD and NUL vanish
        ("ﬁn", True, True, "ﬁn"),
    ],
)
def test_b16_b21_b23_the_published_rule_loses_no_letter_of_latin_and_japanese(text, lower, strip, pieces):
    tool = published([pieces] * 3, 80, lower, strip)
    assert tool.decode(tool.encode([text])[0]).replace(" ", "") == pieces.replace(" ", "")


def test_b17_b20_emoji_and_texts_without_tokens_encode():
    tool = published(["a 🥱 🦾 👍🏽 b 👨‍👩‍👧 🇮🇸"] * 3, 60)
    ids = tool.encode(["🥱 👍🏽 👨‍👩‍👧 🇮🇸", "📷", "", "   ", "\0", "\u200d"])
    assert ids[0] and 1 not in ids[0] and ids[1:] == [[1], [], [], [], []]


def test_saved_settings_are_those_of_a_bert_of_transformers(tmp_path):
    published(TEXT, 90, lowercase=False, strip_accents=False).save(tmp_path)
    config = json.loads((tmp_path / "tokenizer_config.json").read_text())
    assert config["tokenizer_class"] == "BertTokenizer" and config["do_lower_case"] is False and config["strip_accents"] is False
    assert [config[f"{name}_token"] for name in ("pad", "unk", "cls", "sep", "mask")] == SPECIALS


def test_an_extended_vocabulary_finds_the_new_words_and_keeps_every_id(tmp_path):
    old = published(TEXT, 90)
    size = old.vocabulary.size
    tool = old.extended(["zyxwv", "##qqq", "中"])
    assert tool.vocabulary.size == size + 3 and tool.vocabulary.fingerprint != old.vocabulary.fingerprint
    assert [tool.token(i) for i in range(size)] == [old.token(i) for i in range(size)]
    assert tool.encode(["ZYXWV", "zyxwvqqq", "a 中"]) == [[size], [size, size + 1], [*old.encode(["a"])[0], size + 2]]
    assert old.encode(TEXT) == tool.encode(TEXT) and old.vocabulary.reserved == tool.vocabulary.reserved
    tool.save(tmp_path)
    assert load(tmp_path).vocabulary == tool.vocabulary and load(tmp_path).encode(["zyxwv"]) == [[size]]
    assert tool.extended(["vwxyz"]).encode(["zyxwv vwxyz"]) == [[size, size + 3]]


@pytest.mark.parametrize(
    "pieces, said",
    [
        ([], "no piece is given"),
        (["new", " "], "' ' is blank"),
        (["new", "new"], "'new' is given twice"),
        (["a\udcff"], "which is not a character; give text in UTF-8"),
        (["a"], "'a' is in the vocabulary already"),
        (["[MASK]"], "'[MASK]' is in the vocabulary already"),
        (["New"], "'New' is never found in a text: it is read as 'new'"),
        (["né"], "'né' is never found in a text: it is read as 'ne'"),
        (["two words"], "'two words' is never found in a text: it holds 2 words, 'two', 'words'; give each word as a piece of its own"),
        (["x-ray"], "it holds 3 words, 'x', '-', 'ray'"),
        (["[NEW]"], "it holds 3 words, '[', 'new', ']'"),
        (["##"], "'##' is never found"),
        (["##A"], "'##A' is never found in a text: it is read as '##a'"),
        (["##中"], "it holds 2 words, '##', '中'"),
        (["x" * 101], "more than 100 characters"),
    ],
)
def test_a_piece_that_no_text_gives_is_refused_by_name(pieces, said):
    with pytest.raises(UserError) as caught:
        published(TEXT, 90).extended(pieces)
    assert said in str(caught.value) and "\n" not in str(caught.value)


def test_a_run_in_the_place_of_its_tokenizer(tmp_path):
    """A run, a checkpoint and a data folder hold the tokenizer in a folder of that name, which is named."""
    wordpiece.train(TEXT, 90).save(tmp_path / "tokenizer")
    with pytest.raises(UserError, match=f"name {tmp_path / 'tokenizer'}$"):
        load(tmp_path)


@pytest.mark.parametrize("given", ["", "seed_0", "seed_0/checkpoints", "seed_0/checkpoints/10"])
def test_the_newest_checkpoint_of_a_run_in_the_place_of_its_tokenizer(tmp_path, given):
    """A work directory of seeds, a run, its checkpoints and one of them; the advice works."""
    for step in ("9", "10", "10.tmp"):
        (tmp_path / "seed_0/checkpoints" / step).mkdir(parents=True)
        wordpiece.train(TEXT, 90).save(tmp_path / "seed_0/checkpoints" / step / "tokenizer")
    newest = tmp_path / "seed_0/checkpoints/10/tokenizer"
    with pytest.raises(UserError, match=f"a folder that holds one; name {newest}$"):
        load(tmp_path / given)
    load(newest)


def test_what_is_in_the_way_of_a_new_tokenizer_is_not_where_one_is_made(tmp_path):
    (tmp_path / "a.txt").write_text("a")
    for path, said in (
        (tmp_path / "a.txt", "a file, and a tokenizer is a folder"),
        (tmp_path, "name a folder that `jaxenc tokenizer` made"),
    ):
        with pytest.raises(UserError, match=said):
            load(path)
    with pytest.raises(UserError, match=f"--out {tmp_path / 'none'}` makes one$"):
        load(tmp_path / "none")


def test_folders_that_hold_no_tokenizer_of_ours(tmp_path):
    with pytest.raises(UserError, match="no tokenizer.json, vocab.txt, vocab.json or spiece.model"):
        load(tmp_path)
    for content, said in (("{", "not JSON"), ("[]", "no JSON object"), ('{"model": {"type": "BPE"}}', "tokenizer.json: model: damaged")):
        (tmp_path / "tokenizer.json").write_text(content)
        with pytest.raises(UserError, match=said):
            load(tmp_path)


@pytest.mark.parametrize("texts, size, said", [([], 100, "no text"), (["  ", "\1"], 100, "no text"), (TEXT, 20, "too small")])
def test_training_on_nothing_or_for_too_few_pieces(texts, size, said):
    with pytest.raises(UserError, match=said):
        wordpiece.train(texts, size)


@pytest.mark.parametrize("text", ['{"model": 5}', '{"model": {"type": "WordPiece"}, "normalizer": 1}', "KNOWN"])
def test_a_tokenizer_json_of_another_shape_is_one_line(text, tmp_path):
    known = (
        '{"model": {"type": "WordPiece"}, "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true},'
        ' "pre_tokenizer": {"type": "BertPreTokenizer"}}'
    )
    (tmp_path / "tokenizer.json").write_text(known if text == "KNOWN" else text)
    with pytest.raises(UserError, match=r"tokenizer.json: (model|normalizer)(: damaged \(| is not an object)"):
        load(tmp_path)


@pytest.mark.parametrize("lowercase, strip_accents", [(False, None), (True, None), (True, False), (False, True)])
def test_accents_follow_lower_casing_where_nothing_is_said(lowercase, strip_accents, tmp_path):
    """As BERT's code: a cased vocabulary keeps them, whichever of the two files says so."""
    folder, pieces = tmp_path / "named", [*wordpiece.SPECIALS, "É", "é", "E", "e"]
    folder.mkdir()
    (folder / "vocab.txt").write_text("".join(piece + "\n" for piece in pieces))
    said = {"do_lower_case": lowercase, **({} if strip_accents is None else {"strip_accents": strip_accents})}
    (folder / "tokenizer_config.json").write_text(json.dumps(said))
    strips = lowercase if strip_accents is None else strip_accents
    wanted = ("e" if lowercase else "E") if strips else ("é" if lowercase else "É")
    opened = [load(folder)]
    opened[0].save(tmp_path / "saved")
    path = tmp_path / "saved" / "tokenizer.json"
    data = json.loads(path.read_text())
    data["normalizer"]["strip_accents"] = strip_accents
    path.write_text(json.dumps(data))
    opened.append(wordpiece.from_json(path, data))
    assert [tool.token(tool.encode(["É"])[0][0]) for tool in opened] == [wanted, wanted]
