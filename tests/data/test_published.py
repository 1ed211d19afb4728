"""A tokenizer.json with rules or pieces that no vocabulary of jaxenc has: each field does what the tokenizers library says it does."""

import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tokenizers as library
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors

from jaxenc.data.build import build
from jaxenc.data.store import open_split
from jaxenc.data.tokenizers import Tokenizer, bpe, load, separate
from jaxenc.errors import UserError

SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
LETTERS = [*"abcdefghijklmnopqrstuvwxyz0123456789", *(f"##{letter}" for letter in "abcdefghijklmnopqrstuvwxyz0123456789")]
WORDS = ["block", "hello", "hel", "the", "dog", ".", ",", "[", "]", "-"]
OFF = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": False}


def wordpiece_json(pieces: list[str], added: dict[str, dict[str, bool]], prefix: str = "##", lowercase: bool = True) -> dict[str, Any]:
    """A BERT's tokenizer.json with pieces added after the vocabulary, each with flags."""
    tool = library.Tokenizer(models.WordPiece({p: n for n, p in enumerate(pieces)}, unk_token="[UNK]", continuing_subword_prefix=prefix))
    tool.normalizer = normalizers.BertNormalizer(True, True, None, lowercase)
    tool.pre_tokenizer, tool.decoder = pre_tokenizers.BertPreTokenizer(), decoders.WordPiece(prefix=prefix)
    tool.add_special_tokens([library.AddedToken(piece, special=True, normalized=False) for piece in SPECIALS])
    frame = [("[CLS]", pieces.index("[CLS]")), ("[SEP]", pieces.index("[SEP]"))]
    tool.post_processor = processors.TemplateProcessing("[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1", frame)
    tool.add_tokens([library.AddedToken(piece, **{**OFF, **flags}) for piece, flags in added.items()])
    return json.loads(tool.to_str())


def folder_of(folder: Path, data: dict[str, Any], **others: Any) -> Path:
    """Writes a tokenizer.json, and other files by the start of their names."""
    folder.mkdir(exist_ok=True)
    for name, content in {"tokenizer": data, **others}.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    return folder


def pieces_of(tool: Tokenizer, text: str) -> list[str]:
    return [tool.token(index) for index in tool.encode([text])[0]]


EVENTS = {"E1": {"single_word": True}, "E12": {"normalized": True}, "[DIST]": {"lstrip": True}, "new york": {"normalized": True}}
BASE = [*SPECIALS, *WORDS, *LETTERS]


def test_r09_added_pieces_are_found_whole_with_their_flags(tmp_path: Path) -> None:
    """The right values are those of the library, which holds the file; the pieces follow the vocabulary."""
    data = wordpiece_json(BASE, EVENTS)
    tool, reference = load(folder_of(tmp_path, data)), library.Tokenizer.from_str(json.dumps(data))
    assert pieces_of(tool, "E1 E12 [DIST] block") == ["E1", "E12", "[DIST]", "block"]
    apart = ["x", "##e", "##1", "E12", ".", "n", "##e", "##w", "y", "##o", "##r", "##k"]
    assert pieces_of(tool, "xE1 e12. New  York new york") == [*apart, "new york"]
    for text in ("E1 E12 [DIST] block", "a  [DIST]b E1.E12 [MASK]", "E1E12", "the new york dog"):
        assert tool.encode_prompt(text) == reference.encode(text).ids
        assert tool.decode(tool.encode_prompt(text)) == reference.decode(tool.encode_prompt(text), skip_special_tokens=False)
    assert tool.vocabulary.size == len(BASE) + 4 and tool.vocabulary.reserved == (0, 1, 2, 3, 4)


def test_r09_a_corpus_and_a_saved_folder_hold_added_pieces(tmp_path: Path) -> None:
    tool = load(folder_of(tmp_path / "tok", wordpiece_json(BASE, EVENTS)))
    (tmp_path / "a.txt").write_text("E1 E12 [DIST] block\n\nthe E12 dog [MASK]\n" * 20)
    build([str(tmp_path / "a.txt")], tmp_path / "tok", tmp_path / "data", held_out=0.0)
    tokens = open_split(tmp_path / "data", "train").tokens
    lines = tool.encode(["E1 E12 [DIST] block", "the E12 dog [MASK]"])
    assert tokens.take(np.arange(len(tokens))).tolist() == [*lines[0], *lines[1]] * 20
    saved = load(tmp_path / "data" / "tokenizer")
    assert saved.vocabulary == tool.vocabulary and saved.encode(["E1 E12 [DIST] [MASK]"]) == tool.encode(["E1 E12 [DIST] [MASK]"])


