"""What a build says: its report, and warnings that name the cause."""

import itertools
import json
import os
import zlib
from pathlib import Path

import numpy as np
import pytest

from jaxenc.data import facts, held_out, manifest, report
from jaxenc.data.build import build
from jaxenc.data.duplicates import Duplicates
from jaxenc.data.inspect import describe
from jaxenc.data.store import open_split
from jaxenc.data.tokenizers import bpe, load, wordpiece
from jaxenc.data.tokenizers.sentencepiece import unigram
from jaxenc.data.tokenizers.wordpiece_rules import PublishedRules
from jaxenc.errors import UserError

PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "Berlin", "ist", "Paris", "."]


@pytest.fixture
def published(tmp_path: Path) -> Path:
    """A published vocabulary of a few words, cased."""
    (tmp_path / "vocab.txt").write_text("\n".join(PIECES))
    wordpiece.from_vocab(tmp_path / "vocab.txt", PublishedRules(False, False)).save(tmp_path / "published")
    return tmp_path / "published"


def said(text: str, tokenizer: Path, tmp_path: Path, capsys: pytest.CaptureFixture, share: float = 0.0) -> str:
    (tmp_path / "text.txt").write_text(text)
    build([str(tmp_path / "text.txt")], tokenizer, tmp_path / "out", share)
    return capsys.readouterr().err


