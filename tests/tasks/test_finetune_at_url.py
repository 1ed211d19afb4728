"""A fine-tuning with work directory and model at URLs equals one in a folder bit for bit, and any machine can resume it."""

import dataclasses
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest import mock

import fsspec
import pytest

from jaxenc import cache, storage
from jaxenc.checkpoint import lease
from jaxenc.cli.main import main
from jaxenc.errors import UserError
from jaxenc.tasks.finetune import finetune
from jaxenc.tasks.results import Results
from jaxenc.tasks.tuning import FineTune
from jaxenc.training import loop, pretrain
from jaxenc.training.settings import LogConfig
from tests import bucket, tiny
from tests.bucket import Bucket
from tests.faults.same import assert_same_tuning
from tests.tasks.tiny_task import make_task

STEPS = 9
SEEDS = ("seed_0", "seed_1")


@dataclasses.dataclass(frozen=True)
class Undisturbed:
    """tune: the settings. whole: the work directory, a folder, of two seeds that nothing interrupted."""

    tune: FineTune
    whole: Path


@pytest.fixture(scope="module")
def done(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    """Three epochs of three steps, of which the best is kept."""
    folder = tmp_path_factory.mktemp("local")
    tune = make_task(folder, train=48, dev=23, epochs=3.0, select="best")
    tune = dataclasses.replace(tune, log=LogConfig(every=1, examples=True, tensorboard=False))
    with tiny.on_one_device():
        finetune(tune, str(model), folder / "whole", seeds=2)
    return Undisturbed(tune, folder / "whole")


@pytest.fixture
def root(bucket_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, one_device: None) -> Iterator[str]:
    """The URL of an empty bucket. The cache and the current folder are empty too, and the folder has to stay so."""
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    yield bucket_url
    assert not any((tmp_path / "empty").iterdir()), "a URL became a folder"


def assert_same(whole: Path, other: Path) -> None:
    """What `assert_same_tuning` compares, the names of all files, and the scores."""
    assert_same_tuning(whole, other, STEPS)
    names = lambda folder: sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if "/state/" not in str(path))
    assert names(whole) == names(other)
    scores = lambda folder: [(one.seed, one.step, one.scores, one.answered) for one in Results.read(folder / "results.json").seeds]
    assert scores(whole) == scores(other)


def dying(at: int) -> mock._patch:
    """Makes a run die when the `at`-th step of this process is dispatched."""
    push, count = loop.Log.push, iter(range(1, 1000))

    def die(self: loop.Log, *step: object) -> None:
        if next(count) == at:
            raise ZeroDivisionError
        push(self, *step)

    return mock.patch.object(loop.Log, "push", die)


def requests(kind: str) -> list[str]:
    """The names of the files in all requests of a kind from now on: a list that grows."""
    found: list[str] = []

    def note(this: str, name: str, done: bool) -> None:
        if this == kind and done:
            found.append(name)

    Bucket.accident = staticmethod(note)
    return found


def test_two_seeds_from_a_model_at_a_url(root: str, done: Undisturbed, model: Path, tmp_path: Path) -> None:
    """The files there name no folder of this machine, which holds the checkpoints of one seed at a time."""
    shutil.copytree(model, bucket.at(f"{root}/model"))
    found = finetune(done.tune, f"{root}/model", f"{root}/runs", seeds=2)
    assert_same(done.whole, bucket.at(f"{root}/runs"))
    assert [one.directory for one in found.seeds] == [f"{root}/runs/{seed}" for seed in SEEDS]
    there = [path for path in bucket.at(f"{root}/runs").rglob("*.json") if "checkpoints" not in path.parts]
    assert len(there) == 9 and not any(str(tmp_path / "cache") in path.read_text() for path in there)
    assert json.loads(bucket.at(f"{root}/runs/seed_0/manifest.json").read_text())["start"]["path"] == f"{root}/model/checkpoints/0"
    assert [path.parts[-2] for path in (tmp_path / "cache" / "runs").rglob("checkpoints")] == ["seed_1"]


def test_another_machine_goes_on_in_the_second_seed(root: str, done: Undisturbed, model: Path, tmp_path: Path) -> None:
    """It reads no array of the first, which has finished; a third start trains nothing and downloads no array."""
    url = f"{root}/runs"
    with dying(STEPS + 5), pytest.raises(ZeroDivisionError):
        finetune(done.tune, str(model), url, seeds=2)
    shutil.rmtree(tmp_path / "cache")
    read = requests("get")
    finetune(done.tune, str(model), url, seeds=2)
    assert any("seed_1/checkpoints/3/state/" in name for name in read)
    assert not any("seed_0/checkpoints" in name and "/state/" in name for name in read)
    assert_same(done.whole, bucket.at(url))
    shutil.rmtree(tmp_path / "cache")
    read = requests("get")
    with mock.patch.object(pretrain, "train", side_effect=AssertionError):
        assert finetune(done.tune, str(model), url, seeds=2).seeds == Results.read(bucket.at(url) / "results.json").seeds
    assert not any("/state/" in name for name in read)


