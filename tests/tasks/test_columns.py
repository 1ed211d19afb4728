"""A column that a file lacks: the message names the field of the task, and the option, that chooses it."""

import pytest

from jaxenc.tasks.choice import Choice
from jaxenc.tasks.classify import Classify
from jaxenc.tasks.multilabel import Multilabel
from jaxenc.tasks.tag import Tag
from tests.tasks.texts import refused, write, write_json


@pytest.mark.parametrize(
    "task, header, missing",
    [
        (Classify(text=("a",)), "b\tlabel", "a; name one of its columns with --text or task.text: 'b', 'label'"),
        (Classify(text=("b",)), "b\tc", "label; name one of its columns with --label or task.label: 'b', 'c'"),
        (Multilabel(text=("b",), label="", labels=("p", "q")), "b\tp", "q; name one of its columns with task.labels: "),
        (Choice(prompt=("b",)), "b\tlabel", "choices; name one of its columns with task.choices: "),
        (Choice(), "b\tlabel", "prompt; name one of its columns with task.prompt: "),
    ],
)
def test_a_missing_column_names_the_field_that_chooses_it(task, header, missing, tmp_path):
    said = refused(task, write(tmp_path, train=f"{header}\nx\ty\n"))
    assert said.startswith(f"train.tsv:1: has no column {missing}"), said


def test_the_words_of_records_name_their_field(tmp_path):
    files = write_json(tmp_path, {"text": "x", "tags": ["O"]})
    assert "has no column tokens; name one of its columns with task.words: 'text', 'tags'" in refused(Tag(), files)
