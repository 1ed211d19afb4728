"""Classification: examples, classes in order, rows, answers, scores, and labels that go wrong."""

import csv
import dataclasses
import json

import numpy as np
import pytest

from jaxenc.errors import UserError
from jaxenc.families import MODELS
from jaxenc.families.electra.model import ElectraConfig
from jaxenc.tasks.choice import Choice
from jaxenc.tasks.classify import Classify
from jaxenc.tasks.files import FilesConfig
from jaxenc.tasks.multilabel import Multilabel
from jaxenc.tasks.regress import Regress
from tests.tasks.texts import framing, refused, write

NLI = Classify(text=("premise", "hypothesis"), labels=("entailment|0", "neutral|1", "contradiction|2"))
PAIRS = "premise\thypothesis\tlabel\nthe fox\tjumps\tentailment\nthe dog\tthe fox\tneutral\nlazy\tquick\tcontradiction\nfox\tdog\tneutral\n"


def answered(task, examples, numbers):
    """The answers of a model that gives the largest logit to the classes `numbers`."""
    features = task.features(examples, framing())
    return task.answers(examples, features, {"classifier": np.eye(len(task.labels), dtype=np.float32)[numbers]})


def test_examples_rows_and_labels(tmp_path):
    files = write(tmp_path, train=PAIRS)
    examples = NLI.examples(files, "train")
    assert [(one.name, one.texts, one.label) for one in examples][:2] == [
        ("0", ("the fox", "jumps"), "entailment"),
        ("1", ("the dog", "the fox"), "neutral"),
    ]
    assert examples[3].where == f"{tmp_path}/train.tsv:5"
    features = NLI.features(examples, framing())
    assert features.rows["label"].tolist() == [0, 1, 2, 1] and features.rows["label"].dtype == np.int32
    assert features.rows["tokens"].shape == (4, 24) and features.example.tolist() == [0, 1, 2, 3]
    first, second = (framing().ids([text])[0] for text in ("the fox", "jumps"))
    assert features.rows["tokens"][0, 1 : len(first) + 1].tolist() == first
    assert features.rows["types"][0].sum() == len(second) + 1


def test_heads_of_a_model():
    config = NLI.objective(ElectraConfig())
    assert (config.heads, config.labels) == (("first_token", "classifier"), ("entailment", "neutral", "contradiction"))


def test_classes_are_those_of_the_training_examples_sorted(tmp_path):
    task = dataclasses.replace(NLI, labels=())
    fitted = task.fitted(task.examples(write(tmp_path, train=PAIRS), "train"))
    assert fitted.classes == ("contradiction", "entailment", "neutral") and NLI.fitted([]) is NLI


@pytest.mark.parametrize("task", [NLI, Regress(), Multilabel(labels=("a", "b")), Choice(count=2)], ids=lambda task: task.kind)
def test_a_family_without_a_vector_of_a_text(task):
    with pytest.raises(UserError, match="elmo models have no vector of a text to fine-tune; choose a model of another family"):
        task.objective(MODELS["elmo"]())


@pytest.mark.parametrize("names", [("contradiction", "entailment", "neutral"), ("CONTRADICTION", "NEUTRAL", "ENTAILMENT"), ("2", "0", "1")])
def test_b87_the_order_of_a_checkpoint_changes_no_score(tmp_path, names):
    """Classes go by name: logits whose classes are permuted with their names give the same answers and scores."""
    examples = NLI.examples(write(tmp_path, dev=PAIRS), "dev")
    numbers = [0, 1, 1, 2]
    there = NLI.ordered(names)
    place = {name: i for i, name in enumerate(there.classes)}
    permuted = [place[NLI.classes[i]] for i in numbers]
    assert permuted != numbers and set(there.classes) == set(NLI.classes)
    assert there.score(answered(there, examples, permuted), examples) == NLI.score(answered(NLI, examples, numbers), examples)
    assert NLI.score(answered(NLI, examples, numbers), examples)["accuracy"] == 0.5
    assert there.features(examples, framing()).rows["label"].tolist() == [place[example.label] for example in examples]


