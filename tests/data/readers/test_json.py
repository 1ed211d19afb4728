"""JSON lines, arrays and dumps: the field that holds the text (R08, R40, B12)."""

import gzip
import json

import pytest

from jaxenc.data.readers import json_lines, streams
from jaxenc.errors import UserError
from tests.data.readers.reading import found, lines


def write(path, *records, **how):
    path.write_text("".join(json.dumps(record, **how) + "\n" for record in records), encoding="utf-8")
    return path


def test_r08_the_field_is_named(tmp_path):
    path = write(tmp_path / "a.jsonl", {"content": "one", "meta": {"body": {"raw": "deep"}}, "a.b": "dotted", "parts": ["x", "y"]})
    for field, text in (("content", "one"), ("meta.body.raw", "deep"), ("a.b", "dotted"), ("parts", "x y")):
        assert lines(path, field=field) == [(text,)]


@pytest.mark.parametrize(
    "record, field, said",
    [
        ({"content": "a", "id": 1}, "", r"a\.jsonl:1: has no text; .*--field: content, id"),
        ({"content": "a", "meta": {"x": 1}}, "body", r"a\.jsonl:1: has no field body; .*--field: content, meta\.x"),
        ({"text": 3}, "", "the field text holds int, and not a text or a list of texts"),
        ({"text": ["a", {}]}, "", "holds dict, and not a text"),
        ({"text": {"raw": "a"}}, "text", r"holds dict, .*text\.raw"),
        ({}, "", "it is empty"),
        ({f"f{i}": i for i in range(40)}, "", "f11 and 28 more"),
    ],
)
def test_r08_a_missing_field_names_those_that_are_there(tmp_path, record, field, said):
    with pytest.raises(UserError, match=said):
        lines(write(tmp_path / "a.jsonl", record), field=field)


def test_r40_text_and_words_are_not_chosen_between_in_silence(tmp_path):
    path = write(tmp_path / "a.jsonl", {"text": "one two", "words": ["on", "e"]})
    with pytest.raises(UserError, match=r"a\.jsonl:1: has both text and words; choose with --field text or --field words"):
        lines(path)
    assert (lines(path, field="text"), lines(path, field="words")) == ([("one two",)], [("on e",)])
    assert lines(write(path, {"text": None, "words": ["a", "b"]})) == [("a b",)]


def test_null_is_a_document_without_text(tmp_path):
    documents, counts = found(write(tmp_path / "a.jsonl", {"text": None}, {"text": "a"}, {"text": "\u200a"}))
    assert [d.lines for d in documents] == [("a",)] and counts.empty_documents == 2
    path = write(tmp_path / "b.jsonl", {"meta": None}, {"meta": {"text": "b"}})
    assert lines(path, field="meta.text") == [("b",)]


@pytest.mark.parametrize("name", ["a", "a.txt", "part-00000", "a.gz"])
def test_json_lines_are_known_whatever_the_name(tmp_path, name):
    content = b'{"text": "one"}\n{"text": "two"}\n'
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    assert lines(tmp_path / name) == [("one",), ("two",)]
    assert lines(tmp_path / name, format="text") == [('{"text": "one"}', '{"text": "two"}')]


@pytest.mark.parametrize("block", [5, 64, 1 << 20])
@pytest.mark.parametrize("how", [{}, {"indent": 1}, {"separators": (",", ":")}, {"ensure_ascii": False, "indent": 3}])
def test_one_array_of_objects_is_read(tmp_path, monkeypatch, block, how):
    monkeypatch.setattr(streams, "BLOCK", block)
    texts = ['a "quoted" [x]', "é\n\U0001f600", "{", "", "z" * 300]
    (tmp_path / "a.json").write_text(json.dumps([{"id": i, "text": text} for i, text in enumerate(texts)], **how), encoding="utf-8")
    documents, counts = found(tmp_path / "a.json")
    assert [d.lines for d in documents] == [tuple(text.split("\n")) for text in texts if text] and counts.empty_documents == 1
    assert documents[1].source == f"{tmp_path}/a.json:record 2"


@pytest.mark.parametrize("block", range(5, 12))
def test_no_character_of_a_long_line_is_cut_in_two(tmp_path, monkeypatch, block):
    monkeypatch.setattr(streams, "BLOCK", block)
    texts = ["ไทย" * 9, "\U0001f600é" * 9]
    (tmp_path / "a.json").write_text(json.dumps([{"text": text} for text in texts], ensure_ascii=False), encoding="utf-8")
    documents, counts = found(tmp_path / "a.json")
    assert [d.lines for d in documents] == [(text,) for text in texts] and counts.invalid == 0


def test_objects_over_several_lines_are_read(tmp_path):
    path = tmp_path / "a.json"
    path.write_text("\n".join(json.dumps({"text": text, "n": [1]}, indent=2) for text in ("one", "two")))
    assert lines(path) == [("one",), ("two",)]
    path.write_text(json.dumps({"version": 1, "data": [{"text": "a"}]}, indent=1))
    with pytest.raises(UserError, match=r"a\.json:record 1: has no text; .*version, data"):
        lines(path)


@pytest.mark.parametrize(
    "content, said",
    [
        ('[{"text": "a"}, {"text": "b"', "record 2: the file ends inside"),
        ('[{"text": "a"}', "the file ends inside"),
        ('[{"text": "a"}] []', "goes on after it"),
        ('[{"text": "a"}, {"text" "b"}, {"text": "c"}]' + " " * 100, "record 2: not a JSON object"),
        ('["a", "b"]', r"record 1: not an object; write \{"),
        ("[]", "no document found"),
        ('{"text": "a"}\n"b"\n', "a.json:2: not an object"),
        ("[" * 100_000, "record 1: "),
    ],
)
def test_a_damaged_array_is_one_line(tmp_path, content, said):
    (tmp_path / "a.json").write_text(content)
    with pytest.raises(UserError, match=said):
        lines(tmp_path / "a.json")


def test_a_record_without_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(json_lines, "LONGEST", 1 << 16)
    (tmp_path / "a.json").write_text('[{"text": "' + "a" * (1 << 22))
    with pytest.raises(UserError, match="record 1: not a JSON object, of at most 65,536 bytes"):
        lines(tmp_path / "a.json")


def test_cirrus_search_dumps_give_their_articles(tmp_path):
    page = {"wiki": "enwiki", "title": "A", "language": "en"}
    records = [
        {"index": {"_id": "1"}},
        {**page, "namespace": 0, "text": "prose"},
        {"index": {"_id": "2"}},
        {**page, "namespace": 1, "text": "no"},
    ]
    documents, counts = found(write(tmp_path / "enwiki-cirrussearch-content.json", *records))
    assert [d.lines for d in documents] == [("prose",)] and counts.skipped_pages == 1
