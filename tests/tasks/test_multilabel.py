"""Any number of labels: how files write them, rows, answers, scores, and labels that go wrong."""

import numpy as np
import pytest

from jaxenc.errors import UserError
from jaxenc.families.electra.model import ElectraConfig
from jaxenc.tasks.choice import Chosen
from jaxenc.tasks.classify import Classified
from jaxenc.tasks.multilabel import Labelled, Multilabel
from jaxenc.tasks.regress import Scored
from jaxenc.tasks.squad_files import Question
from jaxenc.tasks.tagged import Tagged
from tests.tasks.texts import framing, refused, write, write_json

TASK = Multilabel(labels=("anger", "joy|happy", "fear"))
WANTED = [("anger", "joy"), (), ("fear",)]
ROWS = [[1, 1, 0], [0, 0, 0], [0, 0, 1]]


def test_the_ways_that_files_write_labels(tmp_path):
    tsv = write(tmp_path, train="text\tlabel\na\tanger, happy\nb\t\nc\tfear\n")
    assert [one.labels for one in TASK.examples(tsv, "train")] == WANTED
    lists = write_json(tmp_path, *({"text": "a", "label": list(one)} for one in WANTED))
    assert [one.labels for one in TASK.examples(lists, "train")] == WANTED
    bars = Multilabel(labels=TASK.labels, separator=";")
    assert [one.labels for one in bars.examples(write(tmp_path, train="text\tlabel\na\tanger;joy\nb\t\nc\tfear\n"), "train")] == WANTED
    columns = Multilabel(labels=TASK.labels, label="")
    files = write(tmp_path, train="text\tfear\thappy\tanger\na\t0\t1\t1\nb\t0\t0\t0\nc\t1\t0\t0\n")
    assert [one.labels for one in columns.examples(files, "train")] == WANTED
    marked = write_json(tmp_path, {"text": "a", "anger": True, "joy": 1, "fear": False})
    assert [one.labels for one in columns.examples(marked, "train")] == WANTED[:1]


def test_rows_answers_and_scores(tmp_path):
    examples = TASK.examples(write(tmp_path, train="text\tlabel\na\tanger,joy\nb\t\nc\tfear\n"), "train")
    features = TASK.features(examples, framing())
    assert features.rows["classes"].tolist() == ROWS and features.rows["classes"].dtype == np.int32
    given = np.array([[0.9, 0.6, 0.1], [0.5, 0.2, 0.1], [0.7, 0.0, 0.4]], np.float32)
    answers = TASK.answers(examples, features, {"multilabel": given})
    assert answers == [["anger", "joy"], [], ["anger"]]
    assert TASK.score(answers, examples)["accuracy"] == pytest.approx(2 / 3)
    low = Multilabel(labels=TASK.labels, threshold=0.3)
    assert low.answers(examples, features, {"multilabel": given}) == [["anger", "joy"], ["anger"], ["anger", "fear"]]
    config = TASK.objective(ElectraConfig())
    assert (config.heads, config.labels) == (("first_token", "multilabel"), ("anger", "joy", "fear"))
    with pytest.raises(ValueError, match="predictions"):
        TASK.answers(examples, features, {"multilabel": given[:, :2]})


def test_classes_of_the_training_examples_and_of_a_checkpoint(tmp_path):
    task = Multilabel()
    fitted = task.fitted(task.examples(write(tmp_path, train="text\tlabel\na\tb,a\nb\t\nc\tc\n"), "train"))
    assert fitted.labels == ("a", "b", "c") and fitted.ordered(("C", "A", "B")).classes == ("c", "a", "b")
    assert TASK.ordered(("fear", "happy", "anger")).labels == ("fear", "joy|happy", "anger")


@pytest.mark.parametrize("other", [";", "，", "、", "،"])
def test_another_separator_makes_no_classes(other, tmp_path):
    """Each cell would be a class of its own. With either advice it is what was meant; in a list it is part of a name."""
    content = f"text\tlabel\na\tsport{other}art\nb\tart\nc\tsport\n"
    files, what = write(tmp_path, train=content), f"holds 'sport{other}art', and task.separator is ','"
    assert refused(Multilabel(), files).startswith(f"train.tsv:2: the column label {what}; set task.separator={other} if these are")
    several = Multilabel(separator=other)
    assert several.fitted(several.examples(files, "train")).labels == ("art", "sport")
    named = Multilabel(labels=(f"sport{other}art", "art", "sport"))
    assert named.examples(files, "train")[0].labels == (f"sport{other}art",)
    assert Multilabel().examples(write_json(tmp_path, {"text": "a", "label": [f"a{other}b"]}), "train")[0].labels == (f"a{other}b",)


