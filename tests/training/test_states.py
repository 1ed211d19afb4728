"""A whole run of an ELMo, whose slots carry the LSTMs' states: it goes on from a checkpoint bit for bit, and not with another batch."""

import dataclasses
import json
import math
import shutil
from pathlib import Path

import jax
import numpy as np
import pytest

from jaxenc.cli.main import main
from jaxenc.data.sources import DataConfig
from jaxenc.errors import UserError
from jaxenc.families.elmo.model import ElmoConfig
from jaxenc.objectives.bilm import BilmConfig
from jaxenc.objectives.mlm import MlmConfig
from jaxenc.optim.optimizer import OptimConfig
from jaxenc.training import prepare
from jaxenc.training.pretrain import pretrain
from jaxenc.training.run import Run
from tests import tiny
from tests.training import test_loop
from tests.training.conftest import make_data

MODEL = ElmoConfig(width=8, cells=12, character_width=4, filter_widths=(1, 2), filters=(4, 8), highways=1)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_data(tmp_path_factory.mktemp("runs") / "words", 1, "characters")


def recipe(data: Path) -> Run:
    """A nano ELMo on eight slots, float32 and dropout 0.1, 20 of 60 words as negatives; a checkpoint and an evaluation every 20 of 40
    steps, an epoch having fewer than 40."""
    run = test_loop.recipe(data, objective=BilmConfig(negatives=20), model=MODEL)
    return dataclasses.replace(
        run,
        data=DataConfig(path=str(data), rows="sentences", length=12),
        optim=OptimConfig(name="adagrad", lr=0.2, warmup=0, schedule="constant", weight_decay=0.0, clip=10.0, decay_exclude=()),
        train=dataclasses.replace(run.train, steps=40),
        checkpoint=dataclasses.replace(run.checkpoint, every=20),
        eval=dataclasses.replace(run.eval, every=20),
    )


@pytest.fixture(scope="module")
def whole(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of 40 steps on one device that nothing stopped."""
    workdir = tmp_path_factory.mktemp("whole") / "run"
    with tiny.on_one_device():
        assert pretrain(recipe(data), workdir).step == 40
    return workdir


# tests/baseline/test_resume.py goes on with such a run in the short suite.
@pytest.mark.full
@pytest.mark.usefixtures("one_device")
def test_twenty_steps_and_twenty_more_after_a_restart_are_forty(data: Path, whole: Path, tmp_path: Path) -> None:
    """Parameters, Adagrad's sums, the states of both directions, numbers and rows bitwise; the states of step 20 are in its checkpoint."""
    run = recipe(data)
    shutil.copytree(whole, tmp_path / "half")
    shutil.rmtree(tmp_path / "half" / "checkpoints" / "40")
    carry = test_loop.saved(run, tmp_path / "half", 20).carry
    for name in ("forward", "backward"):
        assert carry[name].cell.shape == (8, 2, 12) and carry[name].hidden.shape == (8, 2, 8)
    assert all(np.abs(leaf).max(axis=(1, 2)).min() > 0 for leaf in jax.tree.leaves(carry))
    assert pretrain(run, tmp_path / "half").step == 40
    test_loop.assert_same_run(run, tmp_path / "half", whole, 40)
    epochs = {row.split(":")[0] for line in (whole / "examples.log").read_text().splitlines() for row in line.split("\t")[1].split()}
    assert epochs == {"0", "1"}


@pytest.mark.full
@pytest.mark.slow
@pytest.mark.usefixtures("one_device")
def test_held_out_numbers_do_not_depend_on_the_batch(whole: Path, capsys: pytest.CaptureFixture) -> None:
    """Groups of 2 slots, each with its own state, against the run's own: <= 1e-6; perplexities are of the full softmax."""
    last = test_loop.rows(whole)[-1]
    assert main(["evaluate", "--workdir", str(whole), "--batch", "2"]) == 0
    again = json.loads(capsys.readouterr().out)
    for name in ("forward_loss", "backward_loss"):
        assert again[name] == pytest.approx(last[name], rel=1e-6) and last["split"] == "held_out"
    assert last["perplexity"] == pytest.approx(math.exp((last["forward_loss"] + last["backward_loss"]) / 2))
    assert last["forward_predictions"] == last["backward_predictions"] and last["forward_loss"] < math.log(60)


@pytest.mark.full
@pytest.mark.slow
def test_another_batch_does_not_go_on_and_is_named(data: Path, whole: Path, tmp_path: Path) -> None:
    run = recipe(data)
    larger = dataclasses.replace(run, train=dataclasses.replace(run.train, batch=16))
    with pytest.raises(UserError, match="train.batch 8, this run's 16; set .* back, or start .* --init-from") as error:
        pretrain(larger, tmp_path / "next", continue_from=str(whole))
    assert "\n" not in str(error.value) and not (tmp_path / "next").exists()
    with pytest.raises(UserError, match="train.batch"):
        pretrain(larger, whole)


@pytest.mark.parametrize(
    "parts, words",
    [
        ({"objective": MlmConfig()}, "takes an encoder; set model.kind to bert or .*, not elmo$"),
        ({"data": {"rows": "text"}}, "lacks; set data.rows to sentences$"),
    ],
)
def test_what_does_not_fit_together_is_one_line(parts: dict, words: str, data: Path, tmp_path: Path) -> None:
    run = recipe(data)
    parts = {"data": dataclasses.replace(run.data, **parts["data"])} if "data" in parts else parts
    with pytest.raises(UserError, match=words):
        pretrain(dataclasses.replace(run, **parts), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_masked_model_does_not_read_both_ways(tmp_path: Path) -> None:
    """Nor an ELMo by characters what a tokenizer of pieces made."""
    pieces = make_data(tmp_path / "pieces", 1)
    both = DataConfig(path=str(pieces), rows="sentences", length=12)
    with pytest.raises(UserError, match="data.rows=sentences lacks; set data.rows to text$"):
        prepare.check(prepare.prepare(dataclasses.replace(test_loop.recipe(pieces), data=both), tmp_path / "run"))
    run = dataclasses.replace(recipe(pieces), data=both)
    with pytest.raises(UserError, match="its tokenizer has no characters .*, or set model.input to tokens"):
        prepare.check(prepare.prepare(run, tmp_path / "run"))
    by_token = dataclasses.replace(run, model=dataclasses.replace(run.model, input="tokens"))
    prepare.check(prepare.prepare(by_token, tmp_path / "run"))
