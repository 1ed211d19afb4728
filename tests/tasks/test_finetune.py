"""finetune: seeds, the step that is kept, resumes, answers, and what goes wrong before anything is written."""

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import jax
import numpy as np
import pytest

from jaxenc import tree
from jaxenc.checkpoint import restore
from jaxenc.errors import Diverged, UserError
from jaxenc.files import locked
from jaxenc.tasks import finetune as finetuning
from jaxenc.tasks.classify import Classify
from jaxenc.tasks.files import FilesConfig
from jaxenc.tasks.finetune import finetune
from jaxenc.tasks.prepare import open_task
from jaxenc.tasks.results import REPORTS, table
from jaxenc.tasks.tag import Tag
from jaxenc.tasks.tuning import FineTune, TuneConfig
from jaxenc.training import loop, pretrain, step
from jaxenc.training.settings import LogConfig
from tests.faults.same import assert_same_run

pytestmark = pytest.mark.usefixtures("one_device")
Labelled = Callable[..., FineTune]


def params(directory: Path, number: int) -> dict[str, np.ndarray]:
    """{path: array} of every parameter in a checkpoint."""
    stored = restore._stored(directory / "checkpoints" / str(number))
    shapes = tree.from_leaves((path.split("/", 1)[1], jax.ShapeDtypeStruct(*kind)) for path, kind in stored.items() if "params/" in path)
    found = restore.restore_params(directory / "checkpoints" / str(number), shapes)
    return {path: np.asarray(leaf) for path, leaf in tree.leaves(found)}


def test_a_task_is_learned_by_every_seed(model: Path, labelled: Labelled, tmp_path: Path) -> None:
    """The words of a sentence give its label, so a random encoder learns it in a few steps; the seeds share one compiled step."""
    compiled = mock.Mock(side_effect=step.compile_step)
    with mock.patch.object(loop, "compile_step", compiled):
        found = finetune(labelled(epochs=8.0), str(model), tmp_path / "runs", seeds=2)
    assert compiled.call_count == 1
    assert [one.seed for one in found.seeds] == [0, 1] and not found.failed
    assert found.summary["accuracy"]["min"] > 0.9, found.summary
    first, second = (params(Path(one.directory), one.step) for one in found.seeds)
    assert first.keys() == second.keys() and any((first[name] != second[name]).any() for name in first)
    saved = json.loads((tmp_path / "runs" / "results.json").read_text())
    assert [one["scores"]["accuracy"] for one in saved["seeds"]] == [one.scores["accuracy"] for one in found.seeds]
    assert saved["summary"]["accuracy"]["mean"] == np.mean([one.scores["accuracy"] for one in found.seeds])


def test_answers_are_those_that_were_scored(model: Path, labelled: Labelled, tmp_path: Path) -> None:
    """Of rows of two lengths, by a task whose order is that of the file."""
    tune = labelled(train=32, dev=23, epochs=3.0, length=32, lengths=(16, 32))
    (outcome,) = finetune(tune, str(model), tmp_path / "runs").seeds
    lines = [json.loads(line) for line in (tmp_path / "runs" / "seed_0" / "dev.jsonl").read_text().splitlines()]
    examples = open_task(tune, str(model)).splits["dev"].examples
    assert [line["id"] for line in lines] == [example.name for example in examples]
    right = np.mean([line["answer"] == example.label for line, example in zip(lines, examples, strict=True)])
    assert outcome.scores["accuracy"] == pytest.approx(right, abs=1e-12)


def test_best_keeps_the_first_of_the_highest_scores(model: Path, labelled: Labelled, tmp_path: Path) -> None:
    """Scores are made up: the second of four evaluations is the best, and so is the third."""
    scores = iter([0.5, 0.75, 0.75, 0.25])
    task = mock.patch.object(Classify, "score", lambda self, answers, examples: {"accuracy": next(scores, 0.0)})
    with task:
        (outcome,) = finetune(labelled(train=32, epochs=4.0, select="best"), str(model), tmp_path / "runs").seeds
    assert (outcome.step, outcome.scores["accuracy"]) == (4, 0.75)
    kept = {int(path.name) for path in (tmp_path / "runs" / "seed_0" / "checkpoints").iterdir()}
    assert kept == {4, 8}  # the last one too, or a second start would train on from the fourth


def test_a_finished_run_is_not_trained_again(model: Path, labelled: Labelled, tmp_path: Path) -> None:
    tune = labelled(train=32, epochs=1.0)
    first = finetune(tune, str(model), tmp_path / "runs")
    with mock.patch.object(pretrain, "train", side_effect=AssertionError):
        assert finetune(tune, str(model), tmp_path / "runs") == first
    for name in REPORTS:  # which `jaxenc report` writes: no reason to refuse the directory
        (tmp_path / "runs" / name).touch()
    more = finetune(tune, str(model), tmp_path / "runs", seeds=2)
    assert more.seeds[0] == first.seeds[0] and more.seeds[1].seed == 1