def test_a_test_split_may_lack_labels(tmp_path):
    for task, content in ((TASK, "text\na\n"), (Multilabel(labels=TASK.labels, label=""), "text\na\n")):
        examples = task.examples(write(tmp_path, test=content), "test")
        assert examples[0].labels is None and task.features(examples, framing()).rows["classes"].tolist() == [[-1, -1, -1]]
        assert task.score([["joy"]], examples) == {"micro_f1": 0, "macro_f1": 0, "accuracy": 0}


@pytest.mark.parametrize(
    "task, content, message",
    [
        (TASK, "text\tlabel\na\tjoy\nb\tjoy,pride\n", "train.tsv:3: the label is 'pride'; fix it, or name it in task.labels, which holds"),
        (TASK, "text\na\n", "train.tsv:1: has no column label; name one of its columns"),
        (Multilabel(), "text\tlabel\na\t\nb\t\n", "train.tsv:2: no training example has a label; name"),
        (Multilabel(labels=("a", "b"), label=""), "text\ta\tb\nx\t1\t0\ny\t1\tno\n", "train.tsv:3: the column b holds 'no'; write 1 or 0"),
        (Multilabel(labels=("a", "b"), label=""), "text\ta\tb\nx\t\t\n", "train.tsv:2: holds no labels; write 0 in the columns of all"),
        (Multilabel(), "text\tlabel\na\tx|y\nb\tz\n", "train.tsv:2: the label is 'x|y', and | separates the spellings of a class; write"),
    ],
)  # fmt: skip
def test_labels_that_go_wrong(tmp_path, task, content, message):
    assert refused(task, write(tmp_path, train=content)).startswith(message)


def test_labels_of_json_that_go_wrong(tmp_path):
    assert refused(TASK, write_json(tmp_path, {"text": "a", "label": None})).startswith("train.jsonl:1: holds no labels; write [] for")
    assert refused(TASK, write_json(tmp_path, {"text": "a", "label": [["joy"]]})).startswith(
        "train.jsonl:1: the column label holds [['joy']]"
    )


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"label": ""}, "task.label and task.labels are empty; name the column of the labels, or the columns of all classes"),
        ({"threshold": 1.0}, "task.threshold is 1.0; use a probability, 0 or more and below 1"),
        ({"separator": ""}, "task.separator is empty; name the character between two labels"),
        ({"metric": "f1"}, "task.metric is 'f1'; use micro_f1, macro_f1, accuracy"),
    ],
)
def test_settings_that_do_not_fit(settings, message):
    with pytest.raises(UserError) as caught:
        Multilabel(**settings)
    assert str(caught.value) == message


def test_numbers_and_truths_are_the_names_that_text_would_have(tmp_path):
    """1.0 is '1' and true 'true', in a list and alone, as for a single class; NaN, a null of pandas, is an unknown label."""
    rows = [["2"], [2.0], 2.0, [True], True, [1, "true"]]
    found = Multilabel().examples(write_json(tmp_path, *({"text": "a", "label": one} for one in rows)), "train")
    assert [one.labels for one in found] == [("2",), ("2",), ("2",), ("true",), ("true",), ("1", "true")]
    with pytest.raises(UserError, match="train.jsonl:1: holds no labels"):
        Multilabel().examples(write_json(tmp_path, {"text": "a", "label": float("nan")}), "train")


def test_details_are_the_probability_of_each_class_by_name(tmp_path):
    task = Multilabel(labels=("a", "b|B"))
    examples = task.examples(write_json(tmp_path, {"text": "x", "label": ["B"]}, {"text": "y", "label": []}), "train")
    given = {"multilabel": np.array([[0.25, 0.75], [0.5, 0.0]], np.float32)}
    assert task.details(examples, task.features(examples, framing()), given) == [
        {"probabilities": {"a": 0.25, "b": 0.75}},
        {"probabilities": {"a": 0.5, "b": 0.0}},
    ]


@pytest.mark.parametrize(
    "example, right",
    [
        (Labelled("0", "f", ("x",), ("b", "a")), ["b", "a"]),
        (Labelled("0", "f", ("x",), ()), []),
        (Labelled("0", "f", ("x",)), None),
        (Classified("0", "f", ("x",), "a"), "a"),
        (Classified("0", "f", ("x",)), None),
        (Scored("0", "f", ("x",), 0.0), 0.0),
        (Chosen("0", "f", "p", ("x", "y"), 0), 0),
        (Chosen("0", "f", "p", ("x", "y")), None),
        (Tagged("0", "f", ("x", "y"), ("O", "B-a")), ["O", "B-a"]),
        (Tagged("0", "f", ("x", "y")), None),
        (Question("0", "f", "q", "c", (("a", 0), ("b", 1)), False), ["a", "b"]),
        (Question("0", "f", "q", "c", (), True), []),
        (Question("0", "f", "q", "c", (), False), None),
    ],
)
def test_the_right_answer_of_an_example(example, right):
    """As dev.jsonl writes it beside the answer: null is no label, and an empty list is one."""
    assert example.right == right
