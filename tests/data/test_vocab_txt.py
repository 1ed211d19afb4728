"""The lines of vocab.txt: what is read as transformers reads it, with a warning, and what is refused with its true name.

The ids are those of transformers 5.24 and google-research/bert; tests/parity/test_live_vocab_txt.py compares with the first.
"""

import gzip
import json
from pathlib import Path

import pytest

from jaxenc.data.tokenizers import Tokenizer, bpe, load, wordpiece
from jaxenc.data.tokenizers.normalization import Normalization
from jaxenc.data.tokenizers.wordpiece_rules import PublishedRules
from jaxenc.errors import Unsupported, UserError

SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
TEXT = ["the quick brown fox jumps over the lazy dog", "The Fox and the Dog: NASA, Paris, London"] * 4


def written(folder: Path, *pieces: str, end: str = "\n") -> Path:
    """vocab.txt in `folder`: SPECIALS, then `pieces`, one a line."""
    folder.mkdir(exist_ok=True)
    (folder / "vocab.txt").write_bytes("".join(f"{piece}{end}" for piece in [*SPECIALS, *pieces]).encode())
    return folder


def tokens(tool: Tokenizer, text: str) -> list[int]:
    return tool.encode([text])[0]


def test_r15_of_a_repeated_piece_the_last_line_counts(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    tool = load(written(tmp_path / "in", "the", "cat", "the", "foo", "the", "foo"))
    said = capsys.readouterr().err
    assert said.count("warning:") == 1
    assert "pieces on more than one line: 2, such as 'the' on lines 8 and 10; the last line gives the id" in said
    assert tokens(tool, "the cat foo") == [9, 6, 10] and tool.vocabulary.size == 11
    assert [tool.token(index) for index in (5, 7, 9)] == ["the"] * 3 and tool.decode([5, 6, 8]) == tool.decode([9, 6, 10]) == "the cat foo"
    assert tool.vocabulary.reserved == (0, 1, 2, 3, 4, 5, 7, 8), "no random replacement draws an id that no text gives"
    tool.save(tmp_path / "out")
    assert (tmp_path / "out" / "vocab.txt").read_bytes() == (tmp_path / "in" / "vocab.txt").read_bytes()
    again = load(tmp_path / "out")
    assert again.vocabulary == tool.vocabulary and tokens(again, "the cat foo") == [9, 6, 10]
    assert not capsys.readouterr().err, "the folder of ours says that it is known"
    assert tokens(tool.extended(["dog"]), "the dog") == [9, 11]


def test_r15_a_special_on_two_lines(tmp_path: Path) -> None:
    tool = load(written(tmp_path, "the", "[MASK]"))
    assert tool.vocabulary.mask == 6 and tool.encode_prompt("the [MASK]") == [2, 5, 6, 3] and tool.token(4) == "[MASK]"


@pytest.mark.parametrize(
    "pieces, ids, size, said",
    [
        (["the", "", "cat", "", "foo"], [5, 7, 9], 10, "blank lines: 2, such as line 7; each takes an id"),
        (["the", "  ", "cat", "foo"], [5, 7, 8], 9, "blank lines: 1, such as line 7"),
        (["the ", "cat\t", "foo\u3000"], [5, 6, 7], 8, "pieces with white space after them: 3, such as 'the ' on line 6"),
        (["the", "cat", "foo", "", ""], [5, 6, 7], 8, "blank lines at the end: 2; they are left out"),
    ],
)
def test_blank_and_padded_lines_are_read_as_transformers_reads_them(
    pieces: list[str], ids: list[int], size: int, said: str, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    tool = load(written(tmp_path / "in", *pieces))
    printed = capsys.readouterr().err
    assert said in printed and printed.count("warning:") == 1
    assert tokens(tool, "the cat foo") == ids and tool.vocabulary.size == size
    tool.save(tmp_path / "out")
    assert load(tmp_path / "out").vocabulary == tool.vocabulary and tokens(load(tmp_path / "out"), "the cat foo") == ids


def test_line_ends_of_windows_are_no_padding(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    assert tokens(load(written(tmp_path, "the", "cat", end="\r\n")), "the cat") == [5, 6]
    assert not capsys.readouterr().err


@pytest.mark.parametrize("line", [" cat", "\u3000cat", "cat\x1c"])
def test_a_line_that_the_two_readers_read_differently_is_refused(line: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"vocab.txt:7: .* has white space around it; google-research/bert reads it as 'cat' and transf"):
        load(written(tmp_path, "the", line))


def saved(folder: Path, kind: str) -> dict[str, bytes]:
    """{name: content} of the files of a new tokenizer."""
    tool = bpe.train(TEXT, 300, Normalization("none")) if kind == "bpe" else wordpiece.train(TEXT, 90)
    tool.save(folder)
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize(
    "kind, name, said",
    [
        ("wordpiece", "tokenizer.json", "a tokenizer.json; name it tokenizer.json"),
        ("bpe", "tokenizer.json", "a tokenizer.json; name it tokenizer.json"),
        ("bpe", "vocab.json", "the vocab.json of a BPE; name it vocab.json and put its merges.txt beside it"),
        ("bpe", "merges.txt", "a merges.txt, the merges of a BPE; name it merges.txt and put its vocab.json beside it"),
    ],
)
def test_r16_another_file_of_a_tokenizer_is_named_and_the_advice_works(kind: str, name: str, said: str, tmp_path: Path) -> None:
    files, folder = saved(tmp_path / "made", kind), tmp_path / "wrong"
    folder.mkdir()
    (folder / "vocab.txt").write_bytes(files[name])
    with pytest.raises(UserError, match=f"{folder / 'vocab.txt'}: {said}$"):
        load(folder)
    (folder / "vocab.txt").rename(folder / name)
    for other in {"vocab.json": ["merges.txt"], "merges.txt": ["vocab.json"]}.get(name, []):
        (folder / other).write_bytes(files[other])
    assert tokens(load(folder), "the quick fox") == tokens(load(tmp_path / "made"), "the quick fox")


LIST = "".join(f"{piece}\n" for piece in [*SPECIALS, "the", "cat"])
IDS = {piece: index for index, piece in enumerate(LIST.split())}


@pytest.mark.parametrize(
    "content, said",
    [
        (json.dumps(IDS).encode(), "JSON with 7 pieces and their ids; write its pieces one a line, in the order of their ids"),
        (json.dumps(list(IDS)).encode(), "a JSON list of 7 entries; write its pieces one a line"),
        (json.dumps({"do_lower_case": False, "model_max_length": 512}).encode(), "JSON with the fields 'do_lower_case', 'model_max"),
        (b"<!DOCTYPE html>\n<html><body>vocab</body></html>\n", "a web page .* from the link for raw files"),
        (b'<?xml version="1.0"?><Error><Code>AccessDenied</Code></Error>', "a web page"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 231508\n", "a pointer of git-lfs .*; run `git lfs pull`"),
        (gzip.compress(LIST.encode()), r"compressed by gzip; unpack it \(gunzip < vocab.txt > new\)"),
        (LIST.encode("utf-16"), r"in UTF-16 and not in UTF-8; rewrite it \(iconv -f UTF-16 -t"),
        (LIST.encode("utf-16-le"), r"in UTF-16 and not in UTF-8; rewrite it \(iconv -f UTF-16LE -t"),
        (LIST.encode("utf-16-be"), r"in UTF-16 and not in UTF-8; rewrite it \(iconv -f UTF-16BE -t"),
        (b"<unk>\t0\n<s>\t0\n\xe2\x96\x81the\t-3.25\nx\t-1e-05\n", "the list that SentencePiece writes .* itself here, as spiece.model"),
        (b"the 4213\nc@@ 122\nat 9\n", "a list of pieces with a number after each, as fairseq's dict.txt is"),
        (b"", "empty, or zeros alone; copy the file itself again"),
        (b" \n\n", "empty"),
        (bytes(4096), "empty, or zeros alone"),
        (b"Entry not found", r"lacks \[PAD\] \[UNK\] .*\(lines 1 to 1 were read\)"),
        (b"{\n", r"lacks \[PAD\]"),
    ],
    ids=range(17),
)
def test_r16_what_is_no_vocabulary_is_named(content: bytes, said: str, tmp_path: Path) -> None:
    (tmp_path / "vocab.txt").write_bytes(content)
    with pytest.raises(UserError, match=f"{tmp_path / 'vocab.txt'}: {said}"):
        load(tmp_path)


def test_r16_a_vocabulary_may_hold_pieces_that_look_like_another_file(tmp_path: Path) -> None:
    """A list of pieces may as well start with a tag or a brace."""
    (tmp_path / "vocab.txt").write_text("".join(f"{piece}\n" for piece in ["<head>", "{", "#version", *SPECIALS, "the"]))
    assert tokens(load(tmp_path), "the {") == [8, 1]


CASED = ["The", "Fox", "Dog", "NASA", "Paris", "##Y", "the", "fox", "dog", "##s"]


def test_r14_a_cased_vocabulary_alone_is_told_and_the_advice_works(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """Read in lower case, as BertTokenizer of transformers does; six of the ten pieces beside the specials are lost."""
    tool = load(written(tmp_path, *CASED))
    said = capsys.readouterr().err
    assert tokens(tool, "The Fox") == [11, 12] and said.count("\n") == 1
    assert "no text gives 60% of its pieces, 6 of 10, such as 'The', 'Fox', 'Dog'" in said
    settings = tmp_path / "tokenizer_config.json"
    advice = '{"do_lower_case": false, "strip_accents": false, "tokenize_chinese_chars": true}'
    assert f"put {advice} in {settings}" in said
    settings.write_text(advice)
    assert tokens(load(tmp_path), "The Fox") == [5, 6] and not capsys.readouterr().err
    settings.write_text('{"do_lower_case": false}')
    assert tokens(load(tmp_path), "The Fox") == [5, 6] and not capsys.readouterr().err


@pytest.mark.parametrize(
    "pieces, settings, said",
    [
        (["über", "größe", "the", "café"], {}, 'read with {"strip_accents": true}; if that is wrong, put {"do_lower_case": true, "strip_a'),
        (["日本", "世界", "京都", "の"], {"do_lower_case": False}, 'read with {"tokenize_chinese_chars": true}; if'),
        (["日本", "世界", "Tokyo", "の"], {}, 'put {"do_lower_case": false, "strip_accents": false, "tokenize_chinese_chars": false} in'),
        (["New York", "don't", "the", "cat"], {}, "check that it is the vocabulary of your model"),
        (["x" * 101, "the"], {}, "check that it is the vocabulary of your model"),
    ],
)
def test_r14_any_rule_that_loses_pieces_is_told(
    pieces: list[str], settings: dict, said: str, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    (written(tmp_path, *pieces) / "tokenizer_config.json").write_text(json.dumps(settings))
    load(tmp_path)
    assert said in capsys.readouterr().err


def test_r14_sound_vocabularies_are_not_warned_of(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """Published ones have every Chinese character and punctuation mark also as one inside of words, which no text gives."""
    load(written(tmp_path / "chinese", "日", "本", "##日", "##本", "!", "##!", "the", "##s", "[unused1]"))
    made = wordpiece.train(TEXT, 90, Normalization("nfkc"))
    made.save(tmp_path / "ours")
    (tmp_path / "ours" / "tokenizer.json").unlink()
    load(tmp_path / "ours")
    assert not capsys.readouterr().err


def test_r15_a_repeated_piece_in_python(tmp_path: Path) -> None:
    """Also by the reader of one file, for any rule of BERT's."""
    tool = wordpiece.from_vocab(written(tmp_path, "The", "the", "The") / "vocab.txt", PublishedRules(False, False))
    assert tokens(tool, "The the") == [7, 6]


def test_a_vocabulary_of_ours_has_each_piece_once(tmp_path: Path) -> None:
    saved(tmp_path, "wordpiece")
    (tmp_path / "tokenizer.json").unlink()
    path = tmp_path / "vocab.txt"
    path.write_text(path.read_text() + "the\n")
    with pytest.raises(UserError, match=f"{path}: holds a piece twice, .*; make the tokenizer again, or copy it again"):
        load(tmp_path)


@pytest.mark.parametrize("name", ["tokenizer_config.json", "config.json"])
def test_a_class_that_reads_texts_by_other_rules_is_refused(name: str, tmp_path: Path) -> None:
    """BertJapaneseTokenizer finds words with MeCab first: BERT's rule would give other ids."""
    folder = written(tmp_path, "the", "cat")
    (folder / name).write_text(json.dumps({"tokenizer_class": "BertJapaneseTokenizer", "model_type": "bert"}))
    with pytest.raises(Unsupported) as error:
        load(folder)
    said = f"{folder / name}: tokenizer_class is 'BertJapaneseTokenizer'; save it again from AutoTokenizer"
    assert str(error.value).startswith(said)
    (folder / name).write_text(json.dumps({"tokenizer_class": "BertTokenizer"}))
    assert tokens(load(folder), "the cat") == [5, 6], "the advice"


@pytest.mark.parametrize("name", ["BertTokenizerFast", "ElectraTokenizer", "PreTrainedTokenizerFast", None])
def test_classes_that_read_it_as_bert_does(name: str | None, tmp_path: Path) -> None:
    folder = written(tmp_path, "the", "cat")
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": name}))
    assert tokens(load(folder), "the cat") == [5, 6]