@pytest.mark.parametrize("names", [("LABEL_0", "LABEL_1", "LABEL_2"), ("entailment", "neutral"), ("entailment", "neutral", "neutral")])
def test_b87_classes_that_are_not_those_of_the_task_are_refused(names):
    with pytest.raises(UserError, match=f"the model has the classes {', '.join(names)}, and the task has entailment, neutral, contra"):
        NLI.ordered(names)


def test_pairs_in_both_orders_are_for_training_only(tmp_path):
    """As google-research/electra: first all of them, then all exchanged; `train_rows` counts the pairs of the file."""
    files = dataclasses.replace(write(tmp_path, train=PAIRS, dev=PAIRS), train_rows=2)
    task = dataclasses.replace(NLI, double_unordered=True)
    assert [(one.texts, one.label) for one in task.examples(files, "train")] == [
        (("the fox", "jumps"), "entailment"),
        (("the dog", "the fox"), "neutral"),
        (("jumps", "the fox"), "entailment"),
        (("the fox", "the dog"), "neutral"),
    ]
    assert task.examples(files, "dev") == NLI.examples(files, "dev")
    with pytest.raises(UserError, match="task.double_unordered is set, and task.text names one column"):
        Classify(double_unordered=True)


def test_a_test_split_may_lack_labels(tmp_path):
    files = write(tmp_path, test="index\tpremise\thypothesis\n7\tthe fox\tjumps\n9\t\t\n")
    task = dataclasses.replace(NLI, id="index|id")
    examples = task.examples(files, "test")
    assert [(one.name, one.label) for one in examples] == [("7", ""), ("9", "")]
    assert task.features(examples, framing()).rows["label"].tolist() == [-1, -1]
    scored = task.score(["neutral", "neutral"], examples)
    assert scored["accuracy"] == 0 and all(map(np.isfinite, scored.values()))


def test_submission_has_names_and_the_last_spelling_of_a_class(tmp_path):
    files = write(tmp_path, test="index\tpremise\thypothesis\n7\ta\tb\n9\tc\td\n", dev="index\tpremise\thypothesis\n1\te\tf\n")
    task = dataclasses.replace(NLI, id="index", submits=("test=MNLI-m.tsv", "dev=MNLI-mm.tsv", "diagnostic=AX.tsv"))
    examples = task.examples(dataclasses.replace(files, test="test.tsv,dev.tsv"), "test")
    sent = task.submission(["neutral", "entailment", "contradiction"], examples)
    assert sent == {"MNLI-m.tsv": "index\tprediction\n7\t1\n9\t0\n", "MNLI-mm.tsv": "index\tprediction\n1\t2\n"}
    assert NLI.submission(["neutral"] * 3, examples) == {}
    assert list(task.submission(["neutral"], examples[2:])) == ["MNLI-mm.tsv"]  # never the answers to another file
    whole = dataclasses.replace(task, submits=("RTE.tsv",)).submission(["neutral"] * 3, examples)
    assert whole == {"RTE.tsv": "index\tprediction\n7\t1\n9\t1\n1\t1\n"}


def test_every_file_of_a_split_has_its_own_score(tmp_path):
    files = dataclasses.replace(write(tmp_path, dev=PAIRS, test=PAIRS), dev="dev.tsv,test.tsv")
    examples = NLI.examples(files, "dev")
    scored = NLI.score([one.label for one in examples[:4]] + ["entailment"] * 4, examples)
    assert (scored["accuracy"], scored["accuracy_dev"], scored["accuracy_test"]) == (0.625, 1.0, 0.25)
    assert "accuracy_dev" not in NLI.score(["neutral"] * 4, examples[:4])


def test_b89_one_class_for_all_is_zero_and_flagged(tmp_path):
    task = Classify(labels=("0", "1"), metric="matthews")
    examples = task.examples(write(tmp_path, dev="text\tlabel\na\t0\nb\t1\nc\t1\n"), "dev")
    assert task.score(["1", "1", "1"], examples) == {
        "accuracy": pytest.approx(2 / 3), "macro_f1": pytest.approx(0.4), "matthews": 0.0, "f1": pytest.approx(0.8), "degenerate": 1.0,
    }  # fmt: skip
    assert "degenerate" not in task.score(["1", "1", "0"], examples)


