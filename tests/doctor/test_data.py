"""Data folders with a shard missing or changed, and another tokenizer."""

import dataclasses
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from jaxenc.data import manifest
from jaxenc.doctor import data as doctor
from jaxenc.findings import OK, PROBLEM, Finding
from tests import bucket
from tests.training.conftest import make_data


@pytest.fixture
def folder(data: Path, tmp_path: Path) -> Path:
    return shutil.copytree(data, tmp_path / "data")


def said(folder: Path, verify: bool = False) -> list[Finding]:
    own = doctor.gather(str(folder), verify)
    assert doctor.Data(**json.loads(json.dumps(dataclasses.asdict(own))) | {"wrong": own.wrong}) == own
    return doctor.judge(str(folder), [own])


def test_a_whole_folder_is_one_line(folder: Path) -> None:
    assert [one.level for one in said(folder)] == [OK] and "--verify" in said(folder)[0].what
    assert "sizes and checksums" in said(folder, True)[0].what


def _remove(path: Path) -> None:
    path.unlink()


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def _flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize(
    "damage, verify, words",
    [(_remove, False, "train-00000.tokens is missing"), (_cut, False, "bytes instead of"), (_flip, True, "has other bytes")],
)
def test_a_shard_that_is_missing_or_changed_is_named(damage: Callable[[Path], None], verify: bool, words: str, folder: Path) -> None:
    shard = next(iter(sorted(folder.glob("train-*.tokens"))))
    damage(shard)
    (one,) = said(folder, verify)
    assert one.level == PROBLEM and f"1 of {len(list(folder.rglob('*')))}"[:5] in one.what and words in one.what and shard.name in one.what
    assert one.fix == doctor.AGAIN


def test_sizes_alone_do_not_see_a_changed_byte(folder: Path) -> None:
    _flip(next(iter(folder.glob("train-*.tokens"))))
    assert [one.level for one in said(folder)] == [OK]


def test_every_wrong_file_is_counted(folder: Path) -> None:
    for path in folder.glob("*.tokens"):
        path.unlink()
    assert said(folder)[0].what.startswith("2 of ")


def test_another_tokenizer_is_a_problem(folder: Path, tmp_path: Path) -> None:
    other = make_data(tmp_path / "other", 1, "unigram")
    shutil.rmtree(folder / "tokenizer")
    shutil.copytree(other / "tokenizer", folder / "tokenizer")
    assert any(one.level == PROBLEM and "tokenizer/ is not the one that the data was built with" in one.what for one in said(folder))


def test_no_data_folder_is_a_problem_with_advice(tmp_path: Path) -> None:
    (one,) = said(tmp_path / "none")
    assert one.level == PROBLEM and "No such file" in one.what and "jaxenc data" in one.what
    assert said(Path("gs://bucket/data"))[0].level == PROBLEM


def test_a_folder_at_a_url_is_compared_with_its_manifest(folder: Path, bucket_url: str, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("JAXENC_CACHE", str(tmp_path / "cache"))
    url = f"{bucket_url}/data"
    judged = lambda: doctor.judge(url, [doctor.gather(url, True)])
    (one,) = judged()
    assert one.level == PROBLEM and f"{url}/manifest.json: no such file; name a folder made by `jaxenc data`" in one.what
    shutil.copytree(folder, bucket.at(url))
    (one,) = judged()
    assert one == Finding(
        OK, f"data {url}", f"{len(manifest.read(folder).files)} files, sizes (a run compares checksums as it copies them)"
    )
    (bucket.at(url) / "train-00000.tokens").unlink()
    _cut(bucket.at(url) / "held_out-00000.tokens")
    (one,) = judged()
    assert (
        one.level == PROBLEM and one.fix == doctor.AGAIN and "train-00000.tokens is missing" in one.what and "bytes instead of" in one.what
    )
    (bucket.at(url) / "manifest.json").write_text("{}")
    (one,) = judged()
    assert one.level == PROBLEM and one.what.startswith(f"{url}/manifest.json: ") and str(tmp_path / "cache") not in one.line


def test_a_web_server_lists_no_folder_and_may_not_say_a_size(folder: Path, bucket_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def info(system: bucket.Bucket, path: str) -> dict:
        place = system._file(path)
        return {"name": path, "type": "file", "size": None if place.suffix == ".json" else place.stat().st_size}

    url = f"{bucket_url}/data"
    shutil.copytree(folder, bucket.at(url))
    monkeypatch.setattr(bucket.Bucket, "ls", lambda *given, **more: [])
    monkeypatch.setattr(bucket.Bucket, "info", info)
    assert [one.level for one in doctor.judge(url, [doctor.gather(url, False)])] == [OK]
    (bucket.at(url) / "train-00000.tokens").unlink()
    (one,) = doctor.judge(url, [doctor.gather(url, False)])
    assert one.level == PROBLEM and one.what.endswith("train-00000.tokens is missing")


def test_processes_with_other_data_are_named(folder: Path, other_data: Path) -> None:
    own, other = doctor.gather(str(folder), False), doctor.gather(str(other_data), False)
    (one,) = doctor.judge("data", [own, other, own])
    assert one.level == PROBLEM and "not the same data" in one.what and "in processes 0, 2" in one.what
    whole, broken = own, dataclasses.replace(own, wrong=("train-00000.tokens is missing",))
    (one,) = doctor.judge("data", [whole, broken])
    assert "in process 1: 1 of" in one.what
