import gzip
import io
import json
import lzma
import random

import pytest

from jaxenc.data import readers
from jaxenc.data.readers import Counts, Reading, document, streams
from jaxenc.errors import UserError
from tests.data.readers.reading import found, lines


def read(tmp_path, content: bytes, name="a.txt", **how):
    (tmp_path / name).write_bytes(content)
    documents, counts = found(tmp_path / name, **how)
    return [document.lines for document in documents], counts


def test_blank_lines_end_documents_and_sources_name_the_first_line(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("\n\na\nb\n \t\n\nc\n")
    assert [(d.source, d.lines) for d in found(path)[0]] == [(f"{path}:3", ("a", "b")), (f"{path}:7", ("c",))]


def test_only_newlines_end_a_line(tmp_path):
    odd = "a\u2028b\u2029c\x85d\x0be\x0cf\rg"
    assert read(tmp_path, f"{odd}\nnext".encode())[0] == [(odd, "next")]


def test_crlf_bom_nul_and_invalid_bytes(tmp_path):
    texts, counts = read(tmp_path, b"\xef\xbb\xbfab\x00c\xff\r\nd\xe2\x82\r\n\r\nfine \xef\xbf\xbd\n")
    assert texts == [("abc\ufffd", "d\ufffd"), ("fine \ufffd",)]
    assert (counts.nul, counts.invalid) == (1, 2)


@pytest.mark.parametrize("suffix, opener", [("", open), (".gz", gzip.open), (".xz", lzma.open)])
def test_json_lines_with_text_and_words(tmp_path, suffix, opener):
    rows = [{"text": "one\n\ntwo\r\nthree"}, {"words": ["ผม", "รัก", "ภาษา"]}, {"text": " \n"}]
    path = tmp_path / f"a.jsonl{suffix}"
    with opener(path, "wb") as file:
        file.write("\n".join(json.dumps(row) for row in rows).encode())
    documents, counts = found(path)
    assert [d.lines for d in documents] == [("one", "two", "three"), ("ผม รัก ภาษา",)]
    assert counts.empty_documents == 1


def test_lone_surrogates_and_nul_of_json_become_text_that_can_be_encoded(tmp_path):
    texts, counts = read(tmp_path, b'{"text": "a\\ud800b\\u0000c"}\n', "a.jsonl")
    assert texts == [("a\ufffdbc",)] and (counts.invalid, counts.nul) == (1, 1)


@pytest.mark.parametrize("name", ["a.txt", "a.jsonl"])
def test_a_very_long_line_is_cut_at_blanks_and_no_word_is_lost(tmp_path, name):
    rng = random.Random(0)
    text = " ".join("wörd" * rng.randint(1, 5) for _ in range(60_000))
    content = json.dumps({"text": text}, ensure_ascii=False) if name == "a.jsonl" else text
    texts, counts = read(tmp_path, content.encode(), name)
    pieces = [line for text in texts for line in text]
    assert [word for line in pieces for word in line.split()] == text.split()
    assert counts.split_lines == len(pieces) - 1 > 3
    assert max(map(len, pieces)) <= document.LINE_BYTES and counts.invalid == 0


def test_a_long_line_without_blanks_is_cut_between_characters(tmp_path):
    text = "漢" * 100_000
    texts, counts = read(tmp_path, text.encode())
    assert "".join(texts[0]) == text and counts.invalid == 0 and counts.split_lines > 3


def test_a_document_beyond_the_limit_is_cut_between_lines(tmp_path, monkeypatch):
    monkeypatch.setattr(document, "DOCUMENT_CHARACTERS", 10)
    texts, counts = read(tmp_path, b"aaaa\nbbbb\ncccc\ndddddddddddd\n\ne\n")
    assert texts == [("aaaa", "bbbb"), ("cccc",), ("dddddddddddd",), ("e",)] and counts.split_documents == 2


def test_a_cut_just_before_the_line_end_does_not_end_the_document(tmp_path):
    line = b"x" * (document.LINE_BYTES - 1) + b" "
    texts, counts = read(tmp_path, line + b"\nnext\n")
    assert texts == [(line.decode(), "next")] and counts.split_lines == 0


@pytest.mark.parametrize(
    "name, content, said",
    [
        ("a.txt", b"", "a.txt: is empty"),
        ("a.txt", b"\n \n\n", "no document found"),
        ("a.jsonl", b'{"text": "a"}\n{"txt": "b"}\n', "a.jsonl:2: has no text"),
        ("a.jsonl", b'{"text": "a"}\n\n[1]\n', "a.jsonl:3: not an object"),
        ("a.jsonl", b'{"words": ["a", 1]}\n', "a.jsonl:1: the field words holds int"),
        ("a.jsonl", b'{"text": "a"}\n{"text": \n', "a.jsonl:2: not a JSON object"),
        ("a.txt.gz", b"not gzip", "a.txt.gz"),
        ("a.txt.xz", lzma.compress(b"hello\n" * 1000)[:60], ": the compressed data is damaged"),
        ("a.txt.gz", gzip.compress(bytes(range(256)) * 99, mtime=0)[:60], ": the compressed data is damaged"),
    ],
)
def test_bad_files_are_one_line_that_names_them(tmp_path, name, content, said):
    with pytest.raises(UserError) as caught:
        read(tmp_path, content, name)
    assert said in str(caught.value) and "\n" not in str(caught.value)


def test_missing_files(tmp_path):
    with pytest.raises(UserError, match="no such file"):
        lines(tmp_path / "no.txt")
    with pytest.raises(UserError, match="no file is named"):
        lines()


def test_r40_lone_carriage_returns_end_lines_where_there_is_no_newline(tmp_path):
    texts, counts = read(tmp_path, b"one\rtwo\r\rthree\r")
    assert texts == [("one", "two"), ("three",)] and counts.undivided_files == 0
    assert read(tmp_path, b"one\r" * 5)[0] == [("one",) * 5]


def test_r40_carriage_returns_are_the_same_whatever_the_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(streams, "BLOCK", 3)
    assert read(tmp_path, b"ab\rcd\r\ref\r")[0] == [("ab", "cd"), ("ef",)]


@pytest.mark.parametrize("block", range(1, 8))
def test_r40_a_line_end_of_two_characters_may_lie_in_two_blocks(monkeypatch, block):
    monkeypatch.setattr(streams, "BLOCK", block)
    assert b"".join(streams.unified(io.BytesIO(b"a\r\n\nb\r\rc\r\n\r\nd\n\r"))) == b"a\n\nb\n\nc\n\nd\n\n"


def test_r06_each_line_may_be_a_document(tmp_path):
    line = "x " * document.LINE_BYTES
    texts, counts = read(tmp_path, f"one\ntwo\n\n{line}\nthree\n".encode(), document="line")
    assert [len(text) for text in texts] == [1, 1, 2, 1] and "".join(texts[2]) == line
    assert counts.undivided_files == 0


@pytest.mark.parametrize(
    "content, undivided", [(b"a\nb\nc\n", 1), (b"\na\nb\n\n", 1), (b"a\n\nb\n", 0), (b"a\n", 0), (b"aaaaaaaa\nbbbbbbbb\ncccccccc\n", 1)]
)
def test_r06_a_file_without_a_blank_line_is_counted(tmp_path, monkeypatch, content, undivided):
    monkeypatch.setattr(document, "DOCUMENT_CHARACTERS", 10)
    counts, reading = Counts(), Reading()
    (tmp_path / "a.txt").write_bytes(content)
    sources = readers.inputs([str(tmp_path / "a.txt")], reading, counts)
    list(readers.documents(sources, reading, counts))
    assert counts.undivided_files == undivided
    assert ("--document line" in readers.advice(sources, counts)) == bool(undivided)


def test_b05_other_separators_end_no_line(tmp_path):
    assert read(tmp_path, "one \u2028 \u2029 \x85 \x0b \x0c line".encode())[0] == [("one \u2028 \u2029 \x85 \x0b \x0c line",)]


@pytest.mark.parametrize("name", ["a.md", "a.tex", "a.py", "README", "a b.txt", "a.TXT"])
def test_other_names_are_plain_text(tmp_path, name):
    assert read(tmp_path, b"# A title\n\n$x$ {y}\n", name)[0] == [("# A title",), ("$x$ {y}",)]
