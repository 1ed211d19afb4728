"""R04: what holds no text is refused by name, whatever it is called; what only looks odd is read."""

import gzip

import pytest

from jaxenc.errors import UserError
from tests.data.readers.reading import found, lines

REFUSED = {
    "a PDF document": b"%PDF-1.7\n1 0 obj\n",
    "an image": b"\x89PNG\r\n\x1a\n",
    "a document in rich text": b"{\\rtf1\\ansi hello}",
    "a web page": b"\n <!DOCTYPE html>\n<html><body>hello</body></html>",
    "a web page (HTML)": b"<HTML><p>hello",
    "XML": b'<?xml version="1.0"?>\n<tei>hello</tei>',
    "a pointer of git-lfs": b"version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 3\n",
    "a database": b"SQLite format 3\0",
    "a 7z archive": b"7z\xbc\xaf\x27\x1c\0\4",
    "compressed with LZ4": b"\x04\x22\x4d\x18d@",
    "an Avro file": b"Obj\x01\x04",
    "an array of NumPy": b"\x93NUMPY\x01\0",
}


@pytest.mark.parametrize("what, content", REFUSED.items())
def test_r04_what_holds_no_text_is_refused_by_name(tmp_path, what, content):
    (tmp_path / "a.txt").write_bytes(content)
    with pytest.raises(UserError) as caught:
        lines(tmp_path / "a.txt")
    assert f"a.txt: is {what}" in str(caught.value)


@pytest.mark.parametrize("name", ["a.parquet", "a.jsonl", "a.csv"])
def test_a_pointer_of_git_lfs_is_none_of_what_it_points_to(tmp_path, name):
    (tmp_path / name).write_bytes(REFUSED["a pointer of git-lfs"])
    with pytest.raises(UserError, match=rf"{name}: is "):
        lines(tmp_path / name)


def test_markup_is_text_when_it_is_asked_for(tmp_path):
    (tmp_path / "a.html").write_text("<html>\n")
    with pytest.raises(UserError, match="--format text"):
        lines(tmp_path / "a.html")
    assert lines(tmp_path / "a.html", format="text") == [("<html>",)]


@pytest.mark.parametrize(
    "content", ["[1] A note.", "{not JSON}", "<p align='center'>A readme</p>", "BZ is a name", "PK", '"Quoted," she said.']
)
def test_text_that_begins_oddly_is_text(tmp_path, content):
    (tmp_path / "a.txt").write_text(content)
    assert lines(tmp_path / "a.txt") == [(content,)]


@pytest.mark.parametrize("name", ["a.srt", "a.vtt"])
def test_subtitles_give_what_is_spoken(tmp_path, name):
    (tmp_path / name).write_text(
        ("WEBVTT - a title\n\nNOTE not shown\nnor this\n\n" if name == "a.vtt" else "")
        + "1\n00:00:01,000 --> 00:00:02,000 align:start\n<i>Hello</i> there.\n{\\an8}Who is it?\n\n"
        "2\n00:00:03.000 --> 00:00:04.000\nNOTE: 12\n"
    )
    assert lines(tmp_path / name) == [("Hello there.", "Who is it?", "NOTE: 12")]


def test_a_format_that_is_asked_for_and_is_not_there(tmp_path):
    (tmp_path / "a").write_text("hello\n")
    for kind, said in (
        ("parquet", "a: --format says parquet, but its content is not"),
        ("jsonl", "a:1: not a JSON object"),
        ("xls", "--format xls: not one of its values; use "),
    ):
        with pytest.raises(UserError, match=said):
            lines(tmp_path / "a", format=kind)


@pytest.mark.parametrize("name", ["a.txt", "a.srt"])
def test_a_field_of_what_has_none_is_refused(tmp_path, name):
    (tmp_path / name).write_text("hello\n")
    with pytest.raises(UserError, match=rf"{name}: is read as \w+, which has no field content; leave out --field"):
        lines(tmp_path / name, field="content")


def record(kind, body, **more):
    fields = {"WARC-Type": kind, **{name.replace("_", "-"): value for name, value in more.items()}, "Content-Length": len(body)}
    return b"WARC/1.0\r\n" + "".join(f"{name}: {value}\r\n" for name, value in fields.items()).encode() + b"\r\n" + body + b"\r\n\r\n"


def test_wet_files_of_common_crawl_give_the_text_of_pages(tmp_path):
    pages = [
        record("warcinfo", b"Software: x\r\n"),
        *(record("conversion", f"{t}\n\nWARC/1.0 é".encode(), WARC_Target_URI=t) for t in "ab"),
    ]
    (tmp_path / "CC.warc.wet.gz").write_bytes(b"".join(map(gzip.compress, pages)))
    documents, _ = found(tmp_path / "CC.warc.wet.gz")
    assert [(d.source[-2:], d.lines) for d in documents] == [(":a", ("a", "WARC/1.0 é")), (":b", ("b", "WARC/1.0 é"))]
    for bad, said in (
        (record("response", b"<html>"), "holds web pages"),
        (pages[1][:-8], "ends inside a record"),
        (pages[1] + b"x\n", "no record begins"),
        (pages[1].replace(b"Length: ", b"Length: x"), "without its length"),
    ):
        (tmp_path / "a.warc").write_bytes(bad)
        with pytest.raises(UserError, match=said):
            lines(tmp_path / "a.warc")
