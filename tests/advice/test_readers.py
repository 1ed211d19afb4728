"""The advice about files of text, followed: with the option or the other file that it names, a document is read."""

import gzip
import io
import re
import zipfile
from pathlib import Path

import pytest

from jaxenc.errors import UserError
from tests.advice.following import follow
from tests.data.readers import reading

TEXT = b"one two\nthree\n"
WET = b"WARC/1.0\r\nWARC-Type: conversion\r\nContent-Length: 8\r\n\r\none two\n\r\n\r\n"


def zipped(name: str, content: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr(name, content)
    return out.getvalue()


def nested(depth: int) -> bytes:
    content, name = TEXT, "one.txt"
    for _ in range(depth):
        content, name = zipped(name, content), "one.zip"
    return content


# name -> its content, and the content that it should have, b'' for none
FILES: dict[str, tuple[bytes, bytes]] = {
    "cut.txt.gz": (gzip.compress(TEXT * 99)[:-12], gzip.compress(TEXT)),
    "wrong.txt.gz": (gzip.compress(TEXT * 99)[:20] + b"x" * 50, gzip.compress(TEXT)),
    "text.txt.gz": (TEXT, gzip.compress(TEXT)),
    "text.txt.xz": (TEXT, TEXT),
    "deep.zip": (nested(9), TEXT),
    "cut.zip": (zipped("one.txt", TEXT)[:40], zipped("one.txt", TEXT)),
    "office.docx": (zipped("[Content_Types].xml", TEXT), TEXT),
    "page.html": (b"<!doctype html><p>one", b"one two\n"),
    "page.xml": (b"<?xml version='1.0'?><p>one", b"one two\n"),
    "short.wet": (WET[:-12], WET),
    "lost.wet": (WET + b"text\n", WET),
    "bare.wet": (WET.replace(b"Content-Length", b"Content"), WET),
    "huge.wet": (WET.replace(b": 8", b": 99999999999"), WET),
    "pages.warc": (WET.replace(b"conversion", b"response"), WET),
    "wiki.txt": (b'<doc id="1" url="a" title="b">\nb\n\none\n', b'<doc id="1" url="a" title="b">\nb\n\none\n</doc>\n'),
    "wiki.xml": (b"<mediawiki><page><title>a</title>", TEXT),
    "number.jsonl": (b"[1]\n{}\n", b'{"text": "one"}\n'),
    "split.jsonl": (b'{"text":\n"one"}\n{"text": "b"}\n', b'{"text": "one"}\n'),
    "field.jsonl": (b'{"a": "one", "b": "two"}\n', b""),
    "both.jsonl": (b'{"text": "one", "words": ["two"]}\n', b""),
    "open.json": (b'[{"text": "one"}', b'[{"text": "one"}]'),
    "latin.txt": ("bé dé\n".encode("cp1252") * 99, b""),
    "rows.csv": (b"text,other\none,two,three\n", b'text,other\none,"two,three"\n'),
    "columns.csv": (b"a,b\none,two\n", b""),
    "twice.csv": (b"text,text\none,two\n", b"text,text2\none,two\n"),
    "quote.csv": (b'text,b\n"one,two\n', b'text,b\n"one",two\n'),
}

Attempt = tuple[str, tuple[tuple[str, str], ...]]


def advised(error: UserError, attempt: Attempt) -> list[Attempt]:
    """The same file with another option, or once it holds what it should."""
    name, how = attempt
    if match := re.search(r"(?:with )?--format (\w+)", error.fix):
        return [(name, (("format", match[1]),))]
    if match := re.search(r"--encoding (\S+)", error.fix):
        return [(name, (("encoding", match[1]),))]
    if fields := re.findall(r"--field (\w+)", error.fix) or re.findall(r"(\w+)(?:,|$)", error.fix.partition("--field:")[2]):
        return [(name, (("field", field),)) for field in fields]
    if error.fix.startswith("rename it"):
        return [(Path(name).rename(name.rpartition(".")[0]).name, how), whole(name, how)]
    words = "again|unpack|save|fix|write|quote|rename|close|take|use the WET|get|make|check|resave|convert"
    return [whole(name, how)] if re.search(words, error.fix) else []


def whole(name: str, how: tuple[tuple[str, str], ...]) -> Attempt:
    """The file with what it should hold, as its own kind or, where that is a text, under a name that says so."""
    content = FILES[Path(name).name][1]
    name = name if content != TEXT else f"{name}.txt"
    Path(name).write_bytes(content)
    return name, how


def read(attempt: Attempt) -> None:
    name, how = attempt
    documents, _ = reading.found(name, **dict(how))
    assert documents


@pytest.mark.parametrize("name", FILES)
def test_of_files(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).write_bytes(FILES[name][0])
    assert follow(read, (name, ()), advised)
