"""A work directory of fine-tuning: what may not differ on a second start, and what a second start adds."""

import dataclasses
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import pytest

from jaxenc.errors import Diverged, UserError
from jaxenc.inference import load
from jaxenc.tasks import finetune as finetuning
from jaxenc.tasks.classify import Classify
from jaxenc.tasks.finetune import finetune
from jaxenc.tasks.prepare import open_task
from jaxenc.tasks.tuning import FineTune, as_run, objective_of
from jaxenc.training import pretrain
from jaxenc.training.settings import EvalConfig
from tests import tiny

Labelled = Callable[..., FineTune]


@pytest.mark.slow
def test_a_finished_run(model: Path, labelled: Labelled, tmp_path: Path) -> None:
    """Refuses, with advice that `jaxenc finetune` has, other settings, also those that only the task reads; other examples; and another
    model with the same config, whose scores it would otherwise never give. A copy of the model is the same one. A test set that is named
    later is answered without training, and answered again where it changes."""
    tune, runs = labelled(train=32, epochs=1.0), tmp_path / "runs"
    with tiny.on_one_device():
        first = finetune(tune, str(model), runs)
        results = (runs / "results.json").read_bytes()
        changes = (("optim", "lr", 2e-3), ("task", "metric", "matthews"), ("train", "select", "best"), ("train", "epochs", 2.0))
        for part, name, value in changes:
            other = dataclasses.replace(tune, **{part: dataclasses.replace(getattr(tune, part), **{name: value})})
            with pytest.raises(UserError, match=rf"seed_0: checkpoint {part}.{name} .*; set them back, or choose another --workdir$"):
                finetune(other, str(model), runs)
        with pytest.raises(UserError, match=r"begun with other training or dev examples, or .*; name .* or choose another --workdir$"):
            finetune(dataclasses.replace(tune, data=dataclasses.replace(tune.data, dev_rows=8)), str(model), runs)

        _other(model).save(tmp_path / "other")
        with pytest.raises(UserError, match=r"another model, .*other.*; start from that model, or choose another --workdir$"):
            finetune(tune, str(tmp_path / "other"), runs)
        assert (runs / "results.json").read_bytes() == results

        shutil.copytree(model, tmp_path / "copy")
        (tmp_path / "test.tsv").write_text("text\nit is b\nit is x\n")
        tested = dataclasses.replace(tune, data=dataclasses.replace(tune.data, test="test.tsv"))
        with mock.patch.object(pretrain, "train", side_effect=AssertionError):
            again = finetune(tested, str(tmp_path / "copy"), runs)
            assert again.seeds[0].scores == first.seeds[0].scores and _ids(runs) == ["0", "1"]
            (tmp_path / "test.tsv").write_text("text\nit is b\nit is x\nit is z\n")
            finetune(tested, str(model), runs)
        assert _ids(runs) == ["0", "1", "2"]


def _other(model: Path) -> load.Model:
    """The model with the rows of its token table in another order."""
    found = load.load(model)
    token = {"table": found.params["embeddings"]["token"]["table"][::-1]}
    return dataclasses.replace(found, params={**found.params, "embeddings": {**found.params["embeddings"], "token": token}})


def _ids(runs: Path) -> list[str]:
    return [json.loads(line)["id"] for line in (runs / "seed_0" / "test.jsonl").read_text().splitlines()]


def test_the_best_step_needs_a_dev_set(model: Path, labelled: Labelled, tmp_path: Path) -> None:
    tune = labelled(train=32, epochs=1.0, select="best")
    tune = dataclasses.replace(tune, data=dataclasses.replace(tune.data, dev=""))
    with pytest.raises(UserError, match=r"train.select is best, and data.dev is not set; .*--config.train.select=last$"):
        finetune(tune, str(model), tmp_path / "runs")
    assert not (tmp_path / "runs").exists()