def test_r09_added_tokens_json_beside_a_vocab_txt(tmp_path: Path) -> None:
    """Special ones are those that special_tokens_map.json names: they are text in a corpus."""
    (tmp_path / "vocab.txt").write_text("".join(f"{piece}\n" for piece in BASE))
    plain = load(tmp_path)
    size = len(BASE)
    (tmp_path / "added_tokens.json").write_text(json.dumps({"E1": size, "E12": size + 1, "[END]": size + 2}))
    (tmp_path / "special_tokens_map.json").write_text(json.dumps({"eos_token": "[END]", "mask_token": "[MASK]"}))
    tool = load(tmp_path)
    assert pieces_of(tool, "E1 e12 block") == ["E1", "E12", "block"] and tool.vocabulary.size == size + 3
    assert size + 2 in tool.encode_prompt("dog [END]") and size + 2 not in tool.encode(["dog [END]"])[0]
    assert tool.vocabulary.reserved == (*plain.vocabulary.reserved, size + 2)
    assert tool.encode(["the hello dog"]) == plain.encode(["the hello dog"])


def test_r10_another_mark_of_pieces_inside_words(tmp_path: Path) -> None:
    tool = load(folder_of(tmp_path, wordpiece_json([*SPECIALS, "hel", "@@lo", "##lo"], {}, prefix="@@")))
    assert pieces_of(tool, "hello") == ["hel", "@@lo"] and tool.decode(tool.encode(["hello"])[0]) == "hello"


@pytest.mark.parametrize(
    "edit, text, pieces",
    [
        (lambda d: d["model"].update(max_input_chars_per_word=3), "hello the", ["[UNK]", "the"]),
        (lambda d: d["model"].update(unk_token="-"), "€ the", ["-", "the"]),
        (lambda d: d.update(normalizer=None), "THE the", ["[UNK]", "the"]),
        (lambda d: d.update(pre_tokenizer={"type": "WhitespaceSplit"}, normalizer=None), "the [MASK] dog.", ["the", "[UNK]", "[UNK]"]),
        (lambda d: d.update(pre_tokenizer=None, normalizer=None), "[CLS]", ["[UNK]"]),
    ],
)
def test_r10_fields_of_every_part_are_followed(edit: Callable[[dict], Any], text: str, pieces: list[str], tmp_path: Path) -> None:
    """A special piece never comes out of a text, although a splitter at white space alone leaves it whole."""
    data = wordpiece_json(BASE, {})
    edit(data)
    assert pieces_of(load(folder_of(tmp_path, data)), text) == pieces


