"""Rows of labelled files, of every kind of file, and what is said of those that cannot be read."""

import gzip
import json
import re

import pyarrow as pa
import pyarrow.parquet
import pytest

from jaxenc.errors import UserError
from jaxenc.tasks import records, unlabelled
from jaxenc.tasks.files import FilesConfig

ROWS = [("a good film", "1"), ('"quoted" and "more"', "0"), ("über é", "1")]


def read(path, required=("text", "label"), optional=(), **how):
    """The values of the rows."""
    return [
        tuple(record.values.get(column) for column in (*required, *optional))
        for record in records.read(str(path), required, optional, FilesConfig(**how))
    ]


def refused(path, required=("text", "label"), **how) -> str:
    with pytest.raises(UserError) as caught:
        list(records.read(str(path), required, (), FilesConfig(**how)))
    return str(caught.value).replace(str(path), "FILE")


def written(path, content, encoding="utf-8"):
    path.write_bytes(content.encode(encoding))
    return path


TSV = "text\tlabel\n" + "".join(f"{text}\t{label}\n" for text, label in ROWS)
CSV = 'label,text,more\n1,a good film,x\n0,"""quoted"" and ""more""",\n1,über é,"a\nb"\n'
FILES = {
    "a.tsv": TSV.encode(),
    "a.txt": TSV.encode(),
    "bom.tsv": TSV.encode("utf-8-sig"),
    "crlf.tsv": TSV.replace("\n", "\r\n").encode(),
    "without_end.tsv": TSV.encode()[:-1],
    "blank_lines.tsv": TSV.replace("\n", "\n\n").encode(),
    "utf16.tsv": TSV.encode("utf-16"),
    "a.tsv.gz": gzip.compress(TSV.encode()),
    "a.csv": CSV.encode(),
    "semicolons.csv": b'label;text\n1;a good film\n0;"""quoted"" and ""more"""\n1;\xc3\xbcber \xc3\xa9\n',
    "tabs.csv": b'label\ttext\n1\ta good film\n0\t"""quoted"" and ""more"""\n1\t\xc3\xbcber \xc3\xa9\n',
    "a.jsonl": "".join(json.dumps({"label": label, "text": text, "n": 1}) + "\n" for text, label in ROWS).encode(),
    "a.json": json.dumps([{"label": label, "text": text} for text, label in ROWS]).encode(),
    "lines.json": "".join(json.dumps({"label": label, "text": text}) + "\n" for text, label in ROWS).encode(),
    "data.json": json.dumps({"version": 1, "data": [{"label": label, "text": text} for text, label in ROWS]}).encode(),
    "indented.json": json.dumps({"data": [{"label": label, "text": text} for text, label in ROWS]}, indent=2).encode(),
    "a.jsonl.gz": gzip.compress("".join(json.dumps({"label": label, "text": text}) + "\n" for text, label in ROWS).encode()),
}


@pytest.mark.parametrize("name", FILES)
def test_the_same_rows_of_every_kind_of_file(tmp_path, name):
    (tmp_path / name).write_bytes(FILES[name])
    assert read(tmp_path / name) == ROWS


def test_rows_are_named_by_file_and_line(tmp_path):
    path = written(tmp_path / "a.csv", 'text,label\n\n"two\nlines",1\nx,0\n')
    assert [record.where for record in records.read(str(path), ["text"])] == [f"{path}:3", f"{path}:5"]
    path = written(tmp_path / "a.json", '{"data": [{"text": "a"}, {"text": 3}]}')
    assert [record.where for record in records.read(str(path), ["text"])] == [f"{path}:record 1", f"{path}:record 2"]


def test_quotes_and_commas_of_a_tsv_are_text(tmp_path):
    r"""As `csv.QUOTE_NONE`: a quote that is never closed does not swallow the rows after it."""
    path = written(tmp_path / "a.tsv", 'text\tlabel\n"never closed\t1\n"whole"\t0\nclosed here"\t1\n""\t0\n')
    assert read(path) == [('"never closed', "1"), ('"whole"', "0"), ('closed here"', "1"), ('""', "0")]