def test_a_flipped_bit_is_found_and_what_this_machine_has_beyond_the_url_is_not_read(
    root: str, done: Undisturbed, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The copy on this machine is of a run that has ended, with its result: none of it may be used."""
    url = f"{root}/runs"
    with dying(STEPS + 8), pytest.raises(ZeroDivisionError):
        finetune(done.tune, str(model), url, seeds=2)
    path = max(bucket.at(f"{url}/seed_1/checkpoints/6/state").rglob("*"), key=lambda path: path.is_file() and path.stat().st_size)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.write_bytes(content)
    shutil.rmtree(tmp_path / "cache")
    shutil.copytree(done.whole / "seed_1", tmp_path / "cache" / "runs" / cache.key(url) / "0" / "run" / "seed_1")
    finetune(done.tune, str(model), url, seeds=2)
    assert f"checkpoint {url}/seed_1/checkpoints/6: state/" in (said := capsys.readouterr().err) and "set aside as 6.bad-1" in said
    shutil.rmtree(bucket.at(f"{url}/seed_1/checkpoints/6.bad-1"))
    assert_same(done.whole, bucket.at(url))


def test_a_test_set_that_is_named_later_is_answered_with_the_kept_step(root: str, done: Undisturbed, model: Path) -> None:
    """On a machine that has no copy; the answers are uploaded before the result, and that before the results of all seeds."""
    url = f"{root}/runs"
    shutil.copytree(done.whole, bucket.at(url))
    storage.folder(url).write("launcher.log", b"a launcher's, as in a folder")
    (done.whole.parent / "test.tsv").write_text("text\nit is b\nit is x\n")
    tested = dataclasses.replace(done.tune, data=dataclasses.replace(done.tune.data, test="test.tsv"))
    written = requests("put")
    with mock.patch.object(pretrain, "train", side_effect=AssertionError):
        finetune(tested, str(model), url, seeds=2)
    lines = bucket.at(f"{url}/seed_1/test.jsonl").read_text().splitlines()
    assert [json.loads(line)["id"] for line in lines] == ["0", "1"]
    for seed in SEEDS:
        assert written.index(f"b/runs/{seed}/test.jsonl") < written.index(f"b/runs/{seed}/result.json")
    assert written.index("b/runs/seed_0/result.json") < written.index("b/runs/results.json")


def test_what_is_refused_names_the_url(root: str, done: Undisturbed, model: Path, labelled: Callable[..., FineTune]) -> None:
    """Other settings, another process, a folder of something else, a run directory: nothing there changes."""
    url = f"{root}/runs"
    shutil.copytree(done.whole, bucket.at(url))
    storage.folder(root).write("mine/photo.png", b"x")
    before = storage.folder(root).files()
    other = dataclasses.replace(done.tune, train=dataclasses.replace(done.tune.train, seed=5, batch=8))
    with pytest.raises(UserError, match=f"^{url}/seed_0: checkpoint train.batch 16, this run's 8; set them back, or choose another"):
        finetune(other, str(model), url)
    with lease.Lease(storage.folder(url)), pytest.raises(UserError, match=f"{url}: another process is writing here"):
        finetune(done.tune, str(model), url)
    with pytest.raises(UserError, match=r"b/mine: exists already, a folder with photo\.png; choose another --workdir$"):
        finetune(done.tune, str(model), f"{root}/mine")
    with pytest.raises(UserError, match=r"b/runs/seed_0: exists already, a folder with .*; choose another --workdir$"):
        finetune(done.tune, str(model), f"{url}/seed_0")
    assert storage.folder(root).files() == before


def test_the_command_at_a_url_in_memory(root: str, done: Undisturbed, model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    system, url = fsspec.filesystem("memory"), "memory://test_finetune/runs/"
    folder = done.whole.parent
    fields = {"path": folder, "train": "train.tsv", "dev": "dev.tsv"}
    data = [f"--config.data.{name}={value}" for name, value in fields.items()]
    numbers = ["--config.published=", "--config.train.steps=2", "--config.train.batch=16", "--config.train.length=16"]
    assert main(["finetune", "--config", "tasks/text", "--init-from", str(model), "--workdir", url, *data, *numbers]) == 0
    assert "results: memory://test_finetune/runs/results.json; 1 seed: accuracy 0." in capsys.readouterr().out
    assert main(["predict", "--model", url, "--input", str(folder / "dev.tsv")]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 23
    system.rm("/test_finetune", recursive=True)
