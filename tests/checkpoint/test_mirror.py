"""Whole runs whose work directory, model and data are at URLs."""

import dataclasses
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import fsspec
import pytest

import jaxenc
from jaxenc import cache, retries, storage, tree
from jaxenc.checkpoint import lease
from jaxenc.checkpoint.verify import CHECKSUMS
from jaxenc.cli import pretrain as command
from jaxenc.errors import UserError
from jaxenc.reports.report import report
from jaxenc.training.loop import Outcome
from jaxenc.training.pretrain import pretrain
from jaxenc.training.run import Run
from tests import bucket
from tests.bucket import Bucket, cut_off
from tests.faults.same import assert_same_run, rows
from tests.training import test_loop, test_teacher
from tests.training.conftest import make_data

STEPS = 20


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return test_loop.recipe(make_data(tmp_path_factory.mktemp("made") / "first", 1))


@pytest.fixture(scope="module")
def plain(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The finished run in a folder of this machine."""
    pretrain(run, tmp_path_factory.mktemp("plain") / "run")
    return tmp_path_factory.getbasetemp() / "plain0" / "run"


@pytest.fixture
def root(bucket_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URL of an empty bucket, with an empty cache on this machine, in an empty folder."""
    monkeypatch.setattr(retries, "WAITS", (0.0, 0.0))
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    yield bucket_url
    assert not any((tmp_path / "empty").iterdir()), "a URL became a folder"


@pytest.fixture
def begun(root: str, plain: Path) -> str:
    """A URL with the run up to step 10, as one that was killed in the save of step 20 leaves it: without that step's CHECKSUMS.json."""
    shutil.copytree(plain, bucket.at(f"{root}/run"))
    bucket.at(f"{root}/run/checkpoints/20/{CHECKSUMS}").unlink()
    return f"{root}/run"


def test_a_run_with_data_and_directory_at_urls_is_the_run_of_a_folder(root: str, run: Run, plain: Path) -> None:
    shutil.copytree(run.data.path, bucket.at(f"{root}/data"))
    often = dataclasses.replace(run.checkpoint, every=4, keep=2, keep_every=8)
    far = dataclasses.replace(run, data=dataclasses.replace(run.data, path=f"{root}/data"), checkpoint=often)
    pretrain(far, f"{root}/run")
    assert_same_run(plain, bucket.at(f"{root}/run"), 0, STEPS)
    assert {path.name for path in bucket.at(f"{root}/run").iterdir()} == {path.name for path in plain.iterdir()}
    assert sorted(int(path.name) for path in bucket.at(f"{root}/run/checkpoints").iterdir()) == [8, 16, 20]
    assert json.loads(bucket.at(f"{root}/run/config.json").read_bytes())["data"]["path"] == f"{root}/data"


def test_memory_is_a_url_too(root: str, run: Run, plain: Path, tmp_path: Path) -> None:
    system = fsspec.filesystem("memory")
    pretrain(run, "memory://test_mirror/run")
    system.get("/test_mirror/run", str(tmp_path / "copy"), recursive=True)
    assert_same_run(plain, tmp_path / "copy", 0, STEPS)
    system.rm("/test_mirror", recursive=True)


@pytest.mark.parametrize("copy", ["lost", "ahead"])
def test_a_resume_on_any_machine_goes_on_from_the_url(
    copy: str, begun: str, run: Run, plain: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The half-written step 20 is passed over, wherever the copy of this machine stands."""
    here = tmp_path / "cache" / "runs" / cache.key(begun) / "0" / "run"
    if copy == "ahead":
        shutil.copytree(plain, here)
    pretrain(run, f"{begun}/")
    said = capsys.readouterr().err
    assert f"checkpoint {begun}/checkpoints/20: half-written (it has no {CHECKSUMS}); ignored and deleted" in said
    assert f"resume {begun}/checkpoints/10\n" in said
    assert_same_run(plain, bucket.at(begun), 0, STEPS)
    assert [path.name for path in (here / "checkpoints").iterdir()] == ["20"]


def test_a_url_that_was_emptied_starts_a_new_run(root: str, run: Run, plain: Path, tmp_path: Path) -> None:
    """Nothing of the copy that this machine still has of the old one is taken for the new one."""
    here = tmp_path / "cache" / "runs" / cache.key(f"{root}/run") / "0" / "run"
    shutil.copytree(plain, here)
    shutil.copytree(plain / "checkpoints", here / "frozen" / "0123")
    train = dataclasses.replace(run.train, seed=7, steps=1)
    assert pretrain(dataclasses.replace(run, train=train), f"{root}/run").step == 1
    assert [path.name for path in (here / "checkpoints").iterdir()] == ["1"] and not any((here / "frozen").iterdir())
    assert {row[0] for row in rows(bucket.at(f"{root}/run"))} == {1}


def test_a_flipped_bit_at_the_url_is_found(begun: str, run: Run, plain: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(plain / "checkpoints" / "20", bucket.at(f"{begun}/checkpoints/20"), dirs_exist_ok=True)
    path = max(bucket.at(f"{begun}/checkpoints/20/state").rglob("*"), key=lambda path: path.is_file() and path.stat().st_size)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.write_bytes(content)
    pretrain(run, begun)
    assert f"checkpoint {begun}/checkpoints/20: state/" in (said := capsys.readouterr().err) and "set aside as 20.bad-1" in said
    assert_same_run(plain, bucket.at(begun), 0, STEPS)
    assert bucket.at(f"{begun}/checkpoints/20.bad-1").is_dir()


def test_a_run_without_a_whole_checkpoint_does_not_start_over(begun: str, run: Run) -> None:
    next(path for path in bucket.at(f"{begun}/checkpoints/10/state").iterdir() if path.is_file()).unlink()
    for _ in range(2):
        with pytest.raises(UserError, match=r"b/run: no checkpoint of this run is whole \(set aside: 10\.bad-1\); choose another"):
            pretrain(run, begun)


def test_a_finished_run_is_not_changed(root: str, run: Run, plain: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(plain, bucket.at(f"{root}/run"))
    before = {path: path.read_bytes() for path in bucket.at(root).rglob("*") if path.is_file()}
    pretrain(run, f"{root}/run")
    assert f"{root}/run: finished at step 20; nothing to do" in capsys.readouterr().err
    assert {path: path.read_bytes() for path in bucket.at(root).rglob("*") if path.is_file()} == before


def test_another_run_at_the_url_is_refused_by_its_url(begun: str, run: Run) -> None:
    other = dataclasses.replace(run, train=dataclasses.replace(run.train, seed=7))
    with pytest.raises(
        UserError, match=rf"^{begun}: checkpoint train\.seed 0, this run's 7; .*--continue-from {begun}|--init-from {begun}"
    ):
        pretrain(other, begun)


def test_a_folder_of_something_else_is_refused(root: str, run: Run) -> None:
    storage.folder(root).write("run/photo.png", b"x")
    with pytest.raises(UserError, match=r"b/run: exists already, a folder with photo\.png, and is not a run directory; choose another"):
        pretrain(run, f"{root}/run")
    assert storage.folder(root).files() == {"run/photo.png": 1}


def test_two_launchers_on_one_url(root: str, run: Run) -> None:
    with lease.Lease(storage.folder(f"{root}/run")), pytest.raises(UserError, match="b/run: another process is writing here"):
        pretrain(run, f"{root}/run")


def test_a_url_that_may_not_be_written_to_is_refused_before_anything_compiles(
    root: str, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    Bucket.accident = staticmethod(cut_off("put", 403, 1000))
    with pytest.raises(UserError, match=r"b/run/\.probe-\w+: cannot be written \(status 403\)"):
        pretrain(run, f"{root}/run")
    assert "compiling" not in capsys.readouterr().err


def test_a_checkpoint_that_cannot_be_uploaded_ends_the_run_and_the_next_start_goes_on(root: str, run: Run, plain: Path) -> None:
    def refuse(kind: str, name: str, done: bool) -> None:
        if kind == "put" and "/checkpoints/20/state" in name:
            raise bucket.Status(403)

    Bucket.accident = staticmethod(refuse)
    with pytest.raises(
        UserError, match=r"^checkpoint failed at step 20: .*b/run/checkpoints/20/state/.*: cannot be written \(status 403\)"
    ):
        pretrain(run, f"{root}/run")
    Bucket.accident = staticmethod(cut_off("put get", 503, 2))
    pretrain(run, f"{root}/run")
    assert_same_run(plain, bucket.at(f"{root}/run"), 0, STEPS)


def test_models_of_a_url(root: str, plain: Path) -> None:
    url = f"{root}/run"
    shutil.copytree(plain, bucket.at(url))
    near, far = jaxenc.evaluate(plain), jaxenc.evaluate(url)
    assert (far.step, far.numbers) == (near.step, near.numbers)
    for name, step, same in ((url, None, 20), (f"{url}/checkpoints/20/", None, 20), (url, 10, 10)):
        theirs, ours = (tree.leaves(jaxenc.load(place, step=n).params) for place, n in ((name, step), (plain, same)))
        assert all(path == other and (leaf == wanted).all() for (path, leaf), (other, wanted) in zip(theirs, ours, strict=True))
    with pytest.raises(UserError, match=r"--workdir .*/checkpoints/15: no such checkpoint; use one of 10, 20"):
        jaxenc.evaluate(url, step=15)
    with pytest.raises(UserError, match="the model .*b/none: holds no valid checkpoint"):
        jaxenc.load(f"{root}/none")


def test_a_report_of_a_url(root: str, plain: Path) -> None:
    shutil.copytree(plain, bucket.at(f"{root}/run"))
    assert report(f"{root}/run", with_baselines=False).held_out["step"] == 20
    assert bucket.at(f"{root}/run/report.png").stat().st_size > 0
    assert "Goodput" in bucket.at(f"{root}/run/report.html").read_text()


def test_a_run_starts_from_the_parameters_at_a_url(root: str, run: Run, plain: Path) -> None:
    shutil.copytree(plain, bucket.at(f"{root}/run"))
    once = dataclasses.replace(run, train=dataclasses.replace(run.train, steps=1), eval=dataclasses.replace(run.eval, every=0))
    assert pretrain(once, f"{root}/new", init_from=f"{root}/run").step == 1


def test_a_stopped_run_says_whether_its_step_is_at_the_url(root: str, plain: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = f"{root}/run"
    shutil.copytree(plain, bucket.at(url))
    for step, saved in ((10, ", checkpoint written"), (15, "")):
        assert command.code(Outcome(step, True, {}), url) == 75
        assert capsys.readouterr().err == f"{url}: stopped at step {step}{saved}: run the same command to continue\n"


@pytest.mark.full
def test_the_copy_of_a_teacher_is_at_the_url_too(root: str, run: Run, tmp_path: Path) -> None:
    """A machine that has neither the teacher's folder nor a copy of the run goes on and evaluates."""
    data = Path(run.data.path)
    test_teacher.make_teacher(tmp_path / "teacher", data)
    whole = test_teacher.recipe(data, tmp_path / "teacher")
    pretrain(whole, tmp_path / "near")
    pretrain(whole, f"{root}/run")
    last = max(int(path.name) for path in bucket.at(f"{root}/run/checkpoints").iterdir())
    bucket.at(f"{root}/run/checkpoints/{last}/{CHECKSUMS}").unlink()
    shutil.rmtree(tmp_path / "teacher")
    shutil.rmtree(tmp_path / "cache")
    pretrain(whole, f"{root}/run")
    assert rows(bucket.at(f"{root}/run")) == rows(tmp_path / "near")
    shutil.rmtree(tmp_path / "cache")
    assert jaxenc.evaluate(f"{root}/run").numbers == jaxenc.evaluate(tmp_path / "near").numbers