def test_columns_by_number_where_there_is_no_header(tmp_path):
    path = written(tmp_path / "a.tsv", "gj04\t1\t\tThe text.\nks08\t0\t*\tAn other.\n")
    assert read(path, ("sentence|4", "label|2")) == [("The text.", "1"), ("An other.", "0")]
    path = written(tmp_path / "b.tsv", "index\tsentence\n0\tThe text.\n")
    assert read(path, ("sentence|4",), ("index", "label|2")) == [("The text.", "0", None)]


def test_a_table_with_the_names_of_columns_is_no_table_of_numbers(tmp_path):
    path = written(tmp_path / "a.tsv", "sentence\tgold\ntext\t1\n")
    assert "has no column label or 2" in refused(path, ("sentence|1", "label|2"))


def test_rows_of_the_sts_benchmark(tmp_path):
    """Tabs in a .csv without a header, 7 or 9 columns, quotes that are not closed."""
    path = written(tmp_path / "a.csv", 'g\tf\ty\t1\t5.000\tA "b, c.\tD.\ng\tf\ty\t2\t0.5\tE, f.\t"G.\tlicence\tother\n')
    columns = ("sentence1|6", "sentence2|7", "score|5")
    assert read(path, columns, ragged=True) == [('A "b, c.', "D.", "5.000"), ("E, f.", '"G.', "0.5")]
    assert "FILE:2: has 9 columns, and the first row has 7" in refused(path, columns)
    short = written(tmp_path / "b.csv", "g\tf\ty\t1\t5.000\tA.\tD.\ng\tf\ty\t2\t0.5\tE\n")
    assert "FILE:2: has 6 columns, and the first row has 7" in refused(short, columns, ragged=True)


def test_broken_rows_of_training_files_may_be_left_out(tmp_path):
    """GLUE's train.tsv of QQP has rows that line ends in a question have cut in two."""
    content = "text\tlabel\na\t1\nbroken\nb\t0\nalso\tbroken\there\nc\t1\n"
    path = written(tmp_path / "a.tsv", content)
    assert read(path, broken_rows=2) == [("a", "1"), ("b", "0"), ("c", "1")]
    assert "FILE:5: has 3 columns, and the first row has 2" in refused(path, broken_rows=1)
    files = FilesConfig(str(tmp_path), train="a.tsv", test="a.tsv", broken_rows=2)
    assert len(list(records.of_split(files, "train", ["text"], ["label"]))) == 3
    with pytest.raises(UserError, match="a.tsv:3: has 1 columns"):
        list(records.of_split(files, "test", ["text"], ["label"]))


def test_numbers_stay_numbers_and_parquet_reads_nested_columns(tmp_path):
    table = pa.table({"text": ["a", "b"], "label": [0, 1], "score": [0.5, None], "choices": [{"text": ["x", "y"]}, {"text": ["z"]}]})
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet")
    found = read(tmp_path / "a.parquet", ("choices.text", "score", "label"))
    assert found == [(["x", "y"], 0.5, 0), (["z"], None, 1)]


def hugging_face(rows, **features):
    """A table with the features of a dataset in its schema, as `datasets` writes it."""
    table = pa.table(rows)
    return table.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})


LABELS = {"names": ["negative", "positive"], "_type": "ClassLabel"}


