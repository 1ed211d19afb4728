"""A newcomer's four routes to a pretrained model, each by the commands of docs/text.md: a folder, Parquet, a saved data set, tfds."""

import json

import pyarrow as pa
import pyarrow.parquet
import pytest

from jaxenc.cli.main import main
from tests import tiny
from tests.cli.test_pretrain import command
from tests.data.readers.test_columns import save
from tests.selection import thinned

TEXTS = [f"Document number {i} is here. It is about the number {i}." for i in range(80)]


def folder(root):
    for i, text in enumerate(TEXTS):
        (root / f"{i}.txt").write_text(text)
    return [str(root)]


def parquet(root):
    pa.parquet.write_table(pa.table({"content": TEXTS, "id": range(len(TEXTS))}), root / "a.parquet")
    return [str(root / "*.parquet"), "--field", "content"]


def saved(root):
    save(root / "set" / "train", TEXTS[:50], TEXTS[50:])
    (root / "set" / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    return [f"{root}/set:train"]


def tfds(root):
    from tests.data.readers.builders import TinyLines

    TinyLines(data_dir=root, file_format="array_record").download_and_prepare()
    return ["tfds:tiny_lines:train", "--tfds-dir", str(root)]


@pytest.mark.slow
# tests/data/readers has what the other two read.
@pytest.mark.parametrize("route", thinned([folder, tfds, parquet, saved], folder))
def test_a_route_ends_in_a_pretrained_model(route, tmp_path):
    (tmp_path / "in").mkdir()
    where = ["--input", *route(tmp_path / "in")]
    assert main(["tokenizer", *where, "--vocab-size", "90", "--out", str(tmp_path / "tokenizer")]) == 0
    assert main(["data", *where, "--tokenizer", str(tmp_path / "tokenizer"), "--out", str(tmp_path / "data"), "--held-out", "0.2"]) == 0
    facts = json.loads((tmp_path / "data" / "manifest.json").read_text())
    assert sum(split["documents"] for split in facts["splits"].values()) == len(TEXTS)
    with tiny.on_one_device():
        assert main(command(tmp_path / "data", tmp_path / "run")) == 0
    rows = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert rows and (tmp_path / "run" / "checkpoints" / "1").is_dir()