def test_the_best_step_outlives_checkpoints_at_requests_to_stop(model: Path, labelled: Labelled) -> None:
    """Every step of a run may be one at which it was asked to stop, and saved; none of them displaces one that was evaluated."""
    tune, config = labelled(train=32, epochs=3.0, select="best"), load.load(model).config.model
    run = as_run(tune, objective_of(dataclasses.replace(tune, task=Classify(labels=("bad", "good"))), config), config, 32, "cpu")
    assert run.checkpoint.keep >= run.plan[-1].end == 6


@pytest.mark.parametrize("epochs", [1e9, 1e308])
def test_more_steps_than_a_run_can_have_are_refused(model: Path, labelled: Labelled, tmp_path: Path, epochs: float) -> None:
    """The second overflows a float."""
    with pytest.raises(UserError, match=r"^train.epochs is 1e\+\d+, which is more than 2\^31 - 1 steps; lower it$"):
        finetune(labelled(train=64, epochs=epochs), str(model), tmp_path / "runs")
    assert not (tmp_path / "runs").exists()


def test_a_seed_beyond_the_last_one_is_refused_before_any_is_trained(model: Path, labelled: Labelled, tmp_path: Path) -> None:
    tune = labelled(train=32, seed=2**31 - 1)
    with pytest.raises(UserError, match=r"--seeds: the last seed is 2147483648, and the largest is 2\^31 - 1; lower it or train.seed"):
        finetune(tune, str(model), tmp_path / "runs", seeds=2)
    assert not (tmp_path / "runs").exists()


def test_an_empty_name_is_no_folder(model: Path, labelled: Labelled, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would be the current one: here a folder without a file, and a run."""
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    with pytest.raises(UserError, match="^--workdir: empty; name a folder$"):
        finetune(labelled(train=32, epochs=1.0), str(model), "")
    monkeypatch.chdir(model)
    with pytest.raises(UserError, match="^--init-from: empty; name a folder$"):
        finetune(labelled(train=32, epochs=1.0), "", tmp_path / "runs")
    assert not [*(tmp_path / "empty").iterdir()] and not (tmp_path / "runs").exists()


def test_the_advice_of_a_diverged_seed_is_about_finetune(model: Path, labelled: Labelled, tmp_path: Path) -> None:
    with mock.patch.object(finetuning, "train_job", side_effect=Diverged("step 3")):
        found = finetune(labelled(train=32, epochs=1.0), str(model), tmp_path / "runs")
    assert found.seeds[0].failed == "step 3: lower optim.lr, and choose another --workdir"


def test_lengths_end_with_the_length(labelled: Labelled) -> None:
    """Or the refusal would be one of `data.lengths`, a field that no fine-tuning has."""
    for lengths in ((16,), (32, 16, 64), (16, 16, 64)):
        with pytest.raises(UserError, match=r"train.lengths is .*; give rising lengths that end with train.length, or \(\)$"):
            labelled(length=64, lengths=lengths)


def test_a_task_is_scored_on_its_whole_dev_set(labelled: Labelled) -> None:
    """`eval.rows` was not read: the scores were those of all rows."""
    with pytest.raises(UserError, match="eval.rows is 4, and a task is scored on its whole dev set; set data.dev_rows instead"):
        dataclasses.replace(labelled(), eval=EvalConfig(rows=4))


def test_texts_that_the_tokenizer_does_not_know(model: Path, labelled: Labelled, tmp_path: Path) -> None:
    """B13: a line for the split, with the share (2 of 11, special pieces included); none for a split that it knows."""
    tune = labelled(train=8, dev=8)
    (tmp_path / "dev.tsv").write_text("text\tlabel\nनमस्ते दुनिया\tgood\nit is b\tbad\n", encoding="utf-8")
    notes = open_task(tune, str(model)).notes
    unknown = "the tokenizer does not know 18% of the tokens: are they in another language or letter case, or without blanks between words?"
    assert notes == ["train: 8 examples", "dev: 2 examples", f"dev: {unknown}"]
