"""Answers of a fine-tuned model in Python: those of fine-tuning, whatever the batch and the order; and saving such a model."""

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path

import jax
import numpy as np
import pytest

import jaxenc
from jaxenc.errors import UserError
from jaxenc.inference import inputs, predict
from jaxenc.inference.model import Model
from jaxenc.inference.predict import Predictor
from jaxenc.tasks.kept import kept
from jaxenc.tasks.results import Outcome, Results
from jaxenc.tasks.task import Example, Features
from tests import tiny
from tests.tuned import CLASSES, DEV, LENGTH, examples

TEXTS = [text for text, _ in examples(DEV, 2)]
LONG = " ".join(["dog"] + ["bridge"] * 30)


@pytest.fixture(scope="module")
def model(tuned: Path) -> Model:
    return jaxenc.load(tuned / "runs" / "seed_1")


@pytest.fixture(scope="module")
def dev(tuned: Path) -> list[str]:
    """The answers that fine-tuning wrote."""
    return [json.loads(line)["answer"] for line in (tuned / "runs" / "seed_1" / "dev.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("batch", [7, 103, *(pytest.param(one, marks=pytest.mark.full) for one in (1, 16, 64))])
def test_b92_answers_are_those_of_fine_tuning_whatever_the_batch(batch: int, model: Model, dev: list[str]) -> None:
    assert set(dev) == set(CLASSES)
    assert model.predict(TEXTS, batch=batch) == dev


def test_every_example_once_and_in_order_over_many_windows(model: Model, dev: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows of 7, of which one is read at a time."""
    monkeypatch.setattr(predict, "WINDOW", 1)
    taken = []

    def counted() -> Iterator[str]:
        for text in TEXTS:
            taken.append(text)
            yield text

    predictor = model.predictor()
    found = predictor.answers(predict.of_values(model.task, counted()), batch=7)
    first = next(found)
    assert len(taken) == len(first.examples) == 7
    rest = list(found)
    names = [example.name for some in (first, *rest) for example in some.examples]
    assert names == [str(number) for number in range(DEV)]
    assert [answer for some in (first, *rest) for answer in some.answers] == dev


def test_rows_are_computed_with_others_of_their_length(model: Model) -> None:
    """Few shapes, at most a compiled length longer than their longest row, and less than a fifth of padding in whole batches."""
    seen, predictor = [], model.predictor()

    def compute(rows: dict) -> dict:
        seen.append(rows["segments"])
        return predictor.compute(rows)

    list(dataclasses.replace(predictor, compute=compute).answers(predict.of_values(model.task, TEXTS), batch=16))
    assert [len(segments) for segments in seen] == [16] * 6 + [8] and sum(segments.any(axis=1).sum() for segments in seen) == DEV
    for segments in seen:
        assert segments.shape[1] == min(inputs.compiled_length(int(segments.sum(axis=1).max())), LENGTH)
    assert np.mean(np.concatenate([segments.ravel() for segments in seen[:-1]])) > 0.8


def test_padding_on_the_left_is_cut_on_the_left(model: Model) -> None:
    """Rows with one to six tokens at their end, as XLNet has them: no token is lost, and each row keeps its own."""
    lengths = [3, 6, 1, 5, 2]
    segments = np.array([[0] * (LENGTH - n) + [1] * n for n in lengths], np.int32)
    rows = {"tokens": segments * np.arange(1, 6, dtype=np.int32)[:, None], "segments": segments}
    task = Stub(Features(rows, np.arange(5, dtype=np.int32)))
    framing = dataclasses.replace(model.predictor().framing, left=True)
    compute = lambda rows: jax.device_put({"sum": rows["tokens"].sum(axis=1)})
    (found,) = Predictor(task, framing, model.objective.fields, compute).answers(predict.of_values(model.task, TEXTS[:5]), batch=2)
    assert found.answers == [3, 12, 3, 20, 10]


@dataclasses.dataclass(frozen=True)
class Stub:
    """A task whose answer is the prediction of its only row."""

    given: Features

    def of_record(self, record: dict, where: str) -> object:
        return Example(where, where)

    def features(self, examples: list, framing: object) -> Features:
        return self.given

    def answers(self, examples: list, features: Features, predictions: dict) -> list:
        return predictions["sum"].tolist()

    def details(self, examples: list, features: Features, predictions: dict) -> list[dict]:
        return [{} for _ in examples]


def test_probabilities_are_the_softmax_of_the_logits_by_name(model: Model) -> None:
    """Against the output of the head for texts as `encode` reads them (<= 1e-5); the answer is the most probable class."""
    (found,) = model.predictor().answers(predict.of_values(model.task, TEXTS[:12]))
    rows = inputs.of_texts(model.config.model, model.tokenizer, TEXTS[:12])
    logits = np.float64(model.compute("classifier", rows))[:12]
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    given = [details["probabilities"] for details in found.details]
    assert model.task.classes == CLASSES and all(list(one) == list(CLASSES) for one in given)
    np.testing.assert_allclose([list(one.values()) for one in given], odds / odds.sum(axis=1, keepdims=True), rtol=0, atol=1e-5)
    assert found.answers == [max(one, key=one.get) for one in given]
    assert model.predict(TEXTS[:12], details=True) == [
        {"answer": answer, "probabilities": one} for answer, one in zip(found.answers, given, strict=True)
    ]


def test_long_texts_are_shortened_or_refused(model: Model) -> None:
    short = " ".join(LONG.split()[: LENGTH - 2])
    (found,) = model.predictor().answers(predict.of_values(model.task, [LONG, "red", short]))
    assert found.shortened == 1 and found.answers[0] == found.answers[2]
    assert model.predict([LONG]) == model.predict([LONG], truncation="first") == model.predict([short])
    for truncation in ("refuse", "second"):
        with pytest.raises(
            UserError, match=r"examples\[1\]: 31 tokens of text, and a row of 20 has room for 18; shorten the text, or use "
        ):
            model.predict(["red", LONG], truncation=truncation)
    with pytest.raises(UserError, match="the truncation is 'all'; use longest, first, second, refuse"):
        model.predict(["red"], truncation="all")


def test_what_is_no_example_is_refused_by_its_number(model: Model) -> None:
    assert model.predict([]) == [] and model.predict([{"sentence": "red", "other": 3}, ["red"], "red"]) == ["no"] * 3
    for given, message in (
        ("red", r"predict takes a list of examples; give \[example\] for a single one"),
        (["red", 3], r"examples\[1\]: it is 3, and the task reads sentence; give a text, or a dict with these keys"),
        ([("red", "blue")], r"examples\[0\]: it is \('red', 'blue'\), and the task reads sentence; give a text"),
        ([{"text": "red"}], r"examples\[0\]: has no column sentence; rename the right one of its columns: 'text'"),
        ([{"sentence": None}], r"examples\[0\]: the column sentence holds no text"),
    ):
        with pytest.raises(UserError, match=message):
            model.predict(given)
    with pytest.raises(UserError, match="the batch is 0; it takes 1 or more"):
        model.predict(["red"], batch=0)


def test_a_pretrained_model_has_no_task(tuned: Path) -> None:
    model = jaxenc.load(tuned / "pretrained")
    assert model.task is None
    with pytest.raises(UserError, match="it was not fine-tuned, so it has no task to predict; fine-tune it first with `jaxenc finetune`"):
        model.predict(["red"])


def test_a_saved_model_keeps_its_task_and_has_the_new_parameters(model: Model, tmp_path: Path) -> None:
    """As after a training loop of one's own, here one that exchanges two classes."""
    dense = model.params["classifier"]["dense"]
    exchanged = {"dense": {"kernel": dense["kernel"][:, [1, 0, 2]], "bias": dense["bias"][np.array([1, 0, 2])]}}
    changed = dataclasses.replace(model, params={**model.params, "classifier": exchanged})
    changed.save(tmp_path / "out")
    again = jaxenc.load(tmp_path / "out")
    tiny.assert_bitwise(again.params, changed.params)
    assert again.task == model.task and again.tune == model.tune and again.config == model.config
    other = {"maybe": "no", "no": "maybe", "yes": "yes"}
    assert again.predict(TEXTS) == [other[answer] for answer in model.predict(TEXTS)]


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda dense: {"kernel": dense["kernel"]}, r"classifier/dense/bias is missing; give it as float32\[3\]"),
        (lambda dense: {**dense, "bias": dense["bias"].astype("bfloat16")}, r"bias is bfloat16\[3\]; give it as float32\[3\]"),
        (lambda dense: {**dense, "scale": dense["bias"]}, r"classifier/dense/scale is float32\[3\]; leave it out"),
        (lambda dense: {**dense, "bias": dense["bias"] * np.nan}, "the parameter classifier/dense/bias has a number that is not finite"),
    ],
)
def test_parameters_that_do_not_fit_are_not_saved(change, message: str, model: Model, tmp_path: Path) -> None:
    params = {**model.params, "classifier": {"dense": change(model.params["classifier"]["dense"])}}
    with pytest.raises(UserError, match=message):
        dataclasses.replace(model, params=params).save(tmp_path / "out")
    assert not list(tmp_path.iterdir())


