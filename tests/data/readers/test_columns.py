"""Parquet, Arrow and data sets saved to disk: one column, batch by batch."""

import gzip
import json

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from jaxenc.errors import UserError
from tests.data.readers.reading import found, lines
from tests.data.readers.test_containers import zipped

TEXTS = [f"text {i} é" for i in range(3000)]
TABLE = pa.table({"id": range(3000), "content": TEXTS, "meta": [{"body": text[::-1]} for text in TEXTS]})
EXPECTED = [(text,) for text in TEXTS]


def write_parquet(table, path):
    pa.parquet.write_table(table, path, row_group_size=700)


def write_stream(table, path):
    with pa.ipc.new_stream(path, table.schema) as out:
        out.write_table(table, max_chunksize=500)


def write_feather(table, path):
    pa.feather.write_feather(table, str(path), compression="zstd", chunksize=500)


WRITE = {"a.parquet": write_parquet, "a.arrow": write_stream, "a.feather": write_feather, "a.txt": write_parquet}


@pytest.mark.parametrize("name, write", WRITE.items())
def test_r04_a_column_of_a_table_is_read_whatever_its_name(tmp_path, name, write):
    write(TABLE, tmp_path / name)
    documents, _ = found(tmp_path / name, field="content")
    assert [d.lines for d in documents] == EXPECTED and documents[1500].source == f"{tmp_path / name}:1501"
    assert lines(tmp_path / name, field="meta.body") == [(text[::-1],) for text in TEXTS]


@pytest.mark.parametrize("write", WRITE.values())
@pytest.mark.parametrize(
    "column, expected",
    [
        (pa.array(["a", None, "", "b"]), [("a",), ("b",)]),
        (pa.array(["a", "b"], pa.large_string()), [("a",), ("b",)]),
        (pa.array(["a", "b", "a"]).dictionary_encode(), [("a",), ("b",), ("a",)]),
        (pa.array([b"a", "é".encode()]), [("a",), ("é",)]),
        (pa.array([["a", "b"], None, ["c"]]), [("a b",), ("c",)]),
    ],
    ids=["null", "large", "dictionary", "bytes", "list"],
)
def test_every_type_that_holds_text(tmp_path, write, column, expected):
    write(pa.table({"text": column}), tmp_path / "a")
    assert lines(tmp_path / "a") == expected


def test_a_lone_column_needs_no_name_and_bad_bytes_are_counted(tmp_path):
    write_parquet(pa.table({"body": pa.array([b"a\xff"])}), tmp_path / "a")
    documents, counts = found(tmp_path / "a")
    assert documents[0].lines == ("a\ufffd",) and counts.invalid == 1


@pytest.mark.parametrize("write", WRITE.values())
def test_two_columns_of_one_name_are_not_chosen_between_in_silence(tmp_path, write):
    write(pa.table([pa.array(["a"]), pa.array(["b"])], names=["text", "text"]), tmp_path / "a")
    with pytest.raises(UserError, match="has several columns text; rename"):
        lines(tmp_path / "a")


@pytest.mark.parametrize("write", WRITE.values())
@pytest.mark.parametrize(
    "field, said",
    [
        ("", "has no column text; .*--field: id, content, meta"),
        ("body", "has no column body"),
        ("id", r"the column id holds int64 and no text"),
    ],
)
def test_r08_a_missing_column_names_those_that_are_there(tmp_path, write, field, said):
    write(TABLE, tmp_path / "a")
    with pytest.raises(UserError, match=said):
        lines(tmp_path / "a", field=field)


def test_tables_inside_of_containers(tmp_path):
    write_parquet(TABLE, tmp_path / "a.parquet")
    content = (tmp_path / "a.parquet").read_bytes()
    (tmp_path / "a.zip").write_bytes(zipped({"data/a.parquet": content}))
    (tmp_path / "a.parquet.gz").write_bytes(gzip.compress(content))
    assert lines(tmp_path / "a.zip", field="content") == lines(tmp_path / "a.parquet.gz", field="content") == EXPECTED


@pytest.mark.parametrize("name, write", WRITE.items())
def test_damaged_tables_are_one_line(tmp_path, name, write):
    write(TABLE, tmp_path / name)
    content = (tmp_path / name).read_bytes()
    for bad in (content[: len(content) // 2], content[:200], content[:20]):
        (tmp_path / name).write_bytes(bad)
        with pytest.raises(UserError, match=f"{name}: cannot be read"):
            lines(tmp_path / name, field="content")


def test_only_a_name_of_a_table_is_not_enough(tmp_path):
    (tmp_path / "a.parquet").write_text("text\n")
    with pytest.raises(UserError, match=r"a\.parquet: its name says parquet, but its content is not"):
        lines(tmp_path / "a.parquet")


def save(folder, *parts, **state):
    """As `save_to_disk` of datasets 3 writes a set."""
    folder.mkdir(parents=True)
    names = [f"data-{i:05d}-of-{len(parts):05d}.arrow" for i in range(len(parts))]
    for name, part in zip(names, parts, strict=True):
        write_stream(pa.table({"text": part}), folder / name)
    (folder / "state.json").write_text(json.dumps({"_data_files": [{"filename": name} for name in names], "_split": None, **state}))
    (folder / "dataset_info.json").write_text("{}")


def test_a_data_set_saved_to_disk(tmp_path):
    save(tmp_path / "set", ["a", "b"], ["c"])
    documents, _ = found(tmp_path / "set")
    assert [d.lines for d in documents] == [("a",), ("b",), ("c",)]
    assert documents[2].source == f"{tmp_path}/set/data-00001-of-00002.arrow:1"
    assert lines(tmp_path) == lines(f"{tmp_path}/set/") == [("a",), ("b",), ("c",)]


def test_a_data_set_with_splits(tmp_path):
    save(tmp_path / "set" / "train", ["a"])
    save(tmp_path / "set" / "test", ["b"])
    (tmp_path / "set" / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    assert lines(f"{tmp_path}/set:train") == [("a",)] and lines(f"{tmp_path}/set:test") == [("b",)]
    assert lines(f"{tmp_path}/set/test") == [("b",)]
    with pytest.raises(UserError, match=rf"has several splits; name one: {tmp_path}/set:train, {tmp_path}/set:test"):
        lines(tmp_path / "set")
    with pytest.raises(UserError, match="has no split dev; name one"):
        lines(f"{tmp_path}/set:dev")
    with pytest.raises(UserError, match=rf"saved without splits, so it has no dev; name it without one: {tmp_path}/set/train$"):
        lines(f"{tmp_path}/set/train:dev")
    (tmp_path / "set" / "dataset_dict.json").write_text('{"splits": ["train"]}')
    assert lines(tmp_path / "set") == [("a",)]


def test_a_damaged_data_set_is_one_line(tmp_path):
    save(tmp_path / "a", ["a"], _indices_data_files=[{"filename": "indices.arrow"}])
    save(tmp_path / "b", ["b"], _data_files=[{"filename": "../a/data-00000-of-00001.arrow"}])
    save(tmp_path / "c", ["c"], _data_files=[{"filename": "gone.arrow"}])
    for name, said in (("a", "chosen by a list of indices"), ("b", "names no files"), ("c", "gone.arrow: no such file")):
        with pytest.raises(UserError, match=said):
            lines(tmp_path / name)