def test_the_labels_of_a_hugging_face_dataset_are_names(tmp_path):
    """-1 marks the test splits of GLUE."""
    table = hugging_face(
        {"text": ["a", "b", "c"], "label": [1, 0, -1], "all": [[0, 1], [], [1]]},
        text={"dtype": "string", "_type": "Value"},
        label=LABELS,
        all={"feature": LABELS, "_type": "Sequence"},
    )
    for split in ("train", "test"):
        folder = tmp_path / "set" / split
        folder.mkdir(parents=True)
        with pa.OSFile(str(folder / "data.arrow"), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        (folder / "state.json").write_text(json.dumps({"_data_files": [{"filename": "data.arrow"}]}))
    (tmp_path / "set" / "dataset_dict.json").write_text(json.dumps({"splits": ["train", "test"]}))
    wanted = [("a", "positive", ["negative", "positive"]), ("b", "negative", []), ("c", "", ["positive"])]
    assert read(tmp_path / "set" / "train", ("text", "label", "all")) == wanted
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet")
    assert read(tmp_path / "a.parquet", ("text", "label", "all")) == wanted


def test_a_dataset_of_tensorflow_datasets(tmp_path, monkeypatch):
    from tests.data.readers import builders

    builders.TinyLabels(data_dir=tmp_path, file_format="array_record").download_and_prepare()
    monkeypatch.setattr("tensorflow_datasets.core.constants.DATA_DIR", str(tmp_path))
    assert sorted(read("tfds:tiny_labels:train", ("text", "label"))) == [
        ("bad film", "negative"),
        ("good film", "positive"),
        ("no label", ""),
    ]


@pytest.mark.parametrize(
    "name, content, message",
    [
        ("a.tsv", "text\tgold\na\t1\n", "FILE:1: has no column label; name one of its columns in the field of the task for it: "),
        ("a.tsv", "text\tlabel\na\t1\nb\n", "FILE:3: has 1 columns, and the first row has 2"),
        ("a.tsv", 'text\tlabel\n"a\tb"\t1\n', "FILE:2: has 3 columns, and the first row has 2"),
        ("a.csv", "text,label\na, b,1\n", "FILE:2: has 3 columns, and the first row has 2"),
        ("a.csv", 'text,label\n"a,1\n', "FILE:2: not a row of a table"),
        ("a.tsv", "text\tlabel\ttext\na\t1\tb\n", "FILE:1: has several columns text"),
        ("a.tsv", "text\tlabel\n", "FILE: has no rows"),
        ("a.tsv", "\n\n", "FILE: has no rows"),
        ("a.json", "[]", "FILE: has no rows"),
        ("a.tsv", "", "FILE: is empty"),
        ("a.jsonl", '{"text": "a", "label": 1}\n{"text": "b"}\n', "FILE:2: has no column label"),
        ("a.jsonl", '{"text": "a", "label": 1}\n["b"]\n', "FILE:2: not an object"),
        ("a.jsonl", '{"text": "a", "label": 1}\n{"text"\n', "FILE:2: not a JSON object"),
        ("a.pdf", "%PDF-1.4", "FILE: is a PDF document"),
    ],
)  # fmt: skip
def test_one_line_says_what_is_wrong_and_where(tmp_path, name, content, message):
    assert refused(written(tmp_path / name, content)).startswith(message)


def test_columns_by_number_that_are_not_there(tmp_path):
    path = written(tmp_path / "a.tsv", "a\t1\n")
    assert read(path, ("1", "2")) == [("a", "1")]
    assert "FILE:1: has 2 columns, and task names column 3; use 1 to 2" in refused(path, ("3", "1"))
    assert "FILE:1: has 2 columns, and task names column 0" in refused(path, ("1", "0"))


@pytest.mark.parametrize("few", [True, False])
def test_another_encoding_is_refused_and_can_be_named(tmp_path, few):
    """Also where only one letter shows it."""
    content = "text\tlabel\n" + "Gruß aus Köln, Düsseldorf und Görlitz\t1\n" * (1 if few else 50)
    path = written(tmp_path / "a.tsv", content, "latin-1")
    message = refused(path)
    assert re.match(r"FILE(:2)?: ", message) and "data.encoding=cp1252" in message and "--encoding" not in message
    assert read(path, encoding="cp1252")[0] == ("Gruß aus Köln, Düsseldorf und Görlitz", "1")


@pytest.mark.parametrize(
    "name, content, how, message",
    [
        ("a.tsv", b"", {}, "FILE: is empty; name another file"),
        ("a.csv", b'text,label\n"a,1\n', {}, "close the quote, double quotes inside of a cell, or save it as .jsonl"),
        ("a.tsv", "Gruß\t1\n".encode() * 9, {"encoding": "ascii"}, "FILE: is not ascii, as data.encoding or its byte order mark says"),
    ],
)
def test_no_message_names_an_option_of_another_command(tmp_path, name, content, how, message):
    (tmp_path / name).write_bytes(content)
    found = refused(tmp_path / name, ("1", "2"), **how)
    assert message in found and "--" not in found


def test_what_has_no_columns():
    assert refused("docstrings") == "FILE: has no columns; name a file with a row for each example"


def test_what_is_no_text_and_no_label(tmp_path):
    path = written(tmp_path / "a.jsonl", '{"text": null, "label": 1.0}\n{"text": 3, "label": true}\n{"text": "", "label": [1]}\n')
    null, number, empty = records.read(str(path), ("text", "label"))
    assert (null.name("label"), number.name("label"), empty.text("text")) == ("1", "true", "")
    with pytest.raises(UserError, match=rf"^{path}:1: the column text holds no text \(null\)"):
        null.text("text")
    with pytest.raises(UserError, match=rf"^{path}:2: the column text holds 3, which is not a text"):
        number.text("text")
    with pytest.raises(UserError, match=rf"^{path}:3: the column label holds \[1\], which is not a label"):
        empty.name("label")


def test_a_whole_number_that_no_float_holds_is_no_number(tmp_path):
    (record,) = records.read(str(written(tmp_path / "a.jsonl", f'{{"n": {"9" * 400}}}\n')), ("n",))
    with pytest.raises(UserError, match=r"a.jsonl:1: the column n holds 9{37}\.\.\., which is not a number"):
        record.number("n")


def test_a_column_of_no_name_is_missing(tmp_path):
    with pytest.raises(UserError, match="a.tsv:1: has no column ; name one of its columns"):
        next(records.read(str(written(tmp_path / "a.tsv", "text\tlabel\na\tb\n")), ("text", "")))


def test_a_record_of_a_user():
    assert records.picked({"b": "x"}, "line 1", ["a|b"]).text("a|b") == "x"
    with pytest.raises(UserError, match="^line 1: has no column a; name one of its columns in the field of the task for it: 'b'"):
        records.picked({"b": "x"}, "line 1", ["a"])


def test_the_first_of_several_files_that_exist(tmp_path):
    written(tmp_path / "a.tsv", TSV), written(tmp_path / "b.tsv", TSV)
    names = lambda train, path=str(tmp_path): FilesConfig(path, train=train).names("train")
    assert names("x.tsv|b.tsv,a.tsv|a.tsv") == [f"{tmp_path}/b.tsv", f"{tmp_path}/a.tsv"]
    assert names("x.tsv|b.tsv,x.tsv|train") == [f"{tmp_path}/x.tsv"] and names("x.tsv|") == [] == names("")
    assert names("train.tsv|train", "tfds:glue/sst2") == ["tfds:glue/sst2:train"]
    assert names("a.tsv,b.tsv|validation", "tfds:glue/sst2:1.0.0") == ["tfds:glue/sst2:1.0.0:validation"]


@pytest.mark.parametrize("name", ["klingon", "base64"])
def test_an_encoding_that_python_does_not_have(tmp_path, name):
    with pytest.raises(UserError, match=rf"^data.encoding is '{name}': Python has no such encoding; name one such as cp1252"):
        FilesConfig(encoding=name)
    (tmp_path / "a.txt").write_text("a")
    with pytest.raises(UserError, match=rf"^--encoding {name}: Python has no such encoding; name one such as cp1252"):
        next(unlabelled.read(str(tmp_path / "a.txt"), ("text",), name))