def test_numbers_of_json_are_names_of_classes(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"text": "a", "label": 1}\n{"text": "b", "label": 0.0}\n{"text": "c", "label": "1"}\n')
    files = dataclasses.replace(write(tmp_path), train="a.jsonl")
    assert [one.label for one in Classify().examples(files, "train")] == ["1", "0", "1"]


def rows(*labels):
    return "text\tlabel\n" + "".join(f"text {i}\t{label}\n" for i, label in enumerate(labels))


@pytest.mark.parametrize(
    "task, content, message",
    [
        (Classify(labels=("neg|0", "pos|1")), rows("0", "2"), "train.tsv:3: the label is '2'; fix it, or name it in task.labels, which"),
        (Classify(labels=("neg|0", "pos|1")), rows("0", "-1"), "train.tsv:3: the column label holds no label; label the row"),
        (Classify(), rows("0", ""), "train.tsv:3: the column label holds no label; label the row"),
        (Classify(), "index\tsentence\n0\ta\n", "train.tsv:1: has no column text; name one of its columns"),
        (Classify(), rows("-1", "-1"), "train.tsv:2: all 2 training examples have the label -1; name a file"),
        (Classify(), rows("1.0", "3.8", "2.5"), "train.tsv:3: the label is 3.8, a score and not a class; set task.kind=regress"),
        (Classify(), rows("a", "a|b"), "train.tsv:3: the label is 'a|b', and | separates the spellings of a class; write the label"),
        (Classify(), rows(*(f"id{i}" for i in range(12))), "train.tsv:2: the column label has 12 values in 12 training examples"),
    ],
)  # fmt: skip
def test_labels_that_go_wrong(tmp_path, task, content, message):
    assert refused(task, write(tmp_path, train=content)).startswith(message)


def test_many_classes_and_negative_ones_are_fine(tmp_path):
    task = Classify()
    assert len(task.fitted(task.examples(write(tmp_path, train=rows(*range(20), *range(20))), "train")).labels) == 20
    assert task.fitted(task.examples(write(tmp_path, train=rows("-1", "0", "1", "1", "-1")), "train")).labels == ("-1", "0", "1")


def test_a_label_that_only_the_dev_set_has(tmp_path):
    files = write(tmp_path, train=rows("a", "b"), dev=rows("a", "c"))
    task = Classify()
    dev = task.examples(files, "dev")
    with pytest.raises(UserError, match=r"dev.tsv:3: the label is 'c'; fix it, or name it in task.labels, which holds a, b"):
        task.fitted(task.examples(files, "train")).features(dev, framing())


def test_a_record_of_a_user():
    example = NLI.of_record({"premise": "a", "hypothesis": "", "label": "nonsense"}, "line 3")
    assert (example.name, example.texts, example.label) == ("line 3", ("a", ""), "")
    with pytest.raises(UserError, match="^line 3: has no column hypothesis"):
        NLI.of_record({"premise": "a"}, "line 3")


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"text": ()}, "task.text names 0 columns; name one, or two for pairs"),
        ({"text": ("text", "")}, "task.text or task.label names a column of no name; name a column, or give its number"),
        ({"label": ""}, "task.text or task.label names a column of no name; name a column, or give its number"),
        ({"truncation": "last"}, "task.truncation is 'last'; use longest, first, second, refuse"),
        ({"metric": "mcc"}, "task.metric is 'mcc'; use accuracy, f1, macro_f1, matthews"),
        ({"labels": ("a",)}, "task.labels names one class, a; name two or more, or none"),
        ({"labels": ("a|0", "b|0")}, "task.labels names '0' twice; give every class names of its own"),
        ({"labels": ("a", "b", "c"), "metric": "f1"}, "task.metric is f1, and there are 3 classes; use macro_f1"),
    ],
)
def test_settings_that_do_not_fit(settings, message):
    with pytest.raises(UserError) as caught:
        Classify(**settings)
    assert str(caught.value) == message


