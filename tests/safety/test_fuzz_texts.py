"""Damaged texts, tables and archives: read with U+FFFD or one line, in bounded time and memory."""

import bz2
import gzip
import io
import json
import lzma
import tarfile
import zipfile

import pyarrow as pa
import pyarrow.parquet
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from tests.data.readers.reading import lines
from tests.safety.damage import Edits, bounded, byte_edits, damaged, fuzzed

LINES = b'{"text": "one\\ntwo \\ud83d\\ude00"}\n{"words": ["a", "b"]}\n\n{"text": ""}\n' + "é ü\n".encode()
TABLE = pa.table({"text": ["one", "two", None], "id": [1, 2, 3]})
PAGE = b"<page><title>A</title><ns>0</ns><revision><text>''A'' [[b|c]] {{d}}</text></revision></page>"


def zipped() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo("a.txt"), LINES)
        archive.writestr(zipfile.ZipInfo("b.jsonl"), LINES.split(b"\n")[0])
    return out.getvalue()


def tarred() -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        facts = tarfile.TarInfo("a.txt")
        facts.size = len(LINES)
        archive.addfile(facts, io.BytesIO(LINES))
    return out.getvalue()


def arrow() -> bytes:
    out = io.BytesIO()
    with pa.ipc.new_stream(out, TABLE.schema) as stream:
        stream.write_table(TABLE)
    return out.getvalue()


def parquet() -> bytes:
    out = io.BytesIO()
    pa.parquet.write_table(TABLE, out)
    return out.getvalue()


INPUTS = {
    "x.jsonl": LINES,
    "x.json": json.dumps([{"text": "one"}, {"text": "two", "n": [1]}]).encode(),
    "x.txt": "é ü\na b\n\nc\r\n".encode(),
    "x.csv": b'id,text\n1,"one, ""two"""\n2,"a\nb"\n',
    "x.tsv": b'id\ttext\n1\t"one\ttwo"\n2\t"a\n',
    "x.srt": b"1\n00:00:01,000 --> 00:00:02,000\n<i>Hello</i>\n",
    "x.xml": b"<mediawiki>" + PAGE + PAGE + b"</mediawiki>",
    "x.wet": b"WARC/1.0\r\nWARC-Type: conversion\r\nContent-Length: 3\r\n\r\nabc\r\n\r\n",
    "x.jsonl.gz": gzip.compress(LINES, mtime=0),
    "x.txt.bz2": bz2.compress(LINES),
    "x.txt.xz": lzma.compress(LINES),
    "x.txt.zst": zstandard.compress(LINES),
    "x.zip": zipped(),
    "x.tar": tarred(),
    "x.arrow": arrow(),
    "x.parquet": parquet(),
}


@fuzzed(1500)
@given(edits=byte_edits(), name=st.sampled_from(list(INPUTS)))
def test_texts(tmp_path_factory: pytest.TempPathFactory, edits: Edits, name: str) -> None:
    """Nothing changes what a document is: at least one line, none of them blank, all of them Unicode."""
    path = tmp_path_factory.getbasetemp() / name
    path.write_bytes(damaged(INPUTS[name], edits))
    with bounded():
        for document in lines(path):
            assert document and all("\n" not in line and line.strip() for line in document)
            "".join(document).encode()
