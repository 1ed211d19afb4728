"""Files at a URL: fsspec's own memory, and an object store that refuses, for a moment or for good."""

import contextlib
import errno
import hashlib
import os
from collections.abc import Callable, Sized
from pathlib import Path

import fsspec
import pytest
from fsspec.implementations.local import LocalFileSystem

from jaxenc import retries, storage
from jaxenc.data import remote
from jaxenc.errors import UserError
from tests.bucket import Bucket, cut_off


@pytest.fixture
def url(bucket_url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Of a folder in an empty object store."""
    monkeypatch.setattr(retries, "WAITS", (0.0, 0.0))
    return f"{bucket_url}/run"


@pytest.mark.parametrize("kind", ["bucket", "memory", "file"])
def test_a_folder_gives_back_what_was_put_into_it(kind: str, url: str, tmp_path: Path) -> None:
    folder = storage.folder({"bucket": url, "memory": "memory://test_storage/run/", "file": f"file://{tmp_path}/far/run"}[kind])
    assert folder.files() == {} and folder.names() == []
    with pytest.raises(FileNotFoundError):
        folder.read("a.txt")
    (tmp_path / "local").write_bytes(b"xyz")
    folder.write("a.txt", b"a")
    folder.upload(tmp_path / "local", "steps/1/b.bin")
    folder.below("steps").copy("1/b.bin", "2/c.bin")
    assert folder.files() == {"a.txt": 1, "steps/1/b.bin": 3, "steps/2/c.bin": 3} and folder.names() == ["a.txt", "steps"]
    assert folder.download("steps/2/c.bin", tmp_path / "new" / "c.bin") == hashlib.sha256(b"xyz").hexdigest()
    assert folder.read("a.txt") == b"a" and (tmp_path / "new" / "c.bin").read_bytes() == b"xyz"
    folder.write("a.txt", b"over")
    folder.remove(["steps/1/b.bin", "steps/none"])
    assert folder.files() == {"a.txt": 4, "steps/2/c.bin": 3}
    if kind == "file":
        assert folder.below("steps").names() == ["2"], "a folder that has become empty"
    if kind == "memory":
        fsspec.filesystem("memory").rm("/test_storage", recursive=True)


@pytest.mark.parametrize("act", ["write", "upload", "copy"])
def test_a_file_on_a_disk_is_whole_or_as_before(act: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk fills up in the middle of a file, as a kill may come there."""
    (tmp_path / "local").write_bytes(b"xyz")
    folder = storage.folder(f"file://{tmp_path}/far")
    folder.write("a.json", b"old")

    def half(system: object, source: str, path: str | bytes) -> None:
        source, path = (path, source) if isinstance(path, bytes) else (source, path)
        Path(path).write_bytes(b"x")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    for name in ("pipe_file", "put_file", "cp_file"):
        monkeypatch.setattr(LocalFileSystem, name, half)
    with pytest.raises(UserError, match=r"a\.json: cannot be written \(No space left on device\); free some space there$"):
        {"write": lambda: folder.write("a.json", b"new"), "upload": lambda: folder.upload(tmp_path / "local", "a.json"),
         "copy": lambda: folder.copy("a.json", "a.json")}[act]()  # fmt: skip
    monkeypatch.undo()
    assert folder.read("a.json") == b"old" and folder.names() == ["a.json"]


@pytest.mark.parametrize("list_", [storage.Folder.names, storage.Folder.files])
def test_a_folder_is_listed_anew(list_: Callable[[storage.Folder], Sized], url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """s3fs and gcsfs keep listings, and another process may have written since."""
    kept: dict[tuple[str, bool], list] = {}
    ls = Bucket.ls
    monkeypatch.setattr(Bucket, "ls", lambda system, path, detail=True: kept.setdefault((path, detail), ls(system, path, detail)))
    monkeypatch.setattr(Bucket, "invalidate_cache", lambda system, path=None: kept.clear())
    folder = storage.folder(url)
    for count in (1, 2):
        folder.write(f"{count}.txt", b"x")
        assert len(list_(folder)) == count


def test_a_name_that_leads_out_of_the_folder_is_not_seen(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    found = ("b/run/a", "b/run/x/../../a", "b/run/..", "b/run/", "b/run")
    entries = [{"name": name, "size": 1, "type": "file"} for name in found]
    monkeypatch.setattr(Bucket, "ls", lambda system, path, detail=True: entries if detail else found)
    assert storage.folder(url).files() == {"a": 1} and storage.folder(url).names() == ["a"]


def test_a_refusal_that_passes_is_tried_again_and_told(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    folder = storage.folder(url)
    Bucket.accident = staticmethod(cut_off("put", 503, 2))
    folder.write("a.txt", b"a")
    assert folder.read("a.txt") == b"a"
    assert capsys.readouterr().err == f"{url}/a.txt: cannot be written (status 503): trying again in 0 s\n" * 2


@pytest.mark.parametrize("code, tries", [(503, 3), (429, 3), (403, 1), (400, 1)])
def test_a_refusal_that_stays_is_one_line(url: str, code: int, tries: int, capsys: pytest.CaptureFixture[str]) -> None:
    Bucket.accident = staticmethod(cut_off("put", code, 99))
    with pytest.raises(
        UserError, match=rf"run/a\.txt: cannot be written \(status {code}\); check the address, the network and your permissions$"
    ):
        storage.folder(url).write("a.txt", b"a")
    assert len(capsys.readouterr().err.splitlines()) == tries - 1


def test_a_download_that_fails_leaves_nothing(url: str, tmp_path: Path) -> None:
    folder = storage.folder(url)
    folder.write("a.txt", b"a")
    Bucket.accident = staticmethod(cut_off("get", 403, 1))
    with pytest.raises(UserError, match="cannot be read"):
        folder.download("a.txt", tmp_path / "new" / "a.txt")
    assert not any((tmp_path / "new").iterdir())


def test_two_that_ask_at_once_whether_they_may_write_do_not_disturb_each_other(url: str) -> None:
    asked = []

    def other(kind: str, name: str, done: bool) -> None:
        if kind == "get" and not asked:
            asked.append(name)
            storage.folder(url).must_be_writable("--workdir")

    Bucket.accident = staticmethod(other)
    storage.folder(url).must_be_writable("--workdir")
    assert asked and storage.folder(url).files() == {}


class FromHttp(Exception):
    """As aiohttp's errors."""

    __module__ = "aiohttp.client_exceptions"

    def __init__(self, status: int) -> None:
        self.status = status


@pytest.mark.parametrize("cause", [FromHttp(503), ConnectionResetError("cut off"), TimeoutError()])
def test_a_request_that_fails_is_no_missing_file(cause: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    """fsspec's http says that there is no file, whatever went wrong."""
    monkeypatch.setattr(retries, "WAITS", (0.0, 0.0))
    left = [cause, cause]

    def call() -> str:
        if left:
            raise FileNotFoundError("http://a/b") from left.pop()
        return "content"

    assert retries.retried("http://a/b", "read", call) == "content"
    left[:] = [cause]
    with pytest.raises(type(cause)) as found:
        retries.unless_missing(call, "")
    assert found.value.__cause__ is None, "or the causes go round"


@pytest.mark.parametrize("cause", [FromHttp(404), KeyError("b"), None])
def test_a_missing_file_is_one(cause: Exception | None) -> None:
    def call() -> str:
        raise FileNotFoundError("http://a/b") from cause

    with pytest.raises(FileNotFoundError):
        retries.retried("http://a/b", "read", call)
    assert retries.unless_missing(call, "none") == "none"


def test_a_request_that_is_refused_for_good_says_so() -> None:
    def call() -> None:
        raise FileNotFoundError("http://a/b") from FromHttp(403)

    with pytest.raises(UserError, match="^http://a/b: cannot be read .*; check the address"):
        retries.retried("http://a/b", "read", call)


def test_a_file_is_downloaded_as_a_whole(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A web server without ranges gives no parts of a large file."""
    folder = storage.folder(url)
    monkeypatch.setattr(Bucket, "_open", lambda *given, **more: pytest.fail("was opened to be read in parts"))
    monkeypatch.setattr(Bucket, "get_file", lambda self, path, local, **more: Path(local).write_bytes(b"all"))
    assert folder.download("a", tmp_path / "a") == hashlib.sha256(b"all").hexdigest() and (tmp_path / "a").read_bytes() == b"all"


@pytest.mark.parametrize("url", ["zip://a.txt::memory://x.zip", "simplecache::gs://bucket/run", "gs://bucket/a::b/run"])
def test_a_chained_url_is_refused(url: str) -> None:
    for act in (lambda: storage.folder(url), lambda: remote.found(url), lambda: remote.local_copy(url)):
        with pytest.raises(UserError, match=f"^{url}: is a chained URL; give its last part alone"):
            act()


@pytest.mark.parametrize("path", ["gs://bucket/run", Path("gs://bucket/run"), Path("s3://b")])
def test_what_takes_a_folder_refuses_a_url_and_what_pathlib_makes_of_it(path: str | Path) -> None:
    with pytest.raises(UserError, match=f"--out {path}: a URL, and only a local path works here; {storage.WRITE_HERE}"):
        storage.must_be_local(path, "--out", storage.WRITE_HERE)


@pytest.mark.parametrize("path", ["runs/a", "/runs/a", "a:b/c", Path("x/gs:/b"), "", "hf:DIR"])
def test_a_path_is_no_url(path: str | Path) -> None:
    storage.must_be_local(path, "--out", storage.WRITE_HERE)
    assert not storage.is_url(path)


@pytest.mark.parametrize("url", ["memory://", "memory:///", "gs://"])
def test_an_address_without_a_folder_is_refused(url: str) -> None:
    """The files of a bare root are listed without the slash that they are written with: a run there would start over each time."""
    with pytest.raises(UserError, match=f"{url}: names no folder; add one, as in gs://BUCKET/FOLDER"):
        storage.folder(url)


@pytest.mark.parametrize("url", ["memory://a/../b", "memory://a/./b", "file:///tmp/.."])
def test_an_address_with_dots_is_refused(url: str) -> None:
    with pytest.raises(UserError, match=r"has a part '\.\.?'; write the address without it"):
        storage.folder(url)


def test_a_full_disk_on_this_machine_is_not_a_fault_of_the_address(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = storage.folder(url)
    folder.write("a", b"content")
    monkeypatch.setattr(storage, "written", lambda path, durable: contextlib.nullcontext(Path("/dev/full")))
    with pytest.raises(
        UserError, match=f"{tmp_path}/b: .*No space left on device; free some space, or name another folder in JAXENC_CACHE"
    ):
        folder.download("a", tmp_path / "b")
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match=f"{tmp_path}/file: .*; free some space, or name another folder in JAXENC_CACHE"):
        folder.download("a", tmp_path / "file" / "b")
