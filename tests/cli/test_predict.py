"""`jaxenc predict`: kinds of input, what it writes and says, input that goes wrong; and the export of a fine-tuned model."""

import csv
import dataclasses
import functools
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest import mock

import pytest

from jaxenc.cli import predict as command
from jaxenc.cli.main import main
from jaxenc.inference import predict
from jaxenc.tasks.tag import Tag
from tests.tuned import CLASSES, DEV, STEPS, examples

TEXTS = ["red walks", "", "dog walks, the bridge", "one\u2028é"]


@pytest.fixture(scope="module", autouse=True)
def loaded_once() -> Iterator[None]:
    """Each model is loaded, and its programs traced, once for all tests of this file."""
    with mock.patch.object(command, "load", functools.cache(command.load)):
        yield


def written(kind: str, folder: Path) -> Path:
    """A file with TEXTS."""
    path = folder / f"in.{kind}"
    if kind == "txt":
        path.write_text("\ufeff" + "\r\n".join(TEXTS), newline="")
    elif kind == "csv":
        with open(path, "w", newline="") as file:
            csv.writer(file).writerows([["n", "sentence"], *enumerate(TEXTS)])
    elif kind == "tsv":
        path.write_text("sentence\tn\n" + "".join(f"{text}\t{i}\n" for i, text in enumerate(TEXTS)))
    else:
        path.write_text("".join(json.dumps({"sentence": text, "n": [i]}) + "\n" for i, text in enumerate(TEXTS)))
    return path


def lines(text: str) -> list[dict]:
    return [json.loads(line) for line in text.split("\n")[:-1]]


def run(*argv: object) -> int:
    return main(["predict", *map(str, argv)])


