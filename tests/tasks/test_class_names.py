"""The names of classes: -1 as a class and as no label, and names that look the same."""

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from jaxenc.errors import UserError
from jaxenc.inference.probe import probe
from jaxenc.tasks.classify import Classify
from jaxenc.tasks.evaluate import evaluate
from jaxenc.tasks.files import FilesConfig
from jaxenc.tasks.finetune import finetune
from jaxenc.tasks.prepare import open_task
from jaxenc.tasks.tag import Tag
from jaxenc.tasks.tuning import FineTune, TuneConfig
from tests.tasks.texts import write

Labelled = Callable[..., FineTune]


def relabelled(path: Path, names: dict[str, str]) -> None:
    """Puts other names of classes into a file of `labelled`."""
    rows = [line.split("\t") for line in path.read_text().splitlines()]
    path.write_text("".join(f"{text}\t{names.get(label, label)}\n" for text, label in rows))


@pytest.mark.usefixtures("one_device")
def test_minus_one_may_be_a_class(model: Path, labelled: Labelled, tmp_path: Path) -> None:
    """As for sentiment of -1, 0 and 1: the fitted task reads the files that it was fitted to, and so does one whose labels are given."""
    tune = labelled(train=32, epochs=1.0)
    for name in ("train.tsv", "dev.tsv"):
        relabelled(tmp_path / name, {"bad": "-1", "good": "1"})
    given = dataclasses.replace(tune, task=Classify(labels=("-1", "1")))
    assert [one.label for one in open_task(given, str(model)).splits["dev"].examples] == [
        one.label for one in open_task(tune, str(model)).splits["dev"].examples
    ]
    found = finetune(tune, str(model), tmp_path / "runs")
    assert evaluate(tmp_path / "runs").numbers["accuracy"] == pytest.approx(found.summary["accuracy"]["median"])


def test_minus_one_is_no_label_of_a_test_split_with_other_classes(model: Path, labelled: Labelled, tmp_path: Path) -> None:
    """As `datasets` of Hugging Face writes it; of the dev set it is refused."""
    tune = labelled(train=32, epochs=1.0)
    relabelled(tmp_path / "dev.tsv", {"bad": "-1", "good": "-1"})
    tested = dataclasses.replace(tune, data=dataclasses.replace(tune.data, dev="", test="dev.tsv"))
    assert {one.label for one in open_task(tested, str(model)).splits["test"].examples} == {""}
    with pytest.raises(UserError, match="dev.tsv:2: the column label holds no label; label the row"):
        open_task(tune, str(model))


@pytest.mark.parametrize(
    "first, second",
    [("caf\u00e9", "cafe\u0301"), ("\u095e\u0930", "\u092b\u093c\u0930"), ("good", "\u200bgood"), ("1", "\u0661")],
    ids=("accent", "nukta", "zero width", "digit"),
)
def test_classes_that_look_the_same_are_refused(tmp_path: Path, first: str, second: str) -> None:
    """The message writes them so that they can be told apart; with the advice they are one class, or two that were asked for."""
    files = write(tmp_path, train=f"text\tlabel\na\t{first}\nb\t{first}\nc\t{second}\nd\tother\n")
    with pytest.raises(UserError) as caught:
        Classify().fitted(Classify().examples(files, "train"))
    assert f"train.tsv:4: the label is {second!a}, and other rows have {first!a}; write it" in str(caught.value)
    assert f"{first}|{second} for one class" in caught.value.fix
    one = Classify(labels=("other", f"{first}|{second}"))
    assert [example.label for example in one.examples(files, "train")] == [first] * 3 + ["other"]


def test_a_label_that_only_the_dev_set_of_a_probe_has(model: Path, labelled: Labelled, tmp_path: Path) -> None:
    """One line, with the row, and no folder."""
    tune = labelled(train=32)
    relabelled(tmp_path / "dev.tsv", {"bad": "ugly"})
    with pytest.raises(UserError, match=r"dev.tsv:\d+: the label is 'ugly'; fix it, or name it in task.labels, which holds bad, good"):
        probe(model, tune, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("one_device")
def test_types_of_other_scripts_keep_their_scores_apart(model: Path, tmp_path: Path) -> None:
    """Two types that differ in a vowel sign, and two that differ in characters that no name of a score has."""
    types = ("\u0915\u093f", "\u0915\u0940", "C#", "C+")
    lines = "".join(f"it\tB-{one}\nb\tO\n\n" for one in types)
    (tmp_path / "rows.conll").write_text(lines * 4)
    data = FilesConfig(str(tmp_path), "rows.conll", "rows.conll")
    train = TuneConfig(steps=1, batch=8, length=16, lengths=(16,))
    found = finetune(FineTune(Tag(), data=data, train=train), str(model), tmp_path / "runs")
    assert {f"f1_{types[0]}", f"f1_{types[1]}", "f1_C_", "f1_C__2"} <= set(found.summary)
    rows = [json.loads(line) for line in (tmp_path / "runs" / "seed_0" / "metrics.jsonl").read_text().splitlines()]
    assert any(f"recall_{types[1]}" in row for row in rows)