def test_the_numbers_are_those_of_the_folder(corpus: Path, tokenizer: Path, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text(corpus.read_text() + "\nBan der.\n\nBAN DER.\n\n\u200e\n")
    result = build([str(tmp_path / "text.txt")], tokenizer, tmp_path / "out", 0.2, duplicates=Duplicates("exact"))
    data = json.loads((tmp_path / "out" / report.FACTS).read_text())
    size = sum(path.stat().st_size for path in (tmp_path / "out").glob("*-0*.*"))
    tokens = 0
    for split in ("train", "held_out"):
        own, shards = data["splits"][split], open_split(tmp_path / "out", split)
        starts = shards.sentences.take(np.arange(len(shards.sentences)))
        firsts = shards.documents.take(np.arange(len(shards.documents)))
        lengths = {"sentence_lengths": np.diff(starts), "document_lengths": np.diff(starts[firsts])}
        for name, values in lengths.items():
            edges = [1, *facts.EDGES]
            slow = [sum(a <= value < b for value in values) for a, b in itertools.pairwise(edges)]
            assert own[name] == slow[: len(own[name])] and not any(slow[len(own[name]) :]), name
        assert own["documents"] == len(firsts) - 1 and own["single"] == (np.diff(firsts) == 1).sum()
        assert own["tokens"] == len(shards.tokens) == result.splits[split].tokens
        tokens += own["tokens"]
    assert data["bytes_a_token"] == pytest.approx(size / tokens)
    assert sum(own["duplicates"] for own in data["splits"].values()) == 1
    assert sum(own["empty_documents"] for own in data["splits"].values()) == 1
    report.write(tmp_path / "out")
    said = report.summary(tmp_path / "out")
    assert "dropped: sentences without a token 1, documents without a token 1, duplicate documents 1" in said
    assert said == [line[2:] for line in (tmp_path / "out" / report.TEXT).read_text().split("\n") if line.startswith("- ")]


def test_no_part_of_it_is_in_the_fingerprint(corpus: Path, tokenizer: Path, tmp_path: Path) -> None:
    before = build([str(corpus)], tokenizer, tmp_path / "out", 0.2)
    report.write(tmp_path / "out")
    assert not {report.FACTS, report.TEXT, report.PICTURE} & set(before.files)
    assert {report.FACTS, report.TEXT, report.PICTURE} <= set(os.listdir(tmp_path / "out"))
    assert open_split(tmp_path / "out", "train", verify=True).manifest.fingerprint == before.fingerprint
    picture = (tmp_path / "out" / report.PICTURE).read_bytes()
    assert picture.startswith(b"\x89PNG") and picture[-8:-4] == b"IEND" and zlib.crc32(b"IEND") == int.from_bytes(picture[-4:], "big")


def test_sampled_rows_are_what_a_model_reads(data: Path) -> None:
    """Ten rows over the whole epoch, in the order of the text: the first one begins with its first tokens, the last is not padded."""
    found, shards, tool = report.rows(data), open_split(data, "train"), load(data / "tokenizer")
    flat = shards.tokens.take(np.arange(len(shards.tokens))).tolist()
    begin, end = ([tool.token(index) for index in part] for part in (flat[:126], flat[-(len(flat) % 126 or 126) :]))
    assert len(found) == 10
    assert found[0].split(" ") == ["[CLS]", *begin, "[SEP]"] and found[-1].split(" ") == ["[CLS]", *end, "[SEP]"]


def test_sampled_rows_of_bytes_are_readable(tmp_path: Path) -> None:
    text = "น้ำดี " * 40
    (tmp_path / "text.txt").write_text(text)
    bpe.train([text], 300).save(tmp_path / "bytes")
    build([str(tmp_path / "text.txt")], tmp_path / "bytes", tmp_path / "out", 0.0)
    (row,) = report.rows(tmp_path / "out")
    assert row.split(" ") == ["<s>", "น้ำดี", *["Ġน้ำดี"] * 39, "</s>"]
    assert any(f": {row} + 22 padding" in line for line in describe(tmp_path / "out"))


def test_unknown_tokens_by_script(published: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    text = "Berlin ist Paris. Berlin ist Rom. नमस्ते दुनिया"
    line = said(text, published, tmp_path, capsys)
    data = json.loads((tmp_path / "out" / report.FACTS).read_text())
    assert data["unknown_by_script"] == {"Devanagari": 1.0, "Latin": pytest.approx(1 / 6), "Other": 0.0}
    assert "of the tokens are [UNK], most often in Devanagari (100% of its tokens); check that the tokenizer fits" in line


def test_r05_long_words_are_named_as_the_cause(published: Path, tokenizer: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """A published vocabulary makes one [UNK] of a word of more than 100 letters; the advice, a new vocabulary, works."""
    dna = "\n".join("ACGTTGCA" * 40 for _ in range(20))
    line = said(dna, published, tmp_path, capsys)
    assert "100.0% of the tokens are [UNK], most of them words of more than 100 characters" in line and "lower case" not in line
    wordpiece.train(dna.split("\n"), 60).save(tmp_path / "new")
    build([str(tmp_path / "text.txt")], tmp_path / "new", tmp_path / "again", 0.0)
    assert "[UNK]" not in capsys.readouterr().err


def test_r03_documents_of_one_sentence(published: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    line = said("\n\n".join(["Berlin ist Paris."] * 30), published, tmp_path, capsys)
    assert "30 of 30 documents have one sentence, and data.rows=pairs or swapped_pairs need several" in line
    assert "one a line where the script marks no end" in line
    (tmp_path / "lines").mkdir()
    assert "one sentence" not in said("\n\n".join(["Berlin ist Paris\nParis ist Berlin"] * 30), published, tmp_path / "lines", capsys)
    (tmp_path / "more").mkdir()
    assert "one sentence" not in said("\n\n".join(["Berlin ist Paris. Paris ist Berlin."] * 30), published, tmp_path / "more", capsys)


def test_r06_a_text_without_blank_lines(published: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    line = said("Berlin ist Paris. Paris ist Berlin.\n" * 50, published, tmp_path, capsys, 0.01)
    assert "nothing is held out, because the whole text is one document: a blank line ends a document" in line
    (tmp_path / "none").mkdir()
    assert "held out" not in said("Berlin ist Paris. Paris ist Berlin.\n", published, tmp_path / "none", capsys, 0.0)


def test_a_build_never_ends_without_rows(published: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    (tmp_path / "text.txt").write_text("Berlin ist Paris.\n")
    with pytest.raises(UserError, match="every document is held out, 1 in all, so there is none to train on; use --held-out 0"):
        build([str(tmp_path / "text.txt")], published, tmp_path / "out", 0.999999)
    assert "kept" not in capsys.readouterr().err  # nor does it say that anything is left to go on from
    (tmp_path / "text.txt").write_text("\n \n")
    with pytest.raises(UserError, match="no document found"):
        build([str(tmp_path / "text.txt")], published, tmp_path / "out", 0.0)
    assert sorted(os.listdir(tmp_path)) == ["published", "text.txt", "vocab.txt"]


def test_a_folder_without_a_report_says_so(data: Path, tmp_path: Path) -> None:
    (tmp_path / manifest.NAME).write_bytes((data / manifest.NAME).read_bytes())
    with pytest.raises(UserError, match="has no report; build the data again"):
        report.write(tmp_path)


def test_removed_characters_are_counted_and_named(tokenizer: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """Against a loop over all characters; not those that become a blank, and none of a vocabulary that keeps them."""
    text = "ban\u00ad der.\u200e Ban\u200b\tder\ufeff.\u0007 \u00ad\ufffd\u200d \U000e0001x\n\n" * 7
    said(text, tokenizer, tmp_path, capsys)
    data, tool = json.loads((tmp_path / "out" / report.FACTS).read_text()), load(tokenizer)
    slow = {one: text.count(one) for one in set(text) if not one.isspace() and tool.written(f"x{one}x") == "xx"}
    assert data["splits"]["train"]["removed"] == slow and set(slow) == set("\u00ad\u200e\ufeff\u0007\ufffd")
    lines = report.summary(tmp_path / "out")
    assert (
        "characters removed by the vocabulary's normaliser: 42: U+00AD SOFT HYPHEN 14, U+0007 control 7, U+200E LEFT-TO-RIGHT MARK 7, "
        in ("".join(line for line in lines if "removed" in line))
    )
    bpe.train([text], 300).save(tmp_path / "bytes")
    build([str(tmp_path / "text.txt")], tmp_path / "bytes", tmp_path / "kept", 0.0)
    assert "characters removed by the vocabulary's normaliser: none" in report.summary(tmp_path / "kept")


def test_unknown_characters_are_named(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """The most frequent first, the rest counted; a known letter of an unknown word is none of them."""
    unigram.train(["ab ba aab"] * 40, 20).save(tmp_path / "tok")
    others = "".join(chr(0x0E01 + i) * (i + 1) for i in range(12))
    said(f"ab b{others} aab ☃☃☃. ba\n", tmp_path / "tok", tmp_path, capsys)
    data = json.loads((tmp_path / "out" / report.FACTS).read_text())
    found = data["splits"]["train"]["unknown_characters"]
    assert found == {**{chr(0x0E01 + i): i + 1 for i in range(12)}, "☃": 3}
    (line,) = [line for line in report.summary(tmp_path / "out") if "unknown characters" in line]
    assert line.startswith("unknown characters, in a sample: ฌ U+0E0C THAI CHARACTER CHO CHOE 12, ซ")
    assert line.endswith(", 3 others 6") and line.count("U+") == 10


def test_the_report_has_the_warnings_and_always_a_line_of_scripts(published: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """Also for a text whose marks the vocabulary drops, and for one without an unknown token."""
    lower = PublishedRules(True, True)
    wordpiece.from_vocab(tmp_path / "vocab.txt", lower).save(tmp_path / "lower")
    err = said("दिल्ली में हिन्दी बोली जाती है।\n\n" * 30, tmp_path / "lower", tmp_path, capsys)
    report.write(tmp_path / "out")
    text = (tmp_path / "out" / report.TEXT).read_text()
    stored = json.loads((tmp_path / "out" / report.FACTS).read_text())["warnings"]
    assert stored and all(f"* {line}\n" in text and f"data: warning: {line}" in err for line in stored)
    assert any(line.startswith("the tokenizer drops") for line in stored)
    assert any(line.startswith("it also drops") and line.endswith("in a sample") for line in report.summary(tmp_path / "out"))
    (tmp_path / "plain").mkdir()
    said("Berlin ist Paris.", published, tmp_path / "plain", capsys)
    assert "unknown tokens by script, in a sample: none (Latin, Other)" in report.summary(tmp_path / "plain" / "out")


def test_a_held_out_split_that_says_nothing_is_named(published: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """Its size in tokens and an option that gives enough; following the advice ends the warning."""
    document = "Berlin ist Paris. " * 12
    for number, (documents, share, wanted) in enumerate(
        [
            (40, 0.1, "--held-out 0.2 gives more, and more text gives enough"),
            (40, 0.5, "more text gives more"),
            (4000, 0.01, "--held-out 0.1 gives enough"),
        ]
    ):
        (place := tmp_path / str(number)).mkdir()
        line = said("\n\n".join(f"{document}{i}" for i in range(documents)), published, place, capsys, share)
        tokens = manifest.read(place / "out").splits["held_out"].tokens
        assert f"few tokens are held out: a loss on {tokens:,}, 15% of them predicted, has a standard error of at least" in line
        assert line.rstrip().split("; ")[-1] == wanted
    (tmp_path / "more").mkdir()
    assert "few tokens" not in said("\n\n".join(f"{document}{i}" for i in range(4000)), published, tmp_path / "more", capsys, 0.1)
    assert held_out.too_few(held_out.enough()) == "" and held_out.standard_error(10_000, 1.0) == pytest.approx(0.025)