def test_the_answers_of_the_dev_file_are_those_of_fine_tuning(tuned: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """Of the best seed, and of the one that is named; with the probabilities of the classes by name."""
    scores = [one["scores"]["accuracy"] for one in json.loads((tuned / "runs" / "results.json").read_text())["seeds"]]
    best = scores.index(max(scores))
    for seed, more in ((best, ()), (1 - best, ("--seed", 1 - best))):
        out = tmp_path / f"{seed}.jsonl"
        assert run("--model", tuned / "runs", "--input", tuned / "dev.tsv", "--out", out, *more) == 0
        said = capsys.readouterr()
        assert not said.out and f"predict: {tuned}/runs/seed_{seed}/checkpoints/{STEPS}" in said.err
        assert more or f"the best of 2 on the dev set, accuracy {max(scores):.4f}" in said.err
        found = lines(out.read_text())
        dev = lines((tuned / "runs" / f"seed_{seed}" / "dev.jsonl").read_text())
        assert all(list(one["probabilities"]) == list(CLASSES) for one in found + dev)
        labels = [one.pop("label") for one in dev]
        close = [pytest.approx(one.pop("probabilities"), abs=1e-5) for one in dev]
        assert [one.pop("probabilities") for one in found] == close and labels == [label for _, label in examples(DEV, 2)]
        assert found == dev and len(dev) == DEV


def test_every_kind_of_file_gives_the_same_answers(tuned: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """An empty line is an empty text; U+2028 ends no line."""
    found = {}
    for kind in ("txt", "csv", "tsv", "jsonl"):
        assert run("--model", tuned / "runs" / "seed_0", "--input", written(kind, tmp_path)) == 0
        found[kind] = capsys.readouterr().out
    assert [one["id"] for one in lines(found["txt"])] == ["0", "1", "2", "3"]
    assert found["txt"] == found["csv"] == found["jsonl"] and found["tsv"] == found["csv"]


@pytest.fixture
def piped() -> Iterator[Callable[[bytes], None]]:
    """Makes bytes the standard input."""
    before = os.dup(0)

    def pipe(content: bytes) -> None:
        read, write = os.pipe()
        os.write(write, content)
        os.close(write)
        os.dup2(read, 0)
        os.close(read)

    yield pipe
    os.dup2(before, 0)
    os.close(before)


@pytest.mark.parametrize("content", [b"red walks\ndog", b'{"body": "red walks"}\n{"body": "dog \\ud83d"}\n'])
def test_the_standard_input_holds_text_or_json(content: bytes, piped: Callable, tuned: Path, capsys: pytest.CaptureFixture) -> None:
    """The text is in another column than the task's, and holds half of a surrogate pair."""
    piped(content)
    assert run("--model", tuned / "runs" / "seed_0", "--input", "-", "--text", "body") == 0
    assert [one["answer"] for one in lines(capsys.readouterr().out)] == ["no", "yes"]


def test_shortened_texts_are_counted(tuned: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    (tmp_path / "in.txt").write_text(f"red {'bridge ' * 40}\nred\n")
    model = ("--model", tuned / "runs" / "seed_0", "--input", tmp_path / "in.txt")
    assert run(*model) == 0
    assert "predict: 1 of 2 examples were shortened to fit rows of 20 tokens" in capsys.readouterr().err
    assert run(*model, "--truncation", "refuse") == 2
    said = capsys.readouterr()
    assert f"jaxenc: {tmp_path}/in.txt:1: 41 tokens of text, and a row of 20 has room for 18; shorten the text, or use --tru" in said.err
    assert not said.out


@pytest.mark.parametrize(
    "name, content, message",
    [
        ("in.tsv", b"text\tn\nred\t1\n", r"in.tsv:2: has no column sentence; name one of its columns with --text: 'text', 'n'"),
        ("in.tsv", b"sentence\tn\nred\t1\nred\n", "in.tsv:3: has 1 columns, and the first row has 2; write one cell for each column"),
        ("in.tsv", b"sentence\tsentence\nred\tred\n", "in.tsv:1: has several columns sentence; rename all but the one to read"),
        ("in.csv", b'sentence\nred\n"one\n', "in.csv:3: not a row of a table"),
        ("in.jsonl", b'{"sentence": "red"}\n{"sentence": 3}\n', "in.jsonl:2: the column sentence holds 3, which is not a text"),
        ("in.jsonl", b'{"sentence": "red"}\n[1]\n', "in.jsonl:2: not an object"),
        ("in.jsonl", b'{"sentence": "red"}\n{"sentence"\n', "in.jsonl:2: not a JSON object on one line"),
        (
            "in.txt",
            "réd\n".encode("latin-1"),
            "in.txt:1: holds bytes that are not text in its encoding; name it, such as --encoding cp1252",
        ),
        ("in.txt", b"", "in.txt: is empty"),
        ("in.tsv", b"sentence\tn\n", "in.tsv: has no rows; name a file with a row for each example"),
        ("none.txt", None, "none.txt: no such file; check the path"),
    ],
)
def test_input_that_goes_wrong(
    name: str, content: bytes | None, message: str, tuned: Path, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    """One line with file and row, exit 2, and no output."""
    if content is not None:
        (tmp_path / name).write_bytes(content)
    out = tmp_path / "out.jsonl"
    assert run("--model", tuned / "runs" / "seed_0" / "checkpoints" / str(STEPS), "--input", tmp_path / name, "--out", out) == 2
    said = capsys.readouterr()
    assert said.err.startswith("jaxenc: ") and message in said.err and said.err.count("\n") == 1 and not said.out
    assert not out.exists() and not list(tmp_path.glob(".out*"))


def test_a_bad_row_after_many_windows_leaves_no_output(
    tuned: Path, tmp_path: Path, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(predict, "WINDOW", 1)
    rows = [json.dumps({"sentence": text}) for text, _ in examples(40, 3)]
    (tmp_path / "in.jsonl").write_text("\n".join([*rows, "{}"]) + "\n")
    model = ("--model", tuned / "runs" / "seed_0", "--batch", 7, "--input", tmp_path / "in.jsonl")
    for more in ((), ("--out", tmp_path / "out.jsonl")):
        assert run(*model, *more) == 2
        said = capsys.readouterr()
        assert "in.jsonl:41: has no column sentence" in said.err and not said.out
    assert [path.name for path in tmp_path.iterdir()] == ["in.jsonl"]


def test_a_dash_is_standard_output(tuned: Path, tmp_path: Path, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    """As without --out; no file of that name is made."""
    monkeypatch.chdir(tmp_path)
    said = []
    for more in ((), ("--out", "-")):
        assert run("--model", tuned / "runs" / "seed_0", "--input", tuned / "dev.tsv", *more) == 0
        said.append(capsys.readouterr().out)
    assert said[0] == said[1] and len(lines(said[0])) == DEV and not list(tmp_path.iterdir())


def test_the_place_of_the_output_is_checked_first(tuned: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    (tmp_path / "out.jsonl").write_text("mine")
    assert run("--model", tmp_path / "none", "--input", tuned / "dev.tsv", "--out", tmp_path / "out.jsonl") == 2
    assert "out.jsonl: exists already, a file; choose another --out" in capsys.readouterr().err
    assert (tmp_path / "out.jsonl").read_text() == "mine"


@pytest.mark.parametrize(
    "more, message",
    [
        (("--model", "pretrained"), "it was not fine-tuned, so it has no task to predict; fine-tune it first with `jaxenc finetune`"),
        (("--model", "runs", "--seed", "5"), "--seed 5: runs has no such seed; use one of 0, 1"),
        (("--model", "runs/seed_0", "--seed", "0"), "--seed 0: runs/seed_0 is not a folder of several seeds; leave it out"),
        (("--model", "runs", "--text", "a,b"), "--text a,b: the task reads sentence; name one column for each, or leave it out"),
        (("--model", "runs", "--batch", "0"), "the batch is 0; it takes 1 or more examples"),
    ],
)
def test_options_that_do_not_fit(more: tuple, message: str, tuned: Path, monkeypatch, capsys: pytest.CaptureFixture) -> None:
    monkeypatch.chdir(tuned)
    assert run("--input", "dev.tsv", *more) == 2
    said = capsys.readouterr()
    assert message in said.err and not said.out


def test_a_fine_tuned_model_is_exported_with_its_classes(tuned: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    assert main(["export", "--model", str(tuned / "runs" / "seed_0"), "--to", "hf", "--out", str(tmp_path / "out")]) == 0
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    assert list(config["id2label"].values()) == list(CLASSES) and config["architectures"] == ["BertForSequenceClassification"]


def test_the_export_of_a_tagger_says_which_pieces_to_read(tuned: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    model = command.load(tuned / "runs" / "seed_0")
    tagger = dataclasses.replace(model, tune=dataclasses.replace(model.tune, task=Tag(labels=("O", "B-x"))))
    for one, says in ((tagger, True), (model, False)):
        with mock.patch("jaxenc.inference.load.load", return_value=one):
            assert main(["export", "--model", "x", "--out", str(tmp_path / str(says))]) == 0
        assert ('aggregation_strategy="first") reads them' in capsys.readouterr().err) is says
