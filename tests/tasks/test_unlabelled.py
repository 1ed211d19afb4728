"""Rows of a user's file with everything that they hold."""

import gzip
from pathlib import Path

import pytest

from jaxenc.errors import UserError
from jaxenc.inference.predict import Predictor, of_file, of_values, with_columns
from jaxenc.tasks.choice import Choice
from jaxenc.tasks.classify import Classify
from jaxenc.tasks.unlabelled import read

PAIR = Classify(text=("first|question1", "second"))


def rows(path: Path, *columns: str) -> list[dict]:
    return [dict(record.values) for record in read(str(path), columns)]


def test_a_table_without_a_header_has_numbered_columns(tmp_path: Path) -> None:
    """Where the task reads columns by number, as of CoLA's train.tsv, and the first row names none of them."""
    (tmp_path / "x.tsv").write_text('a\t1\t"b\nc\t0\td\n')
    assert rows(tmp_path / "x.tsv", "3") == [{"1": "a", "2": "1", "3": '"b'}, {"1": "c", "2": "0", "3": "d"}]
    assert rows(tmp_path / "x.tsv", "sentence|3") == rows(tmp_path / "x.tsv", "3")
    assert rows(tmp_path / "x.tsv", "a") == rows(tmp_path / "x.tsv", "a|3") == [{"a": "c", "1": "0", '"b': "d"}]
    assert rows(tmp_path / "x.tsv") == rows(tmp_path / "x.tsv", "a")


def test_lines_and_compressed_files(tmp_path: Path) -> None:
    """The rows say where they are; a line end at the end begins no row."""
    (tmp_path / "x.txt.gz").write_bytes(gzip.compress(b'{"a": 1}\n\nb\n'))
    found = list(read(str(tmp_path / "x.txt.gz"), ("sentence|3",)))
    assert [dict(one.values) for one in found] == [{"sentence": '{"a": 1}'}, {"sentence": ""}, {"sentence": "b"}]
    assert [one.where for one in found] == [f"{tmp_path}/x.txt.gz:{line}" for line in (1, 2, 3)]
    (tmp_path / "x").write_bytes(b'{"a": [1]}\n')
    assert rows(tmp_path / "x") == [{"a": [1]}]
    (tmp_path / "y.txt").write_bytes("é\n".encode("latin-1"))
    assert [dict(one.values) for one in read(str(tmp_path / "y.txt"), (), "latin-1")] == [{"text": "é"}]


def test_a_task_of_pairs_reads_no_lines(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("a\n")
    with pytest.raises(UserError, match=r"x.txt: holds one text a line, and the task reads first\|question1, second; name a .tsv, .csv or"):
        rows(tmp_path / "x.txt", *PAIR.columns)


def test_values_in_python() -> None:
    values = [("a", "b"), ["a", "b"], {"question1": "a", "second": "b"}]
    texts = [PAIR.of_record(record.values, record.where).texts for record in of_values(PAIR, values)]
    assert texts == [("a", "b")] * 3
    with pytest.raises(UserError, match=r"examples\[0\]: it is 'a', and the task reads first, second; give a tuple of texts, or a dict"):
        list(of_values(PAIR, ["a"]))


def test_what_a_task_of_choices_reads(tmp_path: Path) -> None:
    """In Python a tuple of its columns; no line of text. A column that is missing is to be renamed: --text is not for this task."""
    task = Choice(prompt=("prompt|article",), count=2)
    (one,) = [task.of_record(record.values, record.where) for record in of_values(task, [("a", ["b", "c"])])]
    assert (one.prompt, one.choices) == ("a", ("b", "c"))
    with pytest.raises(UserError, match=r"examples\[0\]: it is 'a', and the task reads prompt, choices; give a tuple of texts, or a dict"):
        list(of_values(task, ["a"]))
    (tmp_path / "x.txt").write_text("a\n")
    with pytest.raises(UserError, match=r"x.txt: holds one text a line, and the task reads prompt\|article, choices; name a .tsv"):
        rows(tmp_path / "x.txt", *task.columns)
    (tmp_path / "x.jsonl").write_text('{"article": "a", "options": ["b", "c"]}\n')
    with pytest.raises(UserError, match=r"x.jsonl:1: has no column choices; rename the right one of its columns: 'article', 'options'$"):
        list(of_file(Predictor(task, None, {}, None), str(tmp_path / "x.jsonl")))


def test_other_columns() -> None:
    assert with_columns(PAIR, ("x", "y")).columns == ("x", "y")
    with pytest.raises(UserError, match=r"--text x: the task reads first\|question1, second; name one column for each, or leave it out"):
        with_columns(PAIR, ("x",))
