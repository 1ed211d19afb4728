"""Multiple choice: the layouts of SWAG, RACE and CommonsenseQA, rows, answers, and records that go wrong."""

import dataclasses
import json

import numpy as np
import pytest

from jaxenc.errors import UserError
from jaxenc.families.electra.model import ElectraConfig
from jaxenc.tasks import choice_sets
from jaxenc.tasks.choice import Choice
from jaxenc.tasks.files import FilesConfig
from tests.tasks.texts import framing, refused, write, write_json

SWAG, RACE, CSQA = (task for task, _ in choice_sets.SETS.values())
OWN = {"prompt": "the fox", "choices": ["jumps", "the dog"], "label": 1}


def read(task, files):
    return [(one.prompt, one.choices, one.label) for one in task.examples(files, "train")]


def test_one_list_of_choices(tmp_path):
    assert read(Choice(), write_json(tmp_path, OWN)) == [("the fox", ("jumps", "the dog"), 1)]
    assert read(Choice(), write_json(tmp_path, OWN | {"label": "A"})) == [("the fox", ("jumps", "the dog"), 0)]


def test_swag_has_a_column_for_each_ending(tmp_path):
    content = "sent1\tsent2\tending0\tending1\tending2\tending3\tlabel\nA man sits.\tHe\tsmiles.\truns.\tsinks.\teats.\t2\n"
    wanted = [("A man sits.", ("He smiles.", "He runs.", "He sinks.", "He eats."), 2)]
    assert read(SWAG, write(tmp_path, train=content)) == wanted


@pytest.mark.parametrize("unrolled", [True, False])
def test_race_has_questions_with_and_without_a_blank(tmp_path, unrolled):
    """As distributed, a file for each article; and as Hugging Face has it, a record for each question."""
    questions, options = ["Tom is _ .", "Who is he?"], [["old", "new"], ["Tom", "Ann"]]
    if unrolled:
        rows = [
            {"example_id": f"high1.txt-{i}", "article": "An\narticle.", "question": q, "options": o, "answer": a}
            for i, (q, o, a) in enumerate(zip(questions, options, "BA", strict=True))
        ]
        files = write_json(tmp_path, *rows)
    else:
        (tmp_path / "high").mkdir()
        record = {"article": "An\narticle.", "questions": questions, "options": options, "answers": ["B", "A"], "id": "high1.txt"}
        (tmp_path / "high" / "1.txt").write_text(json.dumps(record))
        files = FilesConfig(str(tmp_path), train="high")
    wanted = [("An\narticle.", ("Tom is old .", "Tom is new ."), 1), ("An\narticle.", ("Who is he? Tom", "Who is he? Ann"), 0)]
    assert read(RACE, files) == wanted and [one.name for one in RACE.examples(files, "train")] == ["high1.txt-0", "high1.txt-1"]
    assert len(RACE.examples(dataclasses.replace(files, train_rows=1), "train")) == 1


def test_commonsense_qa_has_keys(tmp_path):
    """In the layout of Hugging Face and as distributed."""
    wanted = [("Where?", ("bank", "mall"), 1)]
    record = {"id": "x", "question": "Where?", "choices": {"label": ["A", "B"], "text": ["bank", "mall"]}, "answerKey": "B"}
    assert read(CSQA, write_json(tmp_path, record)) == wanted
    choices = [{"label": "1", "text": "bank"}, {"label": "2", "text": "mall"}]
    assert read(CSQA, write_json(tmp_path, {"id": "x", "answerKey": "2", "question": {"stem": "Where?", "choices": choices}})) == wanted


def test_rows_have_the_choices_of_the_longest_example(tmp_path):
    """Empty choices are padding; each other row is the pair of prompt and choice."""
    files = write_json(tmp_path, OWN, {"prompt": "lazy", "choices": ["fox", "dog", "over the fox"], "label": 0})
    task = Choice().fitted(Choice().examples(files, "train"))
    features = task.features(task.examples(files, "train"), framing())
    assert task.count == 3 and features.rows["tokens"].shape == (2, 3, 24) and features.rows["choice"].tolist() == [1, 0]
    there = (features.rows["segments"] > 0).any(axis=-1)
    assert there.tolist() == [[True, True, False], [True, True, True]]
    assert (features.rows["tokens"][0, 2] == framing().tokenizer.vocabulary.pad).all()
    pair = framing().rows([framing().ids(["lazy", "over the fox"])])
    for name in ("tokens", "types", "segments", "positions"):
        assert features.rows[name][1, 2].tolist() == pair.rows[name][0].tolist() and features.rows[name].dtype == np.int32
    config = task.objective(ElectraConfig())
    assert (config.heads, config.choices) == (("first_token", "choice"), 3)


