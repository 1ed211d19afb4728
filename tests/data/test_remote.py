"""Files at another place, copied with checksums; the place is fsspec's own memory."""

import builtins
import contextlib
import errno
import itertools
import json
import os
import sys

import fsspec
import pytest

from jaxenc import retries, storage
from jaxenc.data import readers, remote
from jaxenc.data.readers import Counts, Reading
from jaxenc.errors import UserError
from tests.bucket import Bucket, Status, cut_off
from tests.data.readers.reading import found, lines


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("JAXENC_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "inputs"


@pytest.fixture
def memory():
    """The file system, with three files to read, one to skip and an empty one."""
    system = fsspec.filesystem("memory")
    system.store.clear()
    files = {"b/c.jsonl": b'{"text": "c"}\n', "a.txt": b"a\n", "b/d.txt": b"d\n", "photo.png": b"x", "e.txt": b""}
    for name, content in files.items():
        system.pipe(f"/corpus/{name}", content)
    yield system
    system.store.clear()


def test_a_full_disk_here_is_named_and_not_the_network(memory, cache, monkeypatch):
    @contextlib.contextmanager
    def full(path, durable):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        yield

    monkeypatch.setattr(storage, "written", full)
    with pytest.raises(UserError, match=rf"^{cache}/.*/a.txt: No space left on device; free some space, or name another folder in JAXENC_"):
        remote.local_copy("memory://corpus/a.txt")


def test_a_file_a_folder_and_a_pattern(memory):
    assert lines("memory://corpus/a.txt") == [("a",)]
    documents, counts = found("memory://corpus")
    assert [(d.source, d.lines) for d in documents] == [
        ("memory:///corpus/a.txt:1", ("a",)),
        ("memory:///corpus/b/c.jsonl:1", ("c",)),
        ("memory:///corpus/b/d.txt:1", ("d",)),
    ]
    assert (counts.skipped_files, counts.empty_files) == (1, 1)
    assert lines("memory://corpus/**/*.txt", "memory://corpus/b/*") == [("a",), ("d",), ("c",)]
    for name in ("memory://corpus/none.txt", "memory://corpus/*.csv"):
        with pytest.raises(UserError, match="no such file; check the address"):
            lines(name)


def test_a_copy_is_used_again_until_the_source_changes(memory, cache, capsys, monkeypatch):
    read = []
    copy = storage.download
    monkeypatch.setattr(storage, "download", lambda *given: read.append(given) or copy(*given))
    identities = []
    for content, times in ((b"a\n", 1), (b"a\n", 1), (b"b\n", 2)):
        if content != memory.cat("/corpus/a.txt"):
            memory.pipe("/corpus/a.txt", content)
        (source,) = readers.inputs(["memory://corpus/a.txt"], Reading(), Counts())
        identities.append(source.identity())
        assert len(read) == times and [d.lines for d in readers.documents([source], Reading(), Counts())] == [(content.decode().strip(),)]
    assert identities[0] == identities[1] != identities[2]
    assert capsys.readouterr().err == "memory://corpus/a.txt: has changed, or its copy has; it is copied again\n".replace("//c", "///c")


def test_a_damaged_copy_is_not_used(memory, cache):
    copy = remote.staged("memory:///corpus/a.txt", cache)
    facts = json.loads((copy.path.parent / "source.json").read_text())
    assert facts["sha256"] == copy.sha256 and facts["version"]["size"] == "2" and "created" in facts["version"]
    copy.path.write_bytes(b"x\n")
    assert remote.staged("memory:///corpus/a.txt", cache) == copy and copy.path.read_bytes() == b"a\n"


def test_a_source_that_changes_while_it_is_copied_is_refused(memory, cache, monkeypatch):
    copy = storage.download

    def slow(url, system, path, place):
        digest = copy(url, system, path, place)
        system.pipe(path, b"longer now\n")
        return digest

    monkeypatch.setattr(storage, "download", slow)
    with pytest.raises(UserError, match=r"a\.txt: changed while it was copied"):
        lines("memory://corpus/a.txt")
    monkeypatch.undo()
    assert remote.staged("memory:///corpus/a.txt", cache).path.read_bytes() == b"longer now\n"


def test_a_request_that_fails_for_a_moment_is_repeated(bucket_url, monkeypatch, capsys):
    monkeypatch.setattr(retries, "WAITS", (0.0, 0.0))
    for kind, verb in (("ls", "listed"), ("get", "read")):
        url = f"{bucket_url}/corpus/{kind}.txt"
        storage.folder(f"{bucket_url}/corpus").write(f"{kind}.txt", b"a\n")
        monkeypatch.setattr(Bucket, "accident", staticmethod(cut_off(kind, 503, 2)))
        assert lines(url) == [("a",)]
        assert capsys.readouterr().err == f"{url}: cannot be {verb} (status 503): trying again in 0 s\n" * 2


@pytest.mark.parametrize("pattern", ["corpus/*.txt", "corpus/**/*.txt", "corpus"])
def test_no_file_is_passed_over_because_a_request_failed(pattern, bucket_url, monkeypatch):
    monkeypatch.setattr(retries, "WAITS", (0.0,))
    for name in ("a.txt", "b.txt", "c/d.txt"):
        storage.folder(f"{bucket_url}/corpus").write(name, name.encode() + b"\n")
    wanted = remote.found(f"{bucket_url}/{pattern}")
    for number in range(4):
        calls = itertools.count()

        def refuse(kind, name, done, number=number, calls=calls):
            if kind == "ls" and not done and next(calls) == number:
                raise Status(503)

        monkeypatch.setattr(Bucket, "accident", staticmethod(refuse))
        assert remote.found(f"{bucket_url}/{pattern}") == wanted


def test_a_name_of_any_letters_and_length_is_copied(memory, cache):
    for name in (f"{'語' * 84}.txt", "a[1].txt", "b?.txt", "ü ñ%20#.txt", "*.txt"):
        memory.pipe(f"/corpus/{name}", f"{name}\n".encode())
        assert lines(f"memory://corpus/{name}") == [(name,)]


def test_a_folder_is_no_file(memory, cache):
    with pytest.raises(UserError, match="^memory://corpus: is a folder; name a file in it$"):
        remote.local_copy("memory://corpus")


def test_a_missing_file_has_no_fault_of_the_network(memory, cache):
    with pytest.raises(UserError, match="^memory://corpus/none.json: no such file; check the address$"):
        remote.local_copy("memory://corpus/none.json")


@pytest.mark.parametrize(
    "url, package", [("s3://bucket/a.txt", "s3fs"), ("gs://bucket/a.txt", "gcsfs"), ("https://example.org/a.txt", "aiohttp requests")]
)
def test_a_missing_package_is_named(monkeypatch, url, package):
    for name in package.split():
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules["fsspec.registry"]._registry, url.partition(":")[0], raising=False)
    with pytest.raises(UserError, match=rf"a\.txt: needs a package that is not installed; install it with `pip install {package}`$"):
        lines(url)


def test_an_address_of_no_known_kind_and_fsspec_itself(monkeypatch):
    with pytest.raises(UserError, match="foo://x: cannot be opened .*fsspec knows"):
        lines("foo://x")
    wanted = builtins.__import__

    def without(name, *rest, **how):
        if name == "fsspec":
            raise ImportError("no fsspec", name="fsspec")
        return wanted(name, *rest, **how)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(UserError, match=r"pip install 'jaxenc\[data\]'"):
        lines("memory://corpus/a.txt")
