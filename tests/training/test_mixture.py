"""Runs on a mixture of data folders, and on packed rows: a resume reads on, and what may not change is refused."""

import dataclasses
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import jaxenc
from jaxenc.cli.main import main
from jaxenc.data.sources import DataConfig
from jaxenc.errors import UserError
from jaxenc.training.pretrain import pretrain
from jaxenc.training.run import Run
from tests.training.stepping import stepping
from tests.training.test_loop import recipe, run_until


def mixing(*folders: Path, **given: Any) -> Run:
    config = DataConfig(mixture=tuple(map(str, folders)), length=24, **{"exponent": 0.7, **given})
    return dataclasses.replace(recipe(folders[0]), data=config)


def test_a_resume_within_an_epoch_reads_the_same_rows(data: Path, other_data: Path, tmp_path: Path) -> None:
    """Also when a folder has moved. Steps of eight rows, and an epoch of more than the ten steps before the stop."""
    run = mixing(data, other_data)
    with stepping():
        assert pretrain(run, tmp_path / "whole").step == 20
        assert run_until(10, run, tmp_path / "run") == 10
        moved = mixing(data, Path(shutil.copytree(other_data, tmp_path / "moved")))
        assert pretrain(moved, tmp_path / "run").step == 20
    assert (tmp_path / "run" / "examples.log").read_text() == (tmp_path / "whole" / "examples.log").read_text()
    facts = json.loads((tmp_path / "run" / "checkpoints" / "20" / "manifest.json").read_text())
    assert [part["folder"] for part in facts["parts"]] == list(moved.data.mixture)


@pytest.mark.parametrize(
    "changed, said",
    [
        ({"exponent": 1.0}, "checkpoint data.exponent 0.7, this run's 1.0; "),
        ({"weights": (1.0, 2.0)}, r"checkpoint data.weights \[\], this run's \[1.0, 2.0\]; "),
        ({"mixture": 1}, r"checkpoint data.mixture \[.*\], this run's \[.*\]; "),
        ({"rows": "packed"}, "data.rows text, this run's packed"),
    ],
)
def test_r25_a_resume_with_another_mixture_names_the_field(changed: dict, said: str, data: Path, other_data: Path, tmp_path: Path) -> None:
    """The field that was changed, not the fingerprint that follows from it."""
    run = mixing(data, other_data)
    with stepping():
        run_until(2, run, tmp_path / "run")
        other = mixing(other_data, data) if changed == {"mixture": 1} else mixing(data, other_data, **changed)
        with pytest.raises(UserError, match=said) as error:
            pretrain(other, tmp_path / "run")
    assert "fingerprint" not in str(error.value) and f"--continue-from {tmp_path / 'run'}; begin a new phase" in str(error.value)


def test_a_part_that_is_missing_is_named(data: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="gone/manifest.json"):
        pretrain(mixing(data, tmp_path / "gone"), tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.full
@pytest.mark.slow
@pytest.mark.usefixtures("one_device")
def test_a_model_trains_on_packed_rows_of_a_mixture(data: Path, other_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """Each part's held-out loss is one command; the mixture's counts the rows of both."""
    given = [f"--config.data.mixture={data},{other_data}", "--config.data.rows=packed", "--config.data.length=32"]
    small = ["--config.train.steps=4", "--config.train.batch=8", "--config.eval.batch=8", "--config.data.exponent=0.7"]
    assert (
        main(["pretrain", "--config", "bert/tiny", "--config.objective.kind=mlm", *given, *small, "--workdir", str(tmp_path / "run")]) == 0
    )
    both, first, second = (jaxenc.evaluate(tmp_path / "run", data=folder).numbers for folder in ("", data, other_data))
    count = lambda numbers: numbers["mlm_predictions"]
    assert count(both) == count(first) + count(second)


def test_objectives_of_pairs_refuse_packed_rows(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    for config, kind in (("bert/tiny", "mlm_nsp"), ("albert/tiny", "mlm_sop")):
        given = ["--config", config, f"--config.objective.kind={kind}", "--config.data.rows=packed", f"--config.data.path={data}"]
        assert main(["pretrain", *given, "--workdir", str(tmp_path / "run")]) == 2
        assert "the objective reads is_random, which data.rows=packed lacks" in capsys.readouterr().err
