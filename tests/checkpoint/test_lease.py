"""Who may write to a folder at a URL."""

import json
import os
import subprocess
import sys
import time

import pytest

from jaxenc import storage
from jaxenc.checkpoint import lease
from jaxenc.checkpoint.lease import NAME, Lease
from jaxenc.errors import UserError
from jaxenc.storage import Folder


@pytest.fixture
def folder(bucket_url: str) -> Folder:
    return storage.folder(f"{bucket_url}/run")


def written(folder: Folder, **facts: object) -> None:
    """A lease as another process leaves it."""
    own = {"owner": "other", "count": 3, **lease._identity()}
    folder.write(NAME, json.dumps({**own, **facts}).encode())


def test_a_second_process_of_this_machine_is_refused_at_once(folder: Folder) -> None:
    with Lease(folder) as mine:
        assert lease.owner(folder) == mine.token
        with pytest.raises(UserError, match=rf"run: another process is writing here \(process {os.getpid()} on .*\); wait for it, or"):
            Lease(folder)
        mine.confirm()
    assert folder.names() == []


def test_a_process_that_died_here_is_replaced_at_once(folder: Folder) -> None:
    dead = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True, check=True)
    written(folder, pid=int(dead.stdout), began="1")
    with Lease(folder, stale=1000):
        pass
    # Its number belongs to another process by now: this one.
    written(folder, began="1")
    with Lease(folder, stale=1000):
        pass


def test_a_silent_process_elsewhere_is_waited_for_and_replaced(folder: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    written(folder, host="elsewhere", pid=7)
    with Lease(folder, stale=0.1):
        pass
    assert capsys.readouterr().err == f"{folder.url}: process 7 on elsewhere was writing here: waiting 0.1 s for a sign of life\n"


def test_a_living_process_elsewhere_is_not_replaced(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    written(folder, host="elsewhere", pid=7)
    monkeypatch.setattr(lease.time, "sleep", lambda seconds: written(folder, host="elsewhere", pid=7, count=4))
    with pytest.raises(UserError, match=r"another process is writing here \(process 7 on elsewhere\)"):
        Lease(folder, stale=1000)


def test_a_lease_that_is_given_back_meanwhile_is_free(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    written(folder, host="elsewhere", pid=7)
    monkeypatch.setattr(lease.time, "sleep", lambda seconds: folder.remove([NAME]))
    with Lease(folder, stale=1000):
        pass


def test_a_process_that_lost_the_lease_ends_and_keeps_the_new_one(folder: Folder) -> None:
    with Lease(folder) as mine:
        mine.check()
        written(folder, host="elsewhere")
        mine.check()
        with pytest.raises(UserError, match="another process has begun to write here"):
            mine.confirm()
        with pytest.raises(UserError, match="another process has begun to write here"):
            mine.check()
    assert lease.owner(folder) == "other"


def test_the_thread_shows_life_until_it_has_lost(folder: Folder) -> None:
    with Lease(folder, refresh=0.001) as mine:
        while json.loads(folder.read(NAME))["count"] < 3:
            pass
        ends = time.monotonic() + 30
        while mine._thread.is_alive() and time.monotonic() < ends:
            written(folder, host="elsewhere")  # again, where the thread wrote over it between its look and its write
            mine._thread.join(0.01)
        assert not mine._thread.is_alive()
        with pytest.raises(UserError):
            mine.check()


def test_a_half_written_lease_counts_as_none(folder: Folder) -> None:
    folder.write(NAME, b'{"owner": "oth')
    with Lease(folder, stale=1000):
        pass
