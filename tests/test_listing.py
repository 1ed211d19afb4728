"""Files below a folder at a URL: none is passed over because a request failed."""

from collections.abc import Callable

import fsspec
import pytest

from jaxenc import listing, retries, storage
from jaxenc.checkpoint.remote import RemoteSteps
from jaxenc.checkpoint.verify import CHECKSUMS
from jaxenc.errors import UserError
from tests.bucket import Bucket, Status


def refused(name: str, code: int, times: int) -> Callable[[str, str, bool], None]:
    """An accident: so many listings of the folder `name` are refused with a status."""
    left = [times]

    def refuse(kind: str, path: str, done: bool) -> None:
        if kind == "ls" and path.endswith(name) and not done and left[0]:
            left[0] -= 1
            raise Status(code)

    return refuse


@pytest.fixture
def run(bucket_url: str, monkeypatch: pytest.MonkeyPatch) -> storage.Folder:
    """A run with two complete steps, whose arrays lie in folders below them."""
    monkeypatch.setattr(retries, "WAITS", (0.0,))
    folder = storage.folder(f"{bucket_url}/run")
    for step in (1, 2):
        for name in (CHECKSUMS, "state/a/0"):
            folder.write(f"checkpoints/{step}/{name}", b"x")
    return folder


@pytest.mark.parametrize("where", ["checkpoints", "checkpoints/2", "state/a"])
def test_a_folder_that_is_refused_for_a_moment_is_listed_again(where: str, run: storage.Folder, capsys: pytest.CaptureFixture) -> None:
    before = run.files()
    Bucket.accident = staticmethod(refused(where, 503, 1))
    assert run.files() == before and len(before) == 4
    assert capsys.readouterr().err == f"{run.url}: cannot be listed (status 503): trying again in 0 s\n"


@pytest.mark.parametrize("where", ["checkpoints", "checkpoints/2"])
def test_a_folder_that_cannot_be_listed_is_no_half_written_step(where: str, run: storage.Folder) -> None:
    before = run.files()
    steps = RemoteSteps(run.below("checkpoints"))
    Bucket.accident = staticmethod(refused(where, 403, 99))
    for act in (steps.clean, steps.steps):
        with pytest.raises(UserError, match=r"run/checkpoints: cannot be listed \(status 403\)"):
            act()
    Bucket.accident = staticmethod(lambda *given: None)
    assert run.files() == before


def test_a_folder_that_another_process_deletes_meanwhile_has_no_files(run: storage.Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    ls = Bucket.ls

    def gone(system: Bucket, path: str, **given: object) -> list:
        if path.endswith("/1"):
            raise FileNotFoundError(path)
        return ls(system, path, **given)

    monkeypatch.setattr(Bucket, "ls", gone)
    assert RemoteSteps(run.below("checkpoints")).steps() == [2]


PATTERNS = ("*", "*.txt", "?.txt", "[ab]*", "a/*", "*/x.txt", "**", "**/x.txt", "a/**/*.txt", "**/b", "none/*", "a/[!x].txt", "*/*/*")


@pytest.mark.parametrize("kind", ["bucket", "memory"])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_finds_the_files_that_fsspec_finds(kind: str, pattern: str, bucket_url: str) -> None:
    url = f"{bucket_url}/c" if kind == "bucket" else "memory://listing"
    folder = storage.folder(url)
    for name in ("a.txt", "b.md", "a/x.txt", "a/y.txt", "a/b/x.txt", "b/b/b", "c[1].txt"):
        folder.write(name, b"x")
    with storage.opened(f"{url}/{pattern}") as (system, path):
        wanted = [name for name in system.glob(path) if system.isfile(name)]
        found = retries.unless_missing(lambda: listing.matching(system, path, "*?["), [])
    assert sorted(found) == wanted
    if kind == "memory":
        fsspec.filesystem("memory").rm("/listing", recursive=True)