def test_r11_the_class_in_the_config_lower_cases_and_says_so(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """As BertTokenizer of transformers 5, which takes the vocabulary alone from tokenizer.json."""
    data = wordpiece_json([*SPECIALS, "A", "##B", "##C", "a", "##b", "##c"], {}, lowercase=False)
    config = {"tokenizer_class": "BertTokenizer", "do_lower_case": True}
    assert pieces_of(load(folder_of(tmp_path, data, tokenizer_config=config)), "ABC") == ["a", "##b", "##c"]
    said = capsys.readouterr().err
    assert str(tmp_path / "tokenizer.json") in said and str(tmp_path / "tokenizer_config.json") in said
    assert "normalizer.lowercase is None in the first and True in the second" in said and said.count("\n") == 1
    config["tokenizer_class"] = "PreTrainedTokenizerFast"
    assert pieces_of(load(folder_of(tmp_path, data, tokenizer_config=config)), "ABC") == ["A", "##B", "##C"]
    assert not capsys.readouterr().err


@pytest.mark.parametrize(
    "config, pieces",
    [
        ({}, ["e", "a", "日", "本"]),
        ({"do_lower_case": False}, ["É", "A", "日", "本"]),
        ({"do_lower_case": False, "strip_accents": True}, ["E", "A", "日", "本"]),
        ({"strip_accents": False}, ["é", "a", "日", "本"]),
        ({"tokenize_chinese_chars": False}, ["e", "a", "日本"]),
    ],
)
def test_r11_settings_of_the_class(config: dict[str, Any], pieces: list[str], tmp_path: Path) -> None:
    """google-research/bert:tokenization.py: accents go with the case, unless strip_accents says otherwise."""
    held = [*SPECIALS, "A", "a", "E", "e", "É", "é", "日", "本", "日本"]
    data = wordpiece_json(held, {}, lowercase=True)
    tool = load(folder_of(tmp_path, data, tokenizer_config={"tokenizer_class": "BertTokenizer", **config}))
    assert pieces_of(tool, "É A 日本") == pieces


def test_r09_a_piece_that_has_a_role_is_special_whatever_its_flag_says(tmp_path: Path) -> None:
    """As transformers has it: the end of a text, say, which prompts alone hold."""
    decoder = {str(len(BASE)): {**OFF, "content": "[END]"}}
    config = {"added_tokens_decoder": decoder, "eos_token": "[END]", "tokenizer_class": "PreTrainedTokenizerFast"}
    tool = load(folder_of(tmp_path, wordpiece_json(BASE, {}), tokenizer_config=config))
    assert len(BASE) in tool.encode_prompt("[END]") and len(BASE) in tool.vocabulary.reserved
    assert pieces_of(tool, "[END]") == ["[", "e", "##n", "##d", "]"]


def test_split_special_tokens(tmp_path: Path) -> None:
    config = {"split_special_tokens": True}
    tool = load(folder_of(tmp_path, wordpiece_json(BASE, {}), tokenizer_config=config))
    assert tool.encode_prompt("[MASK]") == [2, *tool.encode(["[MASK]"])[0], 3] and 4 not in tool.encode_prompt("[MASK]")
    tool.save(tmp_path / "saved")
    assert load(tmp_path / "saved").encode_prompt("[MASK]") == tool.encode_prompt("[MASK]")


def test_r09_added_pieces_that_the_class_leaves_out_are_named(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """As BertTokenizer of transformers 5, which adds the pieces of added_tokens_decoder alone where there is one."""
    decoder = {str(n): {**OFF, "content": piece, "special": True} for n, piece in enumerate(SPECIALS)}
    config = {"tokenizer_class": "BertTokenizer", "added_tokens_decoder": decoder}
    tool = load(folder_of(tmp_path, wordpiece_json(BASE, {"E1": {}}), tokenizer_config=config))
    assert pieces_of(tool, "E1") == ["e", "##1"] and tool.vocabulary.size == len(BASE)
    assert "differ: added_tokens.E1 is {" in (said := capsys.readouterr().err) and said.count("\n") == 1


def bytes_json(alphabet: list[str], splitter: Any, normalizer: Any = None, merges: Sequence[tuple[str, str]] = ()) -> dict[str, Any]:
    specials = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    pieces = [*specials, *alphabet, *("".join(merge) for merge in merges)]
    tool = library.Tokenizer(models.BPE({piece: index for index, piece in enumerate(pieces)}, list(merges)))
    tool.pre_tokenizer, tool.decoder = splitter, decoders.ByteLevel()
    if normalizer is not None:
        tool.normalizer = normalizer
    tool.add_special_tokens([library.AddedToken(piece, special=True) for piece in specials])
    tool.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    return json.loads(tool.to_str())


AMINO = list("ACDEFGHIKLMNPQRSTVWYXBZUO")
BYTES = sorted(pre_tokenizers.ByteLevel.alphabet())
DIGITS = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)])


def test_r16_bytes_with_a_normalizer_or_a_splitter_of_digits(tmp_path: Path) -> None:
    data = bytes_json(BYTES, DIGITS, normalizers.Sequence([normalizers.NFC(), normalizers.Lowercase()]))
    tool, reference = load(folder_of(tmp_path, data)), library.Tokenizer.from_str(json.dumps(data))
    for text in ("AB 12 é", "  x\n", "<mask>"):
        assert tool.encode_prompt(text) == reference.encode(text).ids
    assert pieces_of(tool, "A1") == ["a", "1"]


def test_r16_a_vocabulary_of_amino_acids_opens(tmp_path: Path) -> None:
    """25 letters and not 256 bytes; other characters give nothing, as in the library, which has no unknown piece here."""
    tool = load(folder_of(tmp_path, bytes_json(AMINO, pre_tokenizers.ByteLevel(add_prefix_space=False))))
    assert pieces_of(tool, "MKV X?") == ["M", "K", "V", "X"] and tool.vocabulary.size == 30 and tool.vocabulary.mask == 4


