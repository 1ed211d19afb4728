"""Regression: scores, their scale, answers, submissions, and scores that go wrong."""

import dataclasses
import math

import numpy as np
import pytest

from jaxenc.errors import UserError
from jaxenc.families.electra.model import ElectraConfig
from jaxenc.tasks.regress import Regress
from tests.tasks.texts import framing, refused, write, write_json

STS = Regress(text=("sentence1", "sentence2"), label="score", bounds=(0.0, 5.0), submits=("STS-B.tsv",))
PAIRS = "sentence1\tsentence2\tscore\nthe fox\tjumps\t5.000\nfox\tdog\t0\nlazy\tquick\t2.5\n"


def test_the_model_learns_the_score_or_its_share_of_the_range(tmp_path):
    """(y - 0) / 5 in google-research/electra."""
    examples = STS.examples(write(tmp_path, train=PAIRS), "train")
    plain = STS.features(examples, framing()).rows["score"]
    scaled = dataclasses.replace(STS, scaled=True).features(examples, framing()).rows["score"]
    assert plain.dtype == np.float32 and plain.shape == (3,)
    assert (plain.tolist(), scaled.tolist()) == ([5, 0, 2.5], [1, 0, 0.5])
    config = STS.objective(ElectraConfig())
    assert (config.heads, config.labels) == (("first_token", "regressor"), ())


@pytest.mark.parametrize("bounds", [(0.0, 5.0), (-1.0, 3.0)])
def test_answers_are_on_the_scale_of_the_file(tmp_path, bounds):
    examples = STS.examples(write(tmp_path, train=PAIRS.replace("5.000", "3.0")), "train")
    task = dataclasses.replace(STS, bounds=bounds, scaled=True)
    features = task.features(examples, framing())
    answers = task.answers(examples, features, {"regressor": features.rows["score"]})
    assert answers == pytest.approx([3, 0, 2.5], abs=1e-6)
    assert task.score(answers, examples)["pearson"] == pytest.approx(1) and task.score(answers, examples)["mean_squared_error"] < 1e-10


def test_b88_predictions_are_one_number_a_row(tmp_path):
    """Also for a single row, where a matrix [1, 1] would broadcast unseen."""
    examples = STS.examples(write(tmp_path, train=PAIRS), "train")[:1]
    features = STS.features(examples, framing())
    assert STS.answers(examples, features, {"regressor": np.array([2.0], np.float32)}) == [2.0]
    with pytest.raises(ValueError, match=r"predictions \(1, 1\) for 1 examples"):
        STS.answers(examples, features, {"regressor": np.array([[2.0]], np.float32)})


def test_answers_that_are_not_finite_are_null_and_have_no_error(tmp_path):
    """An error of 0 would be the best one."""
    examples = STS.examples(write(tmp_path, train=PAIRS), "train")
    answers = STS.answers(examples, STS.features(examples, framing()), {"regressor": np.array([math.nan, 1, 2], np.float32)})
    assert answers == [None, 1.0, 2.0]
    found = STS.score(answers, examples)
    assert (found["pearson"], found["spearman"]) == (0, 0) and math.isnan(found["mean_squared_error"])


def test_submitted_scores_are_within_the_bounds(tmp_path):
    examples = STS.examples(write(tmp_path, test="sentence1\tsentence2\na\tb\nc\td\ne\tf\n"), "test")
    assert STS.submission([-0.2, 5.4, 2.34567], examples) == {"STS-B.tsv": "index\tprediction\n0\t0.000\n1\t5.000\n2\t2.346\n"}


def test_a_test_split_may_lack_scores(tmp_path):
    """Hugging Face writes -1.0 there."""
    for files in (
        write(tmp_path, test="sentence1\tsentence2\na\tb\n"),
        write_json(tmp_path, {"sentence1": "a", "sentence2": "b", "score": -1.0}, split="test"),
    ):
        examples = STS.examples(files, "test")
        assert examples[0].score is None and np.isnan(STS.features(examples, framing()).rows["score"]).all()
        assert STS.score([1.0], examples)["pearson"] == 0


@pytest.mark.parametrize(
    "score, message",
    [
        ("high", "train.tsv:3: the column score holds 'high', which is not a number; fix it, or leave the row out"),
        ("nan", "train.tsv:3: the column score holds 'nan', which is not a number"),
        ("inf", "train.tsv:3: the column score holds 'inf', which is not a number"),
        ("", "train.tsv:3: the column score holds no score; fill it in or leave the row out; a test split without scores"),
        ("5.5", "train.tsv:3: the score is 5.5; task.bounds is 0 to 5: fix one of them"),
        ("-1", "train.tsv:3: the score is -1; task.bounds is 0 to 5: fix one of them"),
    ],
)
def test_scores_that_go_wrong(tmp_path, score, message):
    content = f"sentence1\tsentence2\tscore\na\tb\t1\nc\td\t{score}\n"
    assert refused(STS, write(tmp_path, train=content)).startswith(message)


def test_nan_of_json_and_parquet_is_no_score(tmp_path):
    (tmp_path / "train.jsonl").write_text('{"sentence1": "a", "sentence2": "b", "score": NaN}\n')
    files = dataclasses.replace(write(tmp_path), train="train.jsonl")
    assert refused(STS, files) == "train.jsonl:1: the column score holds nan, which is not a number; fix it, or leave the row out"


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"metric": "accuracy"}, "task.metric is 'accuracy'; use pearson or spearman"),
        ({"bounds": (5.0, 0.0)}, "task.bounds is (5.0, 0.0); give the lowest and the highest score, or ()"),
        ({"bounds": (5.0,)}, "task.bounds is (5.0,); give the lowest and the highest score, or ()"),
        ({"scaled": True}, "task.scaled is set without task.bounds; give the lowest and the highest score"),
    ],
)
def test_settings_that_do_not_fit(settings, message):
    with pytest.raises(UserError) as caught:
        Regress(**settings)
    assert str(caught.value) == message


def test_scores_whose_squares_overflow_are_refused(tmp_path):
    """In the file; between bounds the model learns a share."""
    examples = Regress().examples(write(tmp_path, train="text\tlabel\na\t1\nb\t-1e39\n"), "train")
    with pytest.raises(UserError, match=r"train.tsv:3: the score is -1e\+39, too large to train on; write scores up to 1e\+18, or set"):
        Regress().features(examples, framing())
    assert Regress(bounds=(-1e39, 1.0), scaled=True).features(examples, framing()).rows["score"].tolist() == [1, 0]


def test_nothing_to_learn_is_refused(tmp_path):
    """One score for all, which no correlation is defined for; a single example may be tried. `1_000` is no number."""
    files = write(tmp_path, train="text\tlabel\na\t1\nb\t1.0\n")
    examples = Regress().examples(files, "train")
    with pytest.raises(UserError, match=r"train.tsv:2: all 2 training examples have the score 1; name the column of the score"):
        Regress().fitted(examples)
    assert Regress().fitted(examples[:1]) == Regress()
    with pytest.raises(UserError, match=r"train.tsv:2: the column label holds '1_0', which is not a number"):
        Regress().examples(write(tmp_path, train="text\tlabel\na\t1_0\nb\t2\n"), "train")
