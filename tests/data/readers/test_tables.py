"""CSV and TSV: one column, with quotes, and nothing shifted in silence."""

import csv
import random

import pytest

from jaxenc.errors import UserError
from tests.data.readers.reading import found, lines

TEXTS = ["plain", 'a "quoted" word', "two\nlines", "a, b; c\td", "é 漢", "", "x" * 200_000, '"', "-"]


@pytest.mark.parametrize("name, delimiter", [("a.csv", ","), ("a.csv", ";"), ("a.csv", "\t"), ("a.tsv", "\t"), ("a.CSV", "|")])
def test_what_csv_writes_is_read_back(tmp_path, name, delimiter):
    """Python's csv module is the reference; a cell of 200 kB, of a quote alone, and of two lines are among them."""
    with open(tmp_path / name, "w", newline="", encoding="utf-8") as file:
        csv.writer(file, delimiter=delimiter).writerows([["id", "content"], *([str(i), text] for i, text in enumerate(TEXTS))])
    documents, counts = found(tmp_path / name, field="content")
    expected = ["".join(text.split()) for text in TEXTS if text]
    assert ["".join("".join(d.lines).split()) for d in documents] == expected and counts.empty_documents == 1
    assert documents[2].lines == ("two", "lines") and documents[3].source == f"{tmp_path / name}:6"


def test_b01_blank_rows_are_left_out_and_a_row_of_another_width_is_named(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text("id\ttext\n1\tone\n\n2\ttwo\n\n\n")
    assert lines(path) == [("one",), ("two",)]
    for row in ("3", "3\ta\tb"):
        path.write_text(f"id\ttext\n1\tone\n{row}\n")
        with pytest.raises(UserError, match=rf"a\.tsv:3: has {row.count(chr(9)) + 1} columns, and the first row has 2"):
            lines(path)
    (tmp_path / "a.csv").write_text("text,label\nan unquoted, comma,1\n")
    with pytest.raises(UserError, match=r"a\.csv:2: has 3 columns"):
        lines(tmp_path / "a.csv")


def test_quotes_of_a_tsv_stand_for_themselves_where_they_open_no_cell(tmp_path):
    """As in GLUE's files, which quote nothing."""
    rows = ['"Hello, he said.', '"Hello" he said.', 'say "hi"', '"']
    (tmp_path / "a.tsv").write_text("text\tlabel\n" + "".join(f"{row}\t1\n" for row in rows))
    assert lines(tmp_path / "a.tsv", field="text") == [(row,) for row in rows]


def test_quotes_that_would_shift_the_columns_of_a_tsv_stand_for_themselves(tmp_path):
    (tmp_path / "a.tsv").write_text('text\treply\tlabel\n"Hello\tthere"\t1\n"one\ttwo"\tb\t2\n')
    assert lines(tmp_path / "a.tsv") == [('"Hello',), ("one\ttwo",)]


def test_many_open_quotes_in_a_tsv_take_no_time(tmp_path):
    (tmp_path / "a.tsv").write_text("text\tlabel\n" + '"open\t1\nplain\t0\n' * 3000)
    assert len(lines(tmp_path / "a.tsv")) == 6000


def test_a_column_by_number_has_no_header(tmp_path):
    (tmp_path / "a.csv").write_text('one,"two; three"\nfour,five\n')
    assert lines(tmp_path / "a.csv", field="2") == [("two; three",), ("five",)]
    with pytest.raises(UserError, match=r"a\.csv:1: has 2 columns, and --field is 3; use 1 to 2"):
        lines(tmp_path / "a.csv", field="3")
    (tmp_path / "a.csv").write_text("1,2\none,two\n")
    assert lines(tmp_path / "a.csv", field="2") == [("two",)]


@pytest.mark.parametrize(
    "content, field, said",
    [
        ("id,content\n1,a\n", "", r"a\.csv:1: has no column text; .*--field: id, content"),
        ("id,content\n1,a\n", "body", r"a\.csv:1: has no column body; .*--field: id, content"),
        ("id;content\n1;a\n", "", r"a\.csv:1: has no column text; .*--field: id, content"),
        ("text,words\na,b\n", "", "has both text and words"),
        ("text,id,text\na,1,b\n", "", r"a\.csv:1: has several columns text; rename"),
        ("sep=;\ntext;id\na;1\nb\n", "", r"a\.csv:4: has 1 columns, and the first row has 2"),
        ('text\n"open\n' + "more\n" * 10, "", r"a\.csv:2: not a row of a table"),
        ('text\n"a"b\n', "", r"a\.csv:2: not a row of a table"),
        ("text\n", "", "no document found"),
    ],
)
def test_bad_tables_are_one_line(tmp_path, content, field, said):
    (tmp_path / "a.csv").write_text(content)
    with pytest.raises(UserError, match=said):
        lines(tmp_path / "a.csv", field=field)


def test_a_table_of_one_column_needs_no_name_and_windows_files_are_read(tmp_path):
    (tmp_path / "a.csv").write_bytes('\ufeffsentence\r\none\r\n"two\r\nlines"\r\n'.encode())
    assert lines(tmp_path / "a.csv") == [("one",), ("two", "lines")]


@pytest.mark.parametrize("delimiter", ";\t|")
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_what_excel_says_of_the_delimiter_is_no_text(tmp_path, delimiter, end):
    (tmp_path / "a.csv").write_bytes(end.join([f"sep={delimiter}", f"id{delimiter}text", f"1{delimiter}one, two", ""]).encode())
    assert lines(tmp_path / "a.csv") == [("one, two",)]


def test_a_table_of_another_name_is_read_by_its_format(tmp_path):
    rng = random.Random(0)
    rows = [[str(rng.random()), f'line, "{i}"'] for i in range(100)]
    with open(tmp_path / "data", "w", newline="") as file:
        csv.writer(file).writerows(rows)
    assert lines(tmp_path / "data", format="csv", field="2") == [(row[1],) for row in rows]