def finished(folder: Path, scores: list[dict | None]) -> Path:
    """A work directory as `finetune` leaves it, without checkpoints; None for a seed that failed."""
    made = []
    for seed, score in enumerate(scores):
        (folder / f"seed_{seed}").mkdir()
        made.append(Outcome(seed, "", 10 + seed, score or {}, "" if score is not None else "diverged"))
        if score is not None:
            made[-1].write(folder / f"seed_{seed}" / "result.json")
    (folder / "results.json").write_text(json.dumps(Results("accuracy", tuple(made)).to_json()))
    return folder


def test_the_model_of_a_fine_tuning_is_the_kept_step_of_its_best_seed(tmp_path: Path) -> None:
    folder = finished(tmp_path, [{"accuracy": 0.5}, {"accuracy": 0.75}, None, {"accuracy": 0.75}])
    best = folder / "seed_1" / "checkpoints" / "11"
    assert kept(folder) == (best, "the best of 3 on the dev set, accuracy 0.7500")
    assert kept(folder / "seed_1") == (best, "") and kept(best) == (best, "")
    assert kept(folder, 3) == (folder / "seed_3" / "checkpoints" / "13", "")
    assert kept(folder, 2) == (folder / "seed_2", "")
    with pytest.raises(UserError, match=r"has no such seed; use one of 0, 1, 2, 3"):
        kept(folder, 7)
    with pytest.raises(UserError, match=r"is not a folder of several seeds; leave it out"):
        kept(folder / "seed_1", 0)


def test_without_a_dev_set_it_is_the_first_seed_that_finished(tmp_path: Path) -> None:
    folder = finished(tmp_path, [None, {}, {}])
    assert kept(folder) == (folder / "seed_1" / "checkpoints" / "11", "the first seed; there was no dev set to choose by")


def test_a_fine_tuning_without_a_finished_seed_has_no_model(tmp_path: Path) -> None:
    (tmp_path / "begun" / "seed_0" / "checkpoints").mkdir(parents=True)
    with pytest.raises(UserError, match="no seed has finished"):
        kept(tmp_path / "begun")
    (tmp_path / "failed").mkdir()
    with pytest.raises(UserError, match="all of its seeds diverged"):
        kept(finished(tmp_path / "failed", [None, None]))
    for content in (
        "[]",
        "{}",
        '{"metric": "accuracy", "seeds": []}',
        '{"metric": "accuracy", "seeds": [3]}',
        '{"metric": "a", "seeds": [{}]}',
    ):
        (tmp_path / "failed" / "results.json").write_text(content)
        with pytest.raises(UserError, match=r"results.json: .*; delete it and run the same `jaxenc finetune` again"):
            kept(tmp_path / "failed")