MERGES = [("\u0120", "\u0120"), ("\u0120", "d"), ("\u0109", "\u0120"), ("\u0120", "\u0109"), ("n", "e"), ("\u0120", "1")]
CUT = {"truncation": {"direction": "Right", "max_length": 3, "strategy": "LongestFirst", "stride": 0}}
ADDED_TO = {
    "wordpiece": lambda: wordpiece_json(BASE, {"E1": {"single_word": True}, "[x-y]": {"normalized": True}, "a.b": {}, "É": {}}),
    "with blanks": lambda: wordpiece_json(BASE, {"new york": {"normalized": True}, " the": {}, "dog ": {}}),
    "with flags": lambda: wordpiece_json(BASE, {"E1": {"lstrip": True}, "[x]": {"rstrip": True}, "-": {"lstrip": True, "rstrip": True}}),
    "a blank inside": lambda: wordpiece_json(BASE, {"new york": {"normalized": True}, "E1 a.b": {}, "dog the": {"single_word": True}}),
    "bytes": lambda: bytes_json(BYTES, pre_tokenizers.ByteLevel(add_prefix_space=False), None, MERGES),
    "bytes with a prefix": lambda: bytes_json(BYTES, pre_tokenizers.ByteLevel(add_prefix_space=True), None, MERGES),
    "digits": lambda: bytes_json(BYTES, DIGITS, None, MERGES),
    "a letter before the text": lambda: wordpiece_json(BASE, {}) | {"normalizer": {"type": "Prepend", "prepend": "x"}},
    "blanks inside words": lambda: wordpiece_json(BASE, {}) | {"pre_tokenizer": {"type": "Punctuation", "behavior": "Isolated"}},
    "white space": lambda: wordpiece_json(BASE, {"E1": {}}) | {"pre_tokenizer": {"type": "WhitespaceSplit"}},
}


@pytest.mark.parametrize("kind", ADDED_TO)
def test_r09_cached_words_give_the_same_ids(kind: str, tmp_path: Path) -> None:
    """Added pieces with blanks, punctuation and flags among them, in texts of parts that may join across a blank."""
    tool, draw = load(folder_of(tmp_path, ADDED_TO[kind]())), random.Random(1)
    parts = ["E1", "e1", "new", "york", "new york", "[x]", "[x-y]", "a.b", "-", "the", "dog", " ", "  ", "\t", "\u0301", "É", "é", ".", "1"]
    texts = ["".join(draw.choices(parts, k=draw.randint(0, 9))) for _ in range(400)]
    texts += [" ".join(draw.choices(parts, k=draw.randint(0, 9))) for _ in range(400)]
    for start in range(0, len(texts), 100):
        some = texts[start : start + 100]
        flat = tool.encode_flat(some)
        assert flat.tokens.tolist() == [index for ids in tool.encode(some) for index in ids]
        assert flat.lengths.tolist() == [len(ids) for ids in tool.encode(some)]


def test_r09_only_words_that_an_added_piece_may_join_are_not_cached(tmp_path: Path) -> None:
    """A piece with a blank in it would else make a corpus four times as slow to read (measured)."""
    added = {"new york": {"normalized": True}, "E1": {"rstrip": True}, "dog": {}}
    tool = library.Tokenizer.from_str(json.dumps(wordpiece_json(BASE, added)))
    rule = separate.alone(separate.always, tool)
    assert [rule(word) for word in ("the", " york", " newer", " dog", "e")] == [True] * 5
    assert [rule(word) for word in ("new", " NEW", " anew", "new\0", " xE1.")] == [False] * 5
    assert not separate.alone(separate.always, library.Tokenizer.from_str(json.dumps(wordpiece_json(BASE, {" x": {}}))))("the")


def test_new_pieces_follow_the_added_ones(tmp_path: Path) -> None:
    tool = load(folder_of(tmp_path / "a", wordpiece_json(BASE, EVENTS)))
    more = tool.extended(["zebra", "E13"])
    assert pieces_of(more, "E13 zebra zebras E1") == ["E13", "zebra", *(f"{'##' * (n > 0)}{c}" for n, c in enumerate("zebras")), "E1"]
    assert [more.token(n) for n in range(tool.vocabulary.size)] == [tool.token(n) for n in range(tool.vocabulary.size)]
    assert more.vocabulary.fingerprint != tool.vocabulary.fingerprint
    more.save(tmp_path / "b")
    assert load(tmp_path / "b").vocabulary == more.vocabulary
    with pytest.raises(UserError, match="'E12' is in the vocabulary already"):
        tool.extended(["E12"])


