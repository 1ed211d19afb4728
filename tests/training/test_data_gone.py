"""R37: the data folder goes away under a run, and what was trained is saved whatever fails."""

import dataclasses
import json
import os
import shutil
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from jaxenc.data.batch import Batch
from jaxenc.data.manifest import SPLITS
from jaxenc.errors import UserError
from jaxenc.training import loop, read
from jaxenc.training.phases import Phases
from jaxenc.training.pretrain import pretrain
from jaxenc.training.run import Run
from tests.training import test_loop
from tests.training.conftest import make_data
from tests.training.stepping import stepping


@pytest.fixture
def own(data: Path, tmp_path: Path) -> Path:
    """A copy of the data that a test may take away."""
    return Path(shutil.copytree(data, tmp_path / "data"))


def in_phases(data: Path, **parts: Any) -> Run:
    """Two phases of two steps, a checkpoint every third step: none is due at the border."""
    run = test_loop.recipe(data, phases=Phases(steps=(2, 2), length=(16, 24), batch=(8, 16)), **parts)
    checkpoint, evaluate = dataclasses.replace(run.checkpoint, every=3), dataclasses.replace(run.eval, every=3)
    return dataclasses.replace(run, checkpoint=checkpoint, eval=evaluate)


def saved(workdir: Path) -> list[int]:
    return sorted(int(path.name) for path in (workdir / "checkpoints").iterdir())


def rows_of(job: Any, phase: Any, *ignored: Any) -> dict[str, float]:
    """As an evaluation begins: by opening the held-out rows."""
    batch_at, count = read.reader(job, SPLITS[1], phase, 8, job.objective(phase))
    return {"loss": float(sum(batch_at(number)["tokens"].sum() for number in range(count)))}


def test_r37_a_run_whose_data_folder_is_renamed_goes_on_to_its_end(
    data: Path, own: Path, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    """Over a border of phases and two evaluations, with the rows and checkpoints of a run that nothing disturbed; each save says so."""
    with stepping(evaluate=rows_of):
        pretrain(in_phases(data), tmp_path / "whole")
    capsys.readouterr()
    with stepping(after=lambda step: step == 1 and own.rename(tmp_path / "away"), evaluate=rows_of):
        assert pretrain(in_phases(own), tmp_path / "run").step == 4
    said = capsys.readouterr().err
    assert said.count(f"warning: {own}: the data folder is gone: this run continues") == 2
    assert (tmp_path / "run" / "examples.log").read_text() == (tmp_path / "whole" / "examples.log").read_text()
    assert test_loop.rows(tmp_path / "run") == test_loop.rows(tmp_path / "whole")
    assert saved(tmp_path / "run") == saved(tmp_path / "whole") == [3, 4]
    kept = tmp_path / "run" / "checkpoints" / "4"
    for name in ("manifest.json", *(f"tokenizer/{path.name}" for path in (data / "tokenizer").iterdir())):
        assert (kept / name).read_bytes() == (data / name).read_bytes()


@pytest.mark.parametrize("accident", ["deleted", "emptied", "another in its place"])
def test_r37_what_a_checkpoint_holds_of_the_data_is_that_of_the_start(
    accident: str, data: Path, own: Path, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    """Whatever becomes of the folder after a step; where it is there again with other data, a later start is refused."""

    def happen(step: int) -> None:
        if step == 1:
            shutil.rmtree(own)
        if step == 1 and accident == "emptied":
            own.mkdir()
        if step == 1 and accident == "another in its place":
            make_data(tmp_path / "other", 2).rename(own)

    with stepping(after=happen, evaluate=rows_of):
        assert pretrain(in_phases(own), tmp_path / "run").step == 4
    assert capsys.readouterr().err.count("the data folder is gone") == (2 if accident == "deleted" else 0)
    kept = tmp_path / "run" / "checkpoints" / "4"
    for name in ("manifest.json", *(f"tokenizer/{path.name}" for path in (data / "tokenizer").iterdir())):
        assert (kept / name).read_bytes() == (data / name).read_bytes()
    words = "manifest.json" if accident != "another in its place" else "data.fingerprint"
    with stepping(), pytest.raises(UserError, match=words):
        pretrain(in_phases(own), tmp_path / "run")


def test_r37_a_run_that_lost_its_folder_says_so_when_it_is_started_again(own: Path, tmp_path: Path) -> None:
    with stepping():
        pretrain(in_phases(own), tmp_path / "run")
    os.rename(own, tmp_path / "away")
    with stepping(), pytest.raises(UserError, match=f"{own}/manifest.json: No such file or directory; name a folder made by `jaxenc data`"):
        pretrain(in_phases(own), tmp_path / "run")


@pytest.mark.parametrize("step", [2, 3], ids=["at a border", "after a checkpoint"])
def test_r37_what_was_trained_is_saved_when_the_data_cannot_be_read_on(
    step: int, own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A checkpoint of the border has the layout of the phase that ended there: the run goes on from each."""
    check, taken, adopted = read.check_ranges, [], []

    def fail(batch: Batch, *given: Any) -> None:
        taken.append(batch)
        if len(taken) == step + 1:
            raise UserError("/data/train-00000.tokens: gone")
        check(batch, *given)

    monkeypatch.setattr(read, "check_ranges", fail)
    adopt = lambda state, objective, batch, place: adopted.append(batch) or state
    with stepping(), mock.patch.object(loop, "adopt", adopt), pytest.raises(UserError, match="train-00000.tokens: gone"):
        pretrain(in_phases(own), tmp_path / "run")
    assert saved(tmp_path / "run") == [step] and adopted == ([8] if step < 3 else [8, 16])
    monkeypatch.setattr(read, "check_ranges", check)
    with stepping():
        assert pretrain(in_phases(own), tmp_path / "run").step == 4
    lines = (tmp_path / "run" / "examples.log").read_text().splitlines()
    assert [(int(line.split()[0]), len(line.split()) - 1) for line in lines] == [(1, 8), (2, 8), (3, 16), (4, 16)]


def test_r37_what_was_trained_is_saved_when_an_evaluation_fails(own: Path, tmp_path: Path) -> None:
    def fail(*ignored: Any) -> dict[str, float]:
        raise UserError("the held-out rows are gone")

    run = in_phases(own)
    run = dataclasses.replace(run, eval=dataclasses.replace(run.eval, every=2))
    with stepping(evaluate=fail), pytest.raises(UserError, match="the held-out rows are gone"):
        pretrain(run, tmp_path / "run")
    assert saved(tmp_path / "run") == [2]
    assert {json.loads(line)["split"] for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()} == {"train"}
