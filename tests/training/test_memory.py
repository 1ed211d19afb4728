"""A whole run whose slots remember: it goes on from a checkpoint bit for bit, and not with another memory."""

import dataclasses
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from jaxenc.cli.main import main
from jaxenc.data.sources import DataConfig
from jaxenc.errors import UserError
from jaxenc.families.xlnet.model import XlnetConfig
from jaxenc.inference.load import load
from jaxenc.objectives.plm import PlmConfig
from jaxenc.training import prepare
from jaxenc.training.phases import Phases
from jaxenc.training.pretrain import pretrain
from jaxenc.training.run import Run
from tests.faults import same
from tests.training import test_loop
from tests.training.conftest import make_data

OBJECTIVE = PlmConfig(predictions=6, permutation=8, memory=12)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_data(tmp_path_factory.mktemp("runs") / "streams", 1, "unigram")


def recipe(data: Path) -> Run:
    """A nano XLNet on eight streams, float32 and dropout 0.1: two steps of 24 tokens and four of 32, each with a checkpoint; an evaluation
    at the end."""
    run = test_loop.recipe(data, objective=OBJECTIVE, model=XlnetConfig(width=16, layers=1, heads=2, feed_forward=32))
    return dataclasses.replace(
        run,
        data=DataConfig(path=str(data), rows="streams", length=24, reuse=8),
        phases=Phases(steps=(2, 4), length=(24, 32)),
        checkpoint=dataclasses.replace(run.checkpoint, every=1),
        eval=dataclasses.replace(run.eval, every=6),
    )


@pytest.mark.slow
@pytest.mark.usefixtures("one_device")
def test_a_resume_remembers(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """Six steps, and two more from the checkpoint of step 4, inside the second phase: parameters, moments, memory, numbers and rows are
    bitwise. The memory of step 4 is in its checkpoint and is not empty. Behind the border it holds no more than the rows since then: those
    of the first phase, which it still has room for, are hidden by `fresh`. The model opens; another memory is refused by name, here and
    where another directory continues. Held-out numbers do not depend on the batch: <= 1e-6, in groups of 2 slots, each with its own
    memory, against those of the run."""
    run, whole, half = recipe(data), tmp_path / "whole", tmp_path / "half"
    assert pretrain(run, whole).step == 6
    shutil.copytree(whole, half)
    for step in (5, 6):
        shutil.rmtree(half / "checkpoints" / str(step))
    ended, begun, kept = (same.state(half / "checkpoints" / str(step)) for step in (2, 3, 4))
    assert [state["carry/filled"].tolist() for state in (ended, begun, kept)] == [[12] * 8, [8] * 8, [12] * 8]
    assert kept["carry/states"].shape == (8, 1, 12, 16) and np.abs(kept["carry/states"]).max(-1).min() > 0

    other = dataclasses.replace(run, objective=dataclasses.replace(OBJECTIVE, memory=8))
    with pytest.raises(UserError, match="objective.memory"):
        pretrain(other, half)
    larger = dataclasses.replace(other, train=dataclasses.replace(run.train, batch=16))
    told = "checkpoint objective.memory 12, this run's 8; checkpoint train.batch 8, this run's 16; set them back, or start .* --init-from"
    with pytest.raises(UserError, match=told):
        pretrain(larger, tmp_path / "next", continue_from=str(half))
    assert pretrain(run, half).step == 6
    test_loop.assert_same_run(run, half, whole, 6)
    assert load(whole).encode(tokens=[[5, 6, 7]]).hidden.shape == (2, 1, 3, 16)
    last = test_loop.rows(whole)[-1]
    capsys.readouterr()
    assert main(["evaluate", "--workdir", str(whole), "--batch", "2"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert run.eval.batch != 2 and last["step"] == 6 and again["plm_loss"] == pytest.approx(last["plm_loss"], rel=1e-6)


def test_a_memory_that_no_device_holds_is_one_line(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """8 slots, one a device, of 12 places of 16 float32 and an i32: 772 bytes fit where there are so many, and not where one is missing."""
    monkeypatch.setattr(prepare, "device_memory", lambda mesh: 772)
    run = recipe(data)
    run = dataclasses.replace(run, eval=dataclasses.replace(run.eval, batch=8))
    prepare.check(prepare.prepare(run, tmp_path / "run"))
    monkeypatch.setattr(prepare, "device_memory", lambda mesh: 771)
    told = "^objective.memory and train.batch: the slots carry [0-9.]+ MB .* on each device, which has [0-9.]+ MB; lower one of them"
    with pytest.raises(UserError, match=told):
        pretrain(run, tmp_path / "run")
    assert not (tmp_path / "run").exists()