@pytest.mark.parametrize(
    "others, said",
    [
        ({"tokenizer_config": {"tokenizer_class": "XLMRobertaTokenizer"}}, "tokenizer_class is 'XLMRobertaTokenizer'"),
        ({"config": {"model_type": "t5"}}, "model_type is 't5'"),
        ({"tokenizer_config": {"do_lower_case": 1}}, "do_lower_case is 1"),
        ({"tokenizer_config": {"strip_accents": "no"}}, "strip_accents is 'no'"),
        ({"tokenizer_config": {"padding_side": "up"}}, "padding_side is 'up'"),
        ({"tokenizer_config": {"mask_token": 3}}, "mask_token is 3"),
        ({"tokenizer_config": {"init_inputs": ["x"]}}, "init_inputs"),
        ({"tokenizer_config": {"fast_tokenizer_files": ["tokenizer.4.json"]}}, "fast_tokenizer_files"),
        ({"tokenizer_config": {"added_tokens_decoder": {"0": {"content": "[PAD]", "lstrip": "x"}}}}, "lstrip of '[PAD]'"),
        ({"special_tokens_map": {"do_lower_case": False}}, "special_tokens_map.json: do_lower_case"),
        ({"special_tokens_map": {"additional_special_tokens": [{"content": "E1"}]}}, "special_tokens_map.json: additional_special_tokens"),
        ({"added_tokens": {"E1": "5"}}, "added_tokens.json: the id of 'E1' is '5'"),
        ({"tokenizer_config": {"tokenizer_class": "RobertaTokenizer"}}, "tokenizer_class is 'RobertaTokenizer', which stands for BPE"),
    ],
)
def test_a_field_that_cannot_be_followed_is_named(others: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        load(folder_of(tmp_path, wordpiece_json(BASE, {}), **others))
    assert said in str(caught.value) and str(tmp_path) in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "edit, said",
    [
        (lambda d: d["model"].update(vocab={**d["model"]["vocab"], "the": 4}), "have the id 4"),
        (lambda d: d["model"].update(unk_token="qqq"), "unk_token is 'qqq'"),
        (lambda d: d["post_processor"]["special_tokens"]["[CLS]"].update(ids=[999]), "post_processor.special_tokens.[CLS].ids holds 999"),
        (lambda d: d["post_processor"]["special_tokens"].pop("[CLS]"), "post_processor frames a text by '[CLS]'"),
        (lambda d: d["post_processor"]["single"].pop(1), "post_processor.single does not hold the text once"),
        (lambda d: d.update(normalizer={"type": "Foo"}), "tokenizer.json: normalizer: "),
        (lambda d: d.update(model=d["model"] | {"type": "Foo"}), "tokenizer.json: model: "),
        (lambda d: d.update(truncation={"direction": "Up"}), "tokenizer.json: truncation: "),
    ],
)
def test_a_part_of_the_file_that_cannot_be_followed_is_named(edit: Callable[[dict], Any], said: str, tmp_path: Path) -> None:
    data = wordpiece_json(BASE, {})
    edit(data)
    with pytest.raises(UserError) as caught:
        load(folder_of(tmp_path, data))
    assert said in str(caught.value) and "tokenizer.json: " in str(caught.value) and "\n" not in str(caught.value)


def test_dropout_is_named(tmp_path: Path) -> None:
    bpe.train(["the dog"], 262).save(tmp_path)
    data = json.loads((tmp_path / "tokenizer.json").read_text())
    data["model"]["dropout"] = 0.1
    (tmp_path / "tokenizer.json").write_text(json.dumps(data))
    with pytest.raises(UserError, match=r"model.dropout is 0.1: ids would be drawn at random; write null"):
        load(tmp_path)


@pytest.mark.parametrize("added", [{}, EVENTS])
def test_truncation_and_padding_leave_texts_whole(added: dict[str, dict[str, bool]], tmp_path: Path) -> None:
    data = wordpiece_json(BASE, added)
    plain = load(folder_of(tmp_path, data))
    data |= CUT
    pad = {"strategy": {"Fixed": 9}, "direction": "Right", "pad_to_multiple_of": None, "pad_id": 0, "pad_type_id": 0, "pad_token": "[PAD]"}
    (tmp_path / "tokenizer.json").write_text(json.dumps(data | {"padding": pad}))
    tool = load(tmp_path)
    for text in ("the hello dog the block", "a", ""):
        assert tool.encode_prompt(text) == plain.encode_prompt(text) and tool.encode([text]) == plain.encode([text])
    assert tool.vocabulary == plain.vocabulary
