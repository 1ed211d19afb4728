"""Data sets that tensorflow_datasets prepared: corpora by a feature, tasks by all of them; never over the network."""

import json
import re
import shutil
import socket

import pytest

from jaxenc.data import readers
from jaxenc.data.readers import Counts, Reading, tfds
from jaxenc.errors import UserError
from tests.data.readers.reading import found, lines


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """A folder with both data sets, prepared as ArrayRecord."""
    from tests.data.readers import builders

    folder = tmp_path_factory.mktemp("tfds")
    for build in (builders.TinyText, builders.TinyLabels):
        for config in [c.name for c in build.BUILDER_CONFIGS] or [None]:
            build(config=config, data_dir=folder, file_format="array_record").download_and_prepare()
    return folder


@pytest.fixture(autouse=True)
def without_network(monkeypatch):
    def refuse(*args, **how):
        raise AssertionError("a connection to another machine")

    monkeypatch.setattr(socket.socket, "connect", refuse)


def test_a_corpus_by_its_feature(prepared):
    documents, counts = found("tfds:tiny_text/plain", field="content", tfds_dir=str(prepared))
    assert sorted(d.lines for d in documents) == [("one é",), ("two", "lines")] and counts.empty_documents == 1
    assert {d.source for d in documents} < {f"tfds:tiny_text/plain:{i}" for i in (1, 2, 3)}
    how = {"field": "content", "tfds_dir": str(prepared)}
    assert lines("tfds:tiny_text/plain:test", **how) == lines("tfds:tiny_text/plain:1.0.0:test", **how) == [("three",)]
    assert lines("tfds:tiny_text/capitals:test", **how) == [("THREE",)]
    assert sorted(lines("tfds:tiny_text/plain:train[:2]+test", field="meta.title", tfds_dir=str(prepared)))[0] == ("title 0",)


def test_a_source_has_a_size_and_an_identity_of_its_split(prepared):
    reading = Reading(tfds_dir=str(prepared))
    names = ["tfds:tiny_text/plain", "tfds:tiny_text/plain:test", "tfds:tiny_text/capitals", "tfds:tiny_labels"]
    sources = readers.inputs([*names, names[0]], reading, Counts())
    assert [source.name for source in sources] == names and all(source.size for source in sources)
    assert len({source.identity() for source in sources}) == 4 and sources[0].identity() == sources[0].identity()


def test_a_task_by_its_features(prepared):
    """Labels by their names; what has none has the empty name."""
    rows = {row["text"]: row for row in tfds.examples("tfds:tiny_labels", str(prepared))}
    assert {text: row["label"] for text, row in rows.items()} == {"good film": "positive", "bad film": "negative", "no label": ""}
    assert [rows[text]["words"] for text in ("good film", "bad film", "no label")] == [["good"], [], ["a", "b"]]
    assert float(rows["bad film"]["score"]) == -0.5
    nested = next(iter(tfds.examples("tfds:tiny_text/plain:test", str(prepared))))
    assert nested == {"content": "three", "meta": {"title": "title 0"}}


@pytest.mark.parametrize(
    "name, field, said",
    [
        ("tfds:tiny_text/plain", "", r"has no text; .*--field: content, meta\.title"),
        ("tfds:tiny_text/plain:dev", "", "has no split dev, but train, test"),
        ("tfds:wikipedia/20230601.en", "", r"is not prepared in .*--tfds-dir, or prepare it in Python: .*'wikipedia/20230601\.en', file_f"),
        ("tfds:", "", r"not tfds:NAME\[/CONFIG\]"),
        ("tfds:a b", "", "not tfds:NAME"),
    ],
)
def test_what_is_missing_is_one_line_that_says_what_to_do(prepared, name, field, said):
    with pytest.raises(UserError, match=said):
        lines(name, field=field, tfds_dir=str(prepared))


def test_files_that_only_tensorflow_reads_are_named(prepared, tmp_path):
    """The data set's own description says its format; to write TFRecord takes TensorFlow, so the description is changed."""
    shutil.copytree(prepared / "tiny_labels", tmp_path / "tiny_labels")
    info = tmp_path / "tiny_labels" / "1.0.0" / "dataset_info.json"
    facts = json.loads(info.read_text())
    info.write_text(json.dumps({**facts, "fileFormat": "tfrecord"}))
    for path in info.parent.glob("*array_record*"):
        path.rename(path.with_name(re.sub("array_record", "tfrecord", path.name)))
    with pytest.raises(UserError, match="is prepared as tfrecord, which only TensorFlow reads; prepare it in Python"):
        lines("tfds:tiny_labels", tfds_dir=str(tmp_path))