def test_predictions_of_another_shape_are_no_answers(tmp_path):
    examples = NLI.examples(write(tmp_path, dev=PAIRS), "dev")
    with pytest.raises(ValueError, match="predictions"):
        NLI.answers(examples, NLI.features(examples, framing()), {"classifier": np.zeros((4, 2))})


def test_a_long_text_is_shortened_or_refused(tmp_path):
    files = write(tmp_path, train="text\tlabel\n" + "fox " * 40 + "\t1\nfox\t0\n\t1\n")
    task = Classify(labels=("0", "1"))
    features = task.features(task.examples(files, "train"), framing(16))
    assert features.shortened == 1 and features.rows["segments"].sum(axis=1).tolist()[::2] == [16, 2]
    with pytest.raises(UserError, match="train.tsv:2: .* set task.truncation=longest"):
        task.features(task.examples(files, "train"), framing(16, "refuse"))


@pytest.mark.parametrize(("first", "second", "where"), [("good", "Good", 4), ("1", "1.0", 4), ("0", "0.0", 4), ("A", "a", 4)])
def test_classes_that_only_their_writing_tells_apart_are_refused(tmp_path, first, second, where):
    """The rarer one is named; with the advice it is one class, or two that were asked for."""
    files = write(tmp_path, train=f"text\tlabel\na\t{first}\nb\t{first}\nc\t{second}\nd\tother\n")
    examples = Classify().examples(files, "train")
    what = rf"train.tsv:{where}: the label is '{second}', and other rows have '{first}'"
    with pytest.raises(UserError, match=rf"{what}; write it .* task.labels, {first}\|{second} for one class with both"):
        Classify().fitted(examples)
    one = Classify(labels=("other", f"{first}|{second}"))
    assert [example.label for example in one.examples(files, "train")] == [first] * 3 + ["other"]
    assert Classify(labels=("other", first, second)).examples(files, "train")[2].label == second


def test_a_label_is_no_text(tmp_path):
    for text, label in ((("label",), "label"), (("a", "a"), "label"), (("a", "b|c"), "d|c")):
        with pytest.raises(UserError, match=r"name the column (label|a|c) twice; give texts and label columns of their own"):
            Classify(text=text, label=label)


def test_texts_without_a_token_are_counted(tmp_path):
    """An empty one, and one of white space, of which the tokenizer keeps nothing."""
    examples = Classify().examples(write(tmp_path, train="text\tlabel\na\t0\n\t1\n \t1\n"), "train")
    task = Classify().fitted(examples)
    assert task.notes(examples, task.features(examples, framing())) == ["2 of 3 examples have a text without a token"]
    assert task.notes(examples[:1], task.features(examples[:1], framing())) == []


@pytest.mark.parametrize("suffix, count", [("tsv", 2), ("txt", 2), ("csv", 0), ("jsonl", 0)])
def test_texts_that_a_writer_of_csv_quoted_are_counted(suffix, count, tmp_path):
    """In a file where quotes are part of the text: whole texts in quotes, with every quote in them doubled. A text between quotations is
    none, nor is one quote alone."""
    texts = ['"Our waiter made me angry, ""cheap""."', '"good"', '"yes" he said, "no"', '"', 'a ""b""']
    path = tmp_path / f"train.{suffix}"
    if suffix == "csv":
        with open(path, "w", newline="") as file:
            csv.writer(file).writerows([("text", "label"), *((text, "ab"[i % 2]) for i, text in enumerate(texts))])
    elif suffix == "jsonl":
        path.write_text("".join(json.dumps({"text": text, "label": "ab"[i % 2]}) + "\n" for i, text in enumerate(texts)))
    else:
        path.write_text("text\tlabel\n" + "".join(f"{text}\t{'ab'[i % 2]}\n" for i, text in enumerate(texts)))
    task = Classify()
    examples = task.examples(FilesConfig(train=str(path)), "train")
    task = task.fitted(examples)
    line = f"texts that begin and end with a quote, as writers of CSV quote them: {count}; if so, save the file as .csv"
    assert [one.texts[0] for one in examples] == texts
    assert task.notes(examples, task.features(examples, framing())) == [line] * (count > 0)