def test_a_run_that_was_cut_off_is_the_run_that_was_not(model: Path, labelled: Labelled, tmp_path: Path) -> None:
    """It dies in the second epoch, after the checkpoint of the first, and is started again: the same rows of metrics.jsonl, parameters and
    answers, bit for bit."""
    tune = labelled(train=48, dev=23, epochs=3.0, select="best")
    tune = dataclasses.replace(tune, log=LogConfig(every=1, examples=True, tensorboard=False))
    finetune(tune, str(model), tmp_path / "whole")
    push = loop.Log.push

    def dying(self: loop.Log, number: int, *rest: object) -> None:
        if number == 5:
            raise ZeroDivisionError
        push(self, number, *rest)

    with mock.patch.object(loop.Log, "push", dying), pytest.raises(ZeroDivisionError):
        finetune(tune, str(model), tmp_path / "cut")
    finetune(tune, str(model), tmp_path / "cut")
    assert_same_run(tmp_path / "whole" / "seed_0", tmp_path / "cut" / "seed_0", 0.0, 9)
    one, other = (tmp_path / name / "seed_0" / "dev.jsonl" for name in ("whole", "cut"))
    assert one.read_bytes() == other.read_bytes()


def test_a_work_directory_that_another_command_writes_to_is_refused(model: Path, labelled: Labelled, tmp_path: Path) -> None:
    """Also between two seeds, when the run of neither is locked; before anything is compiled."""
    workdir = tmp_path / "runs"
    with locked(workdir, "of the first"), mock.patch.object(pretrain, "begin", side_effect=AssertionError):
        with pytest.raises(UserError, match=f"{workdir}: another process is writing here; wait for it, or choose another --workdir"):
            finetune(labelled(), str(model), workdir)
        assert not list(workdir.iterdir())


def test_a_seed_that_diverges_is_reported_and_the_next_one_goes_on(model: Path, labelled: Labelled, tmp_path: Path) -> None:
    real = finetuning.train_job

    def train_job(job, **given):
        if job.run.train.seed == 0:
            raise Diverged("step 3")
        return real(job, **given)

    with mock.patch.object(finetuning, "train_job", train_job):
        found = finetune(labelled(train=32, epochs=1.0), str(model), tmp_path / "runs", seeds=2)
    assert found.failed == 1 and found.seeds[0].failed.startswith("step 3") and found.seeds[1].scores
    assert found.summary["accuracy"]["mean"] == found.seeds[1].scores["accuracy"]


def test_types_of_the_user_name_scores(model: Path, tmp_path: Path) -> None:
    """Entity types with a hyphen and with a dollar: their scores are written to metrics.jsonl and read again; the table shows the first six
    scores."""
    lines = "it\tO\nb\tB-creative-work\nc\tI-creative-work\n\nx\tB-$/group\nis\tO\n\n"
    for name in ("train", "dev"):
        (tmp_path / f"{name}.conll").write_text(lines * 8)
    data = FilesConfig(str(tmp_path), "train.conll", "dev.conll")
    train = TuneConfig(steps=2, batch=8, length=16, lengths=(16,))
    found = finetune(FineTune(Tag(), data=data, train=train), str(model), tmp_path / "runs")
    assert {"f1_creative-work", "f1___group"} <= set(found.summary) and len(found.summary) > 6
    # tags_accuracy is the accuracy of the answers, once more.
    assert table(found)[0].split() == ["seed", "step", "f1", *[name for name in found.summary if name not in ("f1", "tags_accuracy")][:5]]


def test_half_of_a_surrogate_pair_in_a_name_is_escaped(model: Path, labelled: Labelled, tmp_path: Path) -> None:
    """JSON allows it, and UTF-8 does not: the answers hold it as JSON writes it, in place of an error after the training."""
    rows = [{"id": f"\ud800{number}", "text": f"it is {'bx'[number % 2]}", "label": ("good", "bad")[number % 2]} for number in range(16)]
    (tmp_path / "odd.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    tune = labelled(steps=1)
    data = dataclasses.replace(tune.data, train="odd.jsonl", dev="odd.jsonl", test="odd.jsonl")
    finetune(dataclasses.replace(tune, task=Classify(id="id", submits=("odd.tsv",)), data=data), str(model), tmp_path / "runs")
    for split in ("dev", "test"):
        lines = (tmp_path / "runs" / "seed_0" / f"{split}.jsonl").read_text().splitlines()
        assert [json.loads(line)["id"] for line in lines] == [row["id"] for row in rows]
    assert (tmp_path / "runs" / "seed_0" / "submission" / "odd.tsv").read_text().startswith("index\tprediction\n\\ud8000\t")
