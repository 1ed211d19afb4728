"""What is kept and shown of the scores of several seeds."""

import dataclasses
import json
from pathlib import Path
from unittest import mock

import pytest

from jaxenc.cli import finetune as command
from jaxenc.cli.main import PREEMPTED, main
from jaxenc.reports.tuned import verdict
from jaxenc.tasks.classify import Classify
from jaxenc.tasks.finetune import finetune
from jaxenc.tasks.results import REMEDY, Outcome, Results, of_other_seeds, quoted, table
from tests.tuned import settings


def outcome(seed: int, accuracy: float, **more: float) -> Outcome:
    return Outcome(seed, f"runs/seed_{seed}", 7, {"accuracy": accuracy, "classifier_accuracy": accuracy, **more})


def test_finished_seeds_stay_in_the_results(tuned: Path, capsys: pytest.CaptureFixture) -> None:
    """Two seeds have finished; the same command with --seeds 1 trains nothing, says so, and keeps both, also when it is for the second."""
    runs = tuned / "runs"
    before = json.loads((runs / "results.json").read_text())
    tune = settings(tuned)
    for seed in (0, 1):
        one = dataclasses.replace(tune, train=dataclasses.replace(tune.train, seed=seed))
        found = finetune(one, str(tuned / "pretrained"), runs, seeds=1)
        assert [one.seed for one in found.seeds] == [0, 1]
        assert f"finetune: seeds that ran before stay in results.json: {1 - seed}\n" in capsys.readouterr().err
        assert json.loads((runs / "results.json").read_text()) == before


def test_seeds_of_other_settings_are_no_part_of_a_summary(tuned: Path) -> None:
    """A seed that was trained otherwise is refused, as it is where the command is for that seed itself."""
    tune = settings(tuned)
    other = dataclasses.replace(tune, train=dataclasses.replace(tune.train, seed=5, batch=8))
    with pytest.raises(Exception, match=r"seed_0: train.batch is 16.* and 8|seed_0: .*train.batch"):
        finetune(other, str(tuned / "pretrained"), tuned / "runs", seeds=1)


def test_diverged_and_finished_seeds_of_a_folder(tmp_path: Path) -> None:
    """One that diverged is in results.json alone, one that finished after the last results.json was written in its own folder alone."""
    (tmp_path / "results.json").write_text(json.dumps(Results("accuracy", (outcome(0, 0.5), Outcome(1, "", 0, {}, "step 3"))).to_json()))
    for seed in (0, 2):
        (tmp_path / f"seed_{seed}").mkdir()
        outcome(seed, 0.5).write(tmp_path / f"seed_{seed}" / "result.json")
    assert [one.seed for one in of_other_seeds(tmp_path, (0,))] == [1, 2]
    assert of_other_seeds(tmp_path / "none", ()) == []


def test_a_table_says_of_which_class_f1_is(tmp_path: Path) -> None:
    shown = Classify(labels=("bad|0", "good|1")).shown
    found = Results("f1", (outcome(0, 0.9, f1=0.8), outcome(1, 0.8, f1=0.7)), shown=shown)
    assert table(found)[0].split(maxsplit=2) == ["seed", "step", f"f1 of 'good'{'accuracy':>14}"]
    assert quoted(found, tmp_path) == f"results: {tmp_path}/results.json; median of 2 seeds: f1 of 'good' 0.7500"
    (tmp_path / "results.json").write_text(json.dumps(found.to_json()))
    assert Results.read(tmp_path / "results.json") == found
    assert not Classify(labels=("a", "b", "c")).shown and not Classify().shown


def test_a_score_is_shown_once() -> None:
    """classifier_accuracy, which is the accuracy; of a task whose accuracy is another number it stays."""
    one = outcome(0, 0.9, loss=0.1)
    assert table(Results("accuracy", (one,)))[0].split() == ["seed", "step", "accuracy", "loss"]
    other = dataclasses.replace(one, scores={"accuracy": 0.5, "multilabel_accuracy": 0.9})
    assert table(Results("accuracy", (other,)))[0].split() == ["seed", "step", "accuracy", "multilabel_accuracy"]
    spans = dataclasses.replace(one, scores={"f1": 0.5, "spans_accuracy": 0.9})
    assert table(Results("f1", (spans,)))[0].split() == ["seed", "step", "f1", "spans_accuracy"]


@pytest.mark.parametrize(
    "found, line",
    [
        (Results("accuracy", (outcome(3, 0.9),)), "; 1 seed: accuracy 0.9000"),
        (Results("f1", (outcome(3, 0.9),)), "; no dev set, so no scores"),
        (Results("f1", (Outcome(1, "", 0, {}, "step 3"),)), ""),
    ],
)
def test_the_last_line_says_what_to_quote(found: Results, line: str) -> None:
    assert quoted(found, Path("runs")) == "results: runs/results.json" + line


def test_a_stopped_run_says_where(tuned: Path, capsys: pytest.CaptureFixture) -> None:
    """No empty table."""
    found = Results("accuracy", (), preempted=True, stopped="seed 0, 1 of 3, at step 217/281")
    with mock.patch.object(command, "resolve"), mock.patch.object(command, "finetune", return_value=found):
        assert main(["finetune", "--config", "tasks/text", "--init-from", "x", "--workdir", "runs/mine", "--seeds", "3"]) == PREEMPTED
    said = capsys.readouterr()
    assert said.err == "runs/mine: stopped in seed 0, 1 of 3, at step 217/281; run the same command to continue\n" and not said.out


def test_a_score_that_is_no_number_makes_no_number_of_the_summary(tmp_path: Path) -> None:
    """Sorted among others, NaN would make any of them the median. In the files, which other programs read, it is null."""
    found = Results("m", (Outcome(0, "", 1, {"m": float("nan"), "n": 1.0}), Outcome(1, "", 1, {"m": 0.5, "n": 3.0})))
    assert [str(value) for value in found.summary["m"].values()] == ["nan"] * 5 and found.summary["n"]["median"] == 2.0
    infinite = Results("m", (Outcome(0, "", 1, {"m": 0.5}), Outcome(1, "", 1, {"m": float("inf")})))
    assert infinite.summary["m"]["min"] == 0.5 and str(infinite.summary["m"]["std"]) == "nan"
    (tmp_path / "results.json").write_text(json.dumps(found.to_json(), allow_nan=False))
    found.seeds[0].write(tmp_path / "result.json")
    for read in (Results.read(tmp_path / "results.json").seeds[0], Outcome.read(tmp_path / "result.json")):
        assert str(dict(read.scores)) == "{'m': nan, 'n': 1.0}"


def test_one_answer_for_all_comes_with_what_to_do() -> None:
    found = Results("accuracy", (outcome(0, 0.5), outcome(1, 0.25, degenerate=1.0)))
    assert table(found)[2].endswith("  one answer for all") and table(found)[-1] == f"one answer for all: {REMEDY}"
    assert f"A seed has one answer for all: {REMEDY}." in verdict(found)
    assert not any(
        "one answer" in line for line in (*table(Results("accuracy", found.seeds[:1])), verdict(Results("accuracy", found.seeds[:1])))
    )
