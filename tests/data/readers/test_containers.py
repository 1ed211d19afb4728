"""Compressed files and archives: known by their first bytes, whole, in the order of their names."""

import bz2
import gzip
import io
import lzma
import tarfile
import tracemalloc
import zipfile

import pytest
import zstandard

from jaxenc.data.readers import Counts, compressed
from jaxenc.errors import UserError
from tests.data.readers.reading import found, lines

PACK = {"gz": gzip.compress, "xz": lzma.compress, "bz2": bz2.compress, "zst": zstandard.ZstdCompressor(write_checksum=True).compress}
TEXT = b"".join(b"line %d of the text\n" % i for i in range(5000))
LINES = [tuple(TEXT.decode().splitlines())]


def tar(files: dict[str, bytes], mode: str = "w") -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as archive:
        for name, content in files.items():
            facts = tarfile.TarInfo(name)
            facts.size = len(content)
            archive.addfile(facts, io.BytesIO(content))
    return out.getvalue()


def zipped(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return out.getvalue()


@pytest.mark.parametrize("kind", PACK)
@pytest.mark.parametrize("name", ["a.txt.{}", "a.txt", "a"])
def test_r04_compression_is_known_by_its_first_bytes(tmp_path, kind, name):
    path = tmp_path / name.format(kind)
    path.write_bytes(PACK[kind](TEXT))
    assert lines(path) == LINES


@pytest.mark.parametrize("kind", PACK)
def test_several_members_are_one_file(tmp_path, kind):
    cut = 31_417
    (tmp_path / "a.txt").write_bytes(PACK[kind](TEXT[:cut]) + PACK[kind](b"") + PACK[kind](TEXT[cut:]))
    documents, counts = found(tmp_path / "a.txt")
    assert [d.lines for d in documents] == LINES and counts.trailing_bytes == 0


@pytest.mark.parametrize("kind", PACK)
@pytest.mark.parametrize("rest", [b"Signature: 12345\n", b"\0" * 1000 + b"junk", b"x"])
def test_r40_bytes_after_the_end_are_counted(tmp_path, kind, rest):
    (tmp_path / f"a.txt.{kind}").write_bytes(PACK[kind](TEXT) + rest)
    documents, counts = found(tmp_path / f"a.txt.{kind}")
    assert [d.lines for d in documents] == LINES and counts.trailing_bytes == len(rest.lstrip(b"\0"))


def test_padding_is_no_content(tmp_path):
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(TEXT) + b"\0" * 200_000)
    documents, counts = found(tmp_path / "a.txt.gz")
    assert [d.lines for d in documents] == LINES and counts.trailing_bytes == 0


@pytest.mark.parametrize("kind", PACK)
def test_damage_is_one_line(tmp_path, kind):
    whole = PACK[kind](bytes(range(48, 120)) * 2000 + TEXT)
    path = tmp_path / f"a.txt.{kind}"
    changed = (
        whole[: len(whole) // 2]
        + bytes(byte ^ 0x55 for byte in whole[len(whole) // 2 : len(whole) // 2 + 30])
        + whole[len(whole) // 2 + 30 :]
    )
    for content in (whole[: len(whole) // 2], whole[:-1], changed):
        path.write_bytes(content)
        with pytest.raises(UserError, match=rf"a\.txt\.{kind}: the compressed data is damaged"):
            lines(path)


def test_a_name_that_promises_compression_and_layers_without_end(tmp_path):
    (tmp_path / "a.txt.zst").write_bytes(TEXT)
    with pytest.raises(UserError, match=r"a\.txt\.zst: is not Zstandard data"):
        lines(tmp_path / "a.txt.zst")
    (tmp_path / "a.jsonl.gz.xz").write_bytes(lzma.compress(gzip.compress(b'{"text": "a"}')))
    assert lines(tmp_path / "a.jsonl.gz.xz") == [("a",)]
    deep = TEXT
    for _ in range(compressed.DEEPEST):
        deep = gzip.compress(deep)
    (tmp_path / "deep").write_bytes(deep)
    with pytest.raises(UserError, match="deep: is compressed more than 3 times"):
        lines(tmp_path / "deep")


FILES = {
    "b.jsonl": b'{"text": "from json"}\n',
    "a/z.txt": b"zed\n",
    "a/b.txt.gz": gzip.compress(b"packed\n"),
    ".hidden": b"no\n",
    "__MACOSX/a": b"no\n",
    "photo.PNG": b"\x89PNG",
    "empty.txt": b"",
}
READ = [("a/b.txt.gz", "packed"), ("a/z.txt", "zed"), ("b.jsonl", "from json")]


@pytest.mark.parametrize(
    "name, content",
    [
        ("x.zip", zipped(FILES)),
        ("x.tar", tar(FILES)),
        ("x.tar.gz", gzip.compress(tar(FILES))),
        ("x.tgz", tar(FILES, "w:gz")),
        ("x.tar.zst", zstandard.compress(tar(FILES))),
        ("x", bz2.compress(zipped(FILES))),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_archives_are_read_in_the_order_of_names(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    documents, counts = found(tmp_path / name)
    assert [(d.source, d.lines) for d in documents] == [(f"{tmp_path / name}/{member}:1", (text,)) for member, text in READ]
    assert (counts.skipped_files, counts.empty_files) == (3, 1)


def test_archives_in_archives(tmp_path):
    (tmp_path / "x.zip").write_bytes(zipped({"in.tar": tar({"in.zip": zipped({"a.txt": b"deep\n"})}), "z.txt": b"flat\n"}))
    assert [(d.source, d.lines) for d in found(tmp_path / "x.zip")[0]] == [
        (f"{tmp_path}/x.zip/in.tar/in.zip/a.txt:1", ("deep",)),
        (f"{tmp_path}/x.zip/z.txt:1", ("flat",)),
    ]


@pytest.mark.parametrize(
    "content, said",
    [
        (zipped({"a.txt": TEXT})[:-40], "the archive is damaged"),
        (tar({"a.txt": TEXT})[:2000], "the archive is damaged"),
        (zipped({"word/document.xml": b"<w>", "[Content_Types].xml": b"<x>"}), "Microsoft Office"),
        (zipped({"mimetype": b"application/epub+zip", "a.xhtml": b"<html>"}), "OpenOffice or an e-book"),
        (zipped({"a.png": b"\x89PNG"}), "no document found"),
    ],
)
def test_bad_archives_are_one_line(tmp_path, content, said):
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(UserError, match=said):
        lines(tmp_path / "x")


def test_links_in_a_tar_are_skipped_and_a_member_never_leaves_it(tmp_path):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        link = tarfile.TarInfo("link.txt")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
        facts = tarfile.TarInfo("../outside.txt")
        facts.size = 3
        archive.addfile(facts, io.BytesIO(b"in\n"))
    (tmp_path / "x.tar").write_bytes(out.getvalue())
    documents, counts = found(tmp_path / "x.tar")
    assert [d.lines for d in documents] == [("in",)] and counts.skipped_files == 1


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress])
def test_what_a_small_file_unpacks_to_is_never_held_whole(pack):
    """64 MB of one character: what is held stays below 24 MB, whatever the format allows."""
    packed = pack(b"a" * (1 << 26), *((1,) if pack is gzip.compress else ()))
    tracemalloc.start()
    file, _ = compressed.unpacked(io.BufferedReader(io.BytesIO(packed)), "a", Counts())
    size = 0
    while block := file.read(1 << 20):
        size += len(block)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert size == 1 << 26 and peak < 24 << 20
