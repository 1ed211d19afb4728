"""A data folder at a URL: copied once, checked, and used again."""

import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from jaxenc import storage
from jaxenc.data import mixture, staging, store
from jaxenc.data.frames import CLS_FIRST
from jaxenc.data.sources import DataConfig
from jaxenc.errors import UserError
from tests import bucket
from tests.training.conftest import make_data


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_data(tmp_path_factory.mktemp("built") / "first", 1)


@pytest.fixture
def url(built: Path, bucket_url: str) -> str:
    url = f"{bucket_url}/data"
    shutil.copytree(built, bucket.at(url))
    return url


@pytest.fixture
def came(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the files that were downloaded."""
    names: list[str] = []
    download: Callable[[storage.Folder, str, Path], str] = storage.Folder.download
    monkeypatch.setattr(storage.Folder, "download", lambda self, name, path: names.append(name) or download(self, name, path))
    return names


def test_the_data_is_the_same_and_comes_once(url: str, built: Path, came: list[str]) -> None:
    far, near = store.open_split(url, "train"), store.open_split(built, "train")
    index = np.arange(len(near.tokens))
    assert (far.tokens.take(index) == near.tokens.take(index)).all() and far.manifest == near.manifest
    assert sorted(came) == sorted(near.manifest.files)
    one, other = (mixture.checkpoint_files(DataConfig(path=path), CLS_FIRST) for path in (url, str(built)))
    assert one == other
    store.open_split(url, "held_out", verify=True)
    assert len(came) == len(near.manifest.files)


def test_the_manifest_alone_needs_no_shard(url: str, came: list[str]) -> None:
    assert mixture.manifests(DataConfig(path=url))[0].splits["train"].tokens > 0
    assert came == []


def test_one_process_copies_while_the_others_wait(url: str, came: list[str]) -> None:
    threads = [threading.Thread(target=staging.staged, args=(url,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(came) == len(set(came))


def test_data_that_changed_at_the_url_is_another_copy(url: str, tmp_path: Path) -> None:
    before = staging.staged(url)
    shutil.rmtree(bucket.at(url))
    shutil.copytree(make_data(tmp_path / "other", 2), bucket.at(url))
    after = staging.staged(url)
    assert after != before and (before / "manifest.json").read_bytes() != (after / "manifest.json").read_bytes()


def test_a_missing_and_a_changed_shard_are_named(url: str, built: Path) -> None:
    shard = next(path.name for path in built.glob("*.tokens"))
    content = bucket.at(f"{url}/{shard}").read_bytes()
    bucket.at(f"{url}/{shard}").unlink()
    with pytest.raises(UserError, match=rf"b/data/{shard}: missing; copy it there or build the data again"):
        store.open_split(url, "train")
    bucket.at(f"{url}/{shard}").write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(UserError, match=rf"b/data/{shard}: its content changed since the manifest was written"):
        store.open_split(url, "train")
    bucket.at(f"{url}/{shard}").write_bytes(content)
    store.open_split(url, "train", verify=True)


def test_a_url_without_data_is_one_line(url: str) -> None:
    with pytest.raises(UserError, match=r"b/none/manifest\.json: no such file; name a folder made by `jaxenc data`"):
        mixture.manifests(DataConfig(path=url.replace("data", "none")))


def test_no_folder_is_made_of_a_url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError):
        store.open_split("foo://bucket/data", "train")
    assert not any(tmp_path.iterdir())