def test_an_example_with_too_many_choices(tmp_path):
    files = write_json(tmp_path, OWN, OWN | {"choices": ["fox", "dog", "the fox"]})
    task = Choice(count=2)
    with pytest.raises(
        UserError, match=r"train.jsonl:2: has 3 choices, and the rows of the model have 2; set task.count=3 or more for train"
    ):
        task.features(task.examples(files, "train"), framing())


def test_answers_and_scores(tmp_path):
    files = write_json(tmp_path, OWN, OWN | {"choices": ["fox", "dog", "the fox"], "label": 2})
    task = Choice(count=3)
    examples = task.examples(files, "train")
    found = np.array([[0.5, 0.5, 0.9], [0.1, 0.2, 0.7]])
    answers = task.answers(examples, task.features(examples, framing()), {"choice": found})
    assert answers == [0, 2] and task.score(answers, examples) == {"accuracy": 0.5}
    with pytest.raises(ValueError, match="predictions"):
        task.answers(examples, task.features(examples, framing()), {"choice": found[:, :2]})


def test_shortened_examples_are_counted_once(tmp_path):
    files = write_json(tmp_path, OWN | {"prompt": "fox " * 60}, OWN)
    task = Choice(count=2)
    assert task.features(task.examples(files, "train"), framing()).shortened == 1


def test_a_test_split_and_a_user_have_no_labels(tmp_path):
    files = write_json(tmp_path, {"prompt": "a", "choices": ["b", "c"]}, split="test")
    task = Choice(count=2)
    examples = task.examples(files, "test")
    assert task.features(examples, framing()).rows["choice"].tolist() == [-1] and task.score([0], examples) == {"accuracy": 0}
    assert task.of_record({"prompt": "a", "choices": ["b", "c"]}, "line 1").choices == ("b", "c")


@pytest.mark.parametrize(
    "record, message",
    [
        ({"label": 2}, "train.jsonl:1: the label is '2', and there are 2 choices; write 0 to 1, or A, B"),
        ({"label": "C"}, "train.jsonl:1: the label is 'C', and there are 2 choices"),
        ({"label": -1}, "train.jsonl:1: the label is '-1', and there are 2 choices"),
        ({"label": None}, "train.jsonl:1: the column label holds no label; fill it in or leave the row out; a test split"),
        ({"choices": "b"}, "train.jsonl:1: choices do not hold two or more texts; write a list of texts"),
        ({"choices": ["b"]}, "train.jsonl:1: choices do not hold two or more texts"),
        ({"choices": ["b", None]}, "train.jsonl:1: choices do not hold two or more texts"),
        ({"prompt": 3}, "train.jsonl:1: the column prompt holds 3, which is not a text"),
    ],
)
def test_records_that_go_wrong(tmp_path, record, message):
    assert refused(Choice(), write_json(tmp_path, OWN | record)).startswith(message)


def test_lists_of_other_lengths(tmp_path):
    files = write_json(tmp_path, {"article": "a", "questions": ["b", "c"], "options": [["d", "e"]], "answers": ["A", "B"]})
    assert refused(RACE, files).startswith("train.jsonl:1: its lists of questions, options and answers differ in length; fix or remove")


def test_files_of_the_sets(tmp_path):
    """RACE has a folder for each split, with folders in it."""
    (tmp_path / "dev" / "high").mkdir(parents=True)
    record = {"article": "a", "questions": ["b _"], "options": [["c", "d"]], "answers": ["A"], "id": "high1.txt"}
    (tmp_path / "dev" / "high" / "1.txt").write_text(json.dumps(record))
    task, files = choice_sets.task("race")
    assert [one.choices for one in task.examples(dataclasses.replace(files, path=str(tmp_path)), "dev")] == [("b c", "b d")]
    assert [choice_sets.task(name)[1].names("test") for name in choice_sets.SETS] == [[], [], []]
    with pytest.raises(UserError, match="swat is not a known multiple-choice dataset; use swag, race, commonsense_qa"):
        choice_sets.task("swat")
